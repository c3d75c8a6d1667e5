/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The whole of a regular file, NUL-terminated, owned by the caller. -EFBIG: more than `max` bytes; -EINVAL:
 * not a regular file; or what the system says. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_size);
/* The same in two steps. The file is opened without waiting for anything, whatever it is. */
int file_open(const char *path);
int file_read_from(int fd, size_t max, char **ret, size_t *ret_size);

/* Writes all of it, also when the system takes it in parts. 0 or a negative errno. */
int file_write_all(int fd, const void *bytes, size_t size);

/*
 * Puts a file in the place of another at once: a reader finds the former content or the new one, never a
 * part. The new file is written to `temporary`, of the same folder, and renamed; what lies there is removed
 * first, so nobody else's file or link is written to. 0 or a negative errno; then the former file stays.
 */
struct file_rules {
        mode_t mode;
        bool durable; /* on the disk when it returns, name included */
        int (*prepare)(int fd,
                       const void *userdata); /* sets rights on the empty file; NULL: nothing to do */
        const void *userdata;
};
int file_replace(const char *path, const char *temporary, const void *bytes, size_t size,
                 const struct file_rules *rules);
/* Where a shell finds this command: owned by the caller, or NULL with errno. */
char *file_in_path(const char *command);
int file_sync_folder(const char *folder); /* the names in it are on the disk then; 0 or a negative errno */

/*
 * Where a program of ours is: in $RECONCILED_LIBEXECDIR (tests), else in the build folder when we run from
 * there (folder: of the source tree, "watcher"), else where it was installed. The caller owns the path; NULL
 * on lack of memory.
 */
char *program_path(const char *folder, const char *name);
