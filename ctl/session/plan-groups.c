/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/plan-groups.h"

#include <errno.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int compare_changes(const void *a, const void *b)
{
        return strcmp(((const struct plan_group *)a)->changes, ((const struct plan_group *)b)->changes);
}

static void plan_group_free(void *item)
{
        struct plan_group *group = item;

        for (size_t i = 0; i < group->count; i++)
                free(group->key[i]);
        free(group->key);
        free(group->changes);
        free(group);
}

static struct plan_group *plan_group_new(struct plan_groups *groups, const char *changes)
{
        struct plan_group *group = calloc(1, sizeof(*group));

        if (group)
                group->changes = strdup(changes);
        if (!group || !group->changes || !tsearch(group, &groups->root, compare_changes)) {
                if (group)
                        plan_group_free(group);
                return NULL;
        }
        groups->count++;
        return group;
}

int plan_groups_add(struct plan_groups *groups, const char *changes, const char *key)
{
        const struct plan_group wanted = {.changes = (char *)(uintptr_t)changes};
        struct plan_group *const *found = tfind(&wanted, &groups->root, compare_changes);
        struct plan_group *group = found ? *found : plan_group_new(groups, changes);
        char *copy = group ? strdup(key) : NULL;

        /* It doubles: at each power of two. */
        if (copy && (group->count & (group->count - 1)) == 0) {
                char **grown =
                        reallocarray(group->key, group->count > 0 ? 2 * group->count : 1, sizeof(*grown));

                if (grown)
                        group->key = grown;
                else
                        free(TAKE_PTR(copy));
        }
        if (!copy)
                return -ENOMEM;
        group->key[group->count++] = copy;
        return 0;
}

struct listing_groups {
        struct plan_group **list;
        size_t count;
};

static void list_group(const void *node, VISIT visit, void *userdata)
{
        struct listing_groups *listing = userdata;

        if (visit == postorder || visit == leaf)
                listing->list[listing->count++] = *(struct plan_group *const *)node;
}

/* Groups of one size come in the order of their changes. */
static int compare_sizes(const void *a, const void *b)
{
        const struct plan_group *one = *(struct plan_group *const *)a,
                                *other = *(struct plan_group *const *)b;

        return one->count != other->count ? (one->count < other->count ? 1 : -1)
                                          : strcmp(one->changes, other->changes);
}

struct plan_group **plan_groups_list(const struct plan_groups *groups)
{
        struct listing_groups listing = {.list = calloc(groups->count + 1, sizeof(struct plan_group *))};

        if (!listing.list)
                return NULL;
        twalk_r(groups->root, list_group, &listing);
        qsort(listing.list, listing.count, sizeof(*listing.list), compare_sizes);
        return listing.list;
}

void plan_groups_done(struct plan_groups *groups)
{
        tdestroy(groups->root, plan_group_free);
        *groups = (struct plan_groups){0};
}
