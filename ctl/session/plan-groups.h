/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects, grouped by what would change in them. There may be 100,000, each with a change of its own. */
#include <stddef.h>

struct plan_group {
        char *changes;
        char **key; /* of its objects, in the order in which they were added */
        size_t count;
};

struct plan_groups {
        void *root; /* a tree, of tsearch() */
        size_t count;
};

int plan_groups_add(struct plan_groups *groups, const char *changes, const char *key); /* 0 or -ENOMEM */
/* The largest first; the caller frees the array, and what is in it stays with the groups. NULL: no memory. */
struct plan_group **plan_groups_list(const struct plan_groups *groups);
void plan_groups_done(struct plan_groups *groups);
