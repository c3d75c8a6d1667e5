/* SPDX-License-Identifier: Apache-2.0 */
#include "os/owner-rights.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int owner_enter(const char *folder, struct owner_rights *ret)
{
        struct stat st;

        *ret = (struct owner_rights){.uid = geteuid(), .gid = getegid()};
        if (lstat(folder, &st) < 0)
                return -errno;
        if (ret->uid != 0 || st.st_uid == 0)
                return 0;
        ret->group_count = getgroups(OWNER_GROUPS_MAX, ret->group);
        if (ret->group_count < 0 || setgroups(1, &st.st_gid) < 0)
                return -errno;
        ret->changed = true;
        if (setegid(st.st_gid) < 0 || seteuid(st.st_uid) < 0) {
                int r = -errno;

                owner_leave(ret);
                return r;
        }
        return 0;
}

void owner_leave(const struct owner_rights *rights)
{
        if (rights->changed && (seteuid(rights->uid) < 0 || setegid(rights->gid) < 0 ||
                                setgroups((size_t)rights->group_count, rights->group) < 0))
                abort();
}
