/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Folders of our own. A folder in which others can put something is refused. So is one that others could
 * replace, because they may write to a folder above it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

/* Makes the folder (0700) if it is missing, and checks each part of its path, links followed. Each part must
 * belong to us or to root, and must not be writable by others. Exceptions: a folder above with the sticky
 * bit (as /tmp of /tmp/x), a group that we are in, and, in a container, a folder above that is the root of a
 * volume. *ret: the path without links, for all that follows. -EPERM, -ENOTDIR: the folder must not be used; anything
 * else: it cannot be made. */
int folder_own(const char *path, char **ret, struct error *error);

/* Whether this is the root of a volume of a container that everybody in it may write, as an emptyDir is: then
 * a folder in it, FOLDER_IN_VOLUME, is used. */
bool folder_is_open_volume(const char *path);
#define FOLDER_IN_VOLUME "reconciled"

/* Whether we may read a file for somebody who may not read all that we do: either it is the file of that user (st: of the
 * open file), or nobody but root and we decide which file the absolute path leads to: each folder on the way, and each link
 * that is followed, belongs to one of us and is not writable by others. reader NOBODY: the file must be root's or ours as
 * well, since it names others. -EPERM with the part that is another's; or why it cannot be told. */
int file_check_source(const char *path, const struct stat *st, uid_t reader, struct error *error);
#define NOBODY ((uid_t)-1)
/* Whether others than root and we decide which file the absolute path leads to, what is in it, or whether there is one:
 * that it cannot be read may be their doing. */
bool file_is_of_others(const char *path);

/* Checks an entry of a folder of our own: we (or root) must have made it and all that is in it, and it must
 * be no link. 0 as well if there is no such entry. */
int folder_check_entry(const char *folder, const char *name, struct error *error);

/* Whether what is written below this folder stays in memory (tmpfs, ramfs). (Swap is the machine's affair.) */
bool memory_holds(const char *path);
#define MEMORY_SHARED "/dev/shm" /* where a machine without a runtime directory in memory has some */

/* Removes a folder with all that is in it, and stops at the first failure. Follows no link, even if somebody puts one in
 * place of a folder meanwhile. Returns 0, also if there is no such folder, or the negative errno. */
int folder_remove(const char *path);
