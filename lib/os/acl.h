/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lists of rights (POSIX ACLs): how an owner without any privilege lets single other users at a file or
 * folder, as systemd does for credentials. All others keep the rights that they really have: who is on the
 * list already, also by a default list of the folder above, gets no more by it.
 */
#include <stddef.h>
#include <sys/types.h>

#define ACL_READ   4U
#define ACL_WRITE  2U
#define ACL_SEARCH 1U /* of a folder: to reach what is in it */

/* Each of these users (named once) has these rights from now on. fd: of a file or folder of our own, not
 * opened with O_PATH. 0 or negative errno; -EOPNOTSUPP: the file system has no lists of rights; -E2BIG: the
 * list is too long. */
int acl_allow(int fd, const uid_t *user, size_t count, unsigned rights);

enum acl_writers {
        ACL_WRITERS_BY_MODE, /* there is no list: the mode says who may write */
        ACL_WRITERS_TRUSTED, /* of those on the list, only root, we, and groups that we are in */
        ACL_WRITERS_STRANGERS,
};

/* Which users may write what lies there, beside its owner and all others. group: its own one. If the list
 * cannot be read: strangers. */
enum acl_writers acl_writers(const char *path, gid_t group);
