/* SPDX-License-Identifier: Apache-2.0 */
#include "os/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "os/folder.h"

#define NAME "reconciledctl-"

static const char *temporary_base(void)
{
        const char *base = getenv("TMPDIR");

        return base && base[0] ? base : "/tmp";
}

/* ---- what was left */

/* Only a user who may read the folder can hold its lock: its owner. */
static void judge_folder(const char *base, const char *name)
{
        _cleanup_close_ int fd = -1;
        struct stat st;
        _cleanup_free_ char *path = format_string("%s/%s", base, name);

        if (!path)
                return;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
                (void)folder_remove(path);
}

static void sweep_base(const char *base)
{
        DIR *directory = opendir(base);
        struct dirent *entry;

        while (directory && (entry = readdir(directory)))
                if (strncmp(entry->d_name, NAME, strlen(NAME)) == 0)
                        judge_folder(base, entry->d_name);
        if (directory)
                closedir(directory);
}

void temporary_folders_sweep(void)
{
        sweep_base(temporary_base());
        sweep_base(MEMORY_SHARED);
}

/* ---- a new one */

static int temporary_lock(const char *path, int fd, struct error *error)
{
        struct stat ours, there;

        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK
                               ? 0
                               : error_set(error, -errno, "%s cannot be locked: %s", path, strerror(errno));
        return fstat(fd, &ours) >= 0 && lstat(path, &there) >= 0 && ours.st_ino == there.st_ino &&
               ours.st_dev == there.st_dev;
}

/* 0: somebody else took it for one that was left. 1: its descriptor stays open, and the folder locked, until
 * this process has ended. */
static int take_temporary(const char *path, struct error *error)
{
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

        if (fd < 0)
                return errno == ENOENT ? 0 : error_set(error, -errno, "%s: %s", path, strerror(errno));
        r = temporary_lock(path, fd, error);
        if (r <= 0)
                close(fd);
        return r;
}

int temporary_folder_new(bool in_memory, char **ret, struct error *error)
{
        const char *base = temporary_base();
        int r = 0;

        temporary_folders_sweep();
        if (in_memory && !memory_holds(base) && memory_holds(MEMORY_SHARED))
                base = MEMORY_SHARED;
        while (r == 0) {
                _cleanup_free_ char *path = format_string("%s/" NAME "XXXXXX", base);

                if (!path)
                        return error_set(error, -ENOMEM, "no memory");
                if (!mkdtemp(path))
                        return error_set(error, -errno, "%s: %s", path, strerror(errno));
                r = take_temporary(path, error);
                if (r > 0)
                        *ret = TAKE_PTR(path);
                else if (r < 0)
                        (void)folder_remove(path);
        }
        return r < 0 ? r : 0;
}

void temporary_folder_remove(const char *path)
{
        if (path)
                (void)folder_remove(path);
}
