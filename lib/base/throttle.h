/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The times until which a server asks us to wait: with all requests (resource ""), or with those to one
 * resource, as kube_path_resource() names it. There is room for a few; when there are more, the one that ends
 * first is forgotten. */
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

/* Returns 1 if that is new, 0 if the resource has to wait as long already: the later time counts. */
int throttle_note(struct throttles *throttles, const char *resource, uint64_t until);
/* The time until which requests to this resource wait, by an entry for it or for the whole server; 0 if
 * there is none. */
uint64_t throttle_until(const struct throttles *throttles, const char *resource);
/* The first end of an entry after `now`; 0 if there is none. */
uint64_t throttle_next_end(const struct throttles *throttles, uint64_t now);
