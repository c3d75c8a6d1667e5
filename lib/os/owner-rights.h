/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files of an operator that root opens: with the rights of their owner, so that a user who can write to that
 * folder (the operator's user, and so perhaps a handler) cannot make root read, write or create what a link
 * there leads to. For processes of one thread.
 */
#include <stdbool.h>
#include <sys/types.h>

#define OWNER_GROUPS_MAX 64

struct owner_rights {
        bool changed;
        uid_t uid;
        gid_t gid, group[OWNER_GROUPS_MAX];
        int group_count;
};

/* Does nothing in a process that is not root, or that owns the folder. 0 or a negative errno; owner_leave()
 * after a success. */
int owner_enter(const char *folder, struct owner_rights *ret);
void owner_leave(const struct owner_rights *rights); /* ends the process if the rights do not come back */
