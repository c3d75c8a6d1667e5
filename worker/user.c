/* SPDX-License-Identifier: Apache-2.0 */
/* See user.h. */
#include "worker/user.h"

#include <errno.h>
#include <grp.h>

#define GROUPS_FIRST 32

/* A user without a name, or without an entry, has no other group. */
static int find_groups(const struct record_watch *config, struct process_user *user)
{
        int count = GROUPS_FIRST, room;

        do {
                gid_t *grown = reallocarray(user->group, (size_t)count, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                user->group = grown;
                room = count;
        } while (getgrouplist(config->user, user->gid, user->group, &count) < 0 && count > room);
        user->group_count = (size_t)(count < room ? count : room);
        return 0;
}

int user_new(const struct record_watch *config, struct process_user **ret)
{
        struct process_user *user;
        int r;

        if (!config->user[0] || config->uid == geteuid())
                return 0;
        user = calloc(1, sizeof(*user));
        if (!user)
                return -ENOMEM;
        user->uid = (uid_t)config->uid;
        user->gid = (gid_t)config->gid;
        r = find_groups(config, user);
        if (r < 0) {
                user_free(user);
                return r;
        }
        *ret = user;
        return 0;
}

void user_free(struct process_user *user)
{
        if (!user)
                return;
        free(user->group);
        free(user);
}
