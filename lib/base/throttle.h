/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Until when a server wants to be left alone: as a whole (resource ""), or as far as one of its resources
 * goes
 * ("apps/deployments", "/pods"). A few at once; when there are more, the one that ends first is forgotten.
 */
#include <stddef.h>
#include <stdint.h>

#define THROTTLES_MAX         16
#define THROTTLE_RESOURCE_MAX 320 /* a group and a plural have at most 253 and 63 characters */

struct throttles {
        struct {
                char resource[THROTTLE_RESOURCE_MAX];
                uint64_t until; /* CLOCK_BOOTTIME; 0: free */
        } entry[THROTTLES_MAX];
};

/* Whether it is news: the longer wish counts. */
int throttle_note(struct throttles *throttles, const char *resource, uint64_t until);
/* For a request to this resource: the server's own wish counts as well. 0: nothing is known. */
uint64_t throttle_until(const struct throttles *throttles, const char *resource);
/* When the first of them ends that has not ended at `now`; 0: none. */
uint64_t throttle_next_end(const struct throttles *throttles, uint64_t now);
