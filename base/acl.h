/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lists of rights (POSIX ACLs): how an owner without any privilege lets single other users at a file or
 * folder, as systemd does for credentials. Owner, group and all others keep what the mode says.
 */
#include <stddef.h>
#include <sys/types.h>

#define ACL_READ   4U
#define ACL_SEARCH 1U /* of a folder: to reach what is in it */

/* These users, and no others, have these rights beside the mode's; each user once. count 0: the list is
 * taken off. fd: of a file or folder of our own, not opened with O_PATH. 0 or negative errno; -EOPNOTSUPP:
 * the file system has no lists of rights. */
int acl_allow(int fd, const uid_t *user, size_t count, unsigned rights);
