/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

#define MAGIC_TMPFS 0x01021994
#define MAGIC_RAMFS 0x858458f6

#define FOLDER_FDS 16

bool memory_holds(const char *path)
{
        struct statfs st;

        return statfs(path, &st) == 0 && ((unsigned long)st.f_type == MAGIC_TMPFS ||
                                          ((unsigned long)st.f_type & 0xffffffff) == MAGIC_RAMFS);
}

static int remove_entry(const char *path, const struct stat *st _unused_, int type _unused_,
                        struct FTW *place _unused_)
{
        return remove(path) < 0 && errno != ENOENT ? errno : 0;
}

int folder_remove(const char *path)
{
        int r = nftw(path, remove_entry, FOLDER_FDS, FTW_DEPTH | FTW_PHYS);

        return r < 0 ? (errno == ENOENT ? 0 : -errno) : -r;
}
