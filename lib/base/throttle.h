/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Until when a server asks us to wait: with all requests (resource ""), or with those to one resource
 * ("apps/deployments", "/pods"). A few entries; when there are more, the one that ends first is forgotten. */
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
/* Until when requests to this resource wait, also because of a wish for the whole server; 0 if there is none. */
uint64_t throttle_until(const struct throttles *throttles, const char *resource);
/* When the first of them ends that has not ended at `now`; 0 if there is none. */
uint64_t throttle_next_end(const struct throttles *throttles, uint64_t now);
