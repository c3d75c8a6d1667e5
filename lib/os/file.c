/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "os/syscall.h"

int file_open(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        return fd < 0 ? -errno : fd;
}

int file_read(const char *path, size_t max, char **ret, size_t *ret_size)
{
        _cleanup_close_ int fd = file_open(path);

        return fd < 0 ? fd : file_read_from(fd, max, ret, ret_size);
}

int file_read_from(int fd, size_t max, char **ret, size_t *ret_size)
{
        _cleanup_free_ char *data = NULL;
        size_t used = 0, room;
        struct stat st;
        ssize_t r;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        if ((size_t)st.st_size > max)
                return -EFBIG;
        room = (size_t)st.st_size;
        data = malloc(room + 1);
        if (!data)
                return -ENOMEM;
        while (used < room && (r = sys_read(fd, data + used, room - used)) != 0) {
                if (r < 0)
                        return (int)r;
                used += (size_t)r;
        }
        data[used] = '\0';
        *ret = TAKE_PTR(data);
        *ret_size = used;
        return 0;
}

int file_write_all(int fd, const void *bytes, size_t size)
{
        const char *next = bytes;

        while (size > 0) {
                ssize_t written = sys_write(fd, next, size);

                if (written < 0)
                        return (int)written;
                next += written;
                size -= (size_t)written;
        }
        return 0;
}

static int write_new(const char *path, const void *bytes, size_t size, const struct file_rules *rules)
{
        _cleanup_close_ int fd = -1;
        int r = 0;

        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, rules->mode);
        if (fd < 0)
                return -errno;
        if (rules->prepare)
                r = rules->prepare(fd, rules->userdata);
        if (r >= 0)
                r = file_write_all(fd, bytes, size);
        return r >= 0 && rules->durable && fsync(fd) < 0 ? -errno : r;
}

static int sync_folder_of(const char *path)
{
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

        return folder ? file_sync_folder(folder) : -ENOMEM;
}

int file_replace(const char *path, const char *temporary, const void *bytes, size_t size,
                 const struct file_rules *rules)
{
        int r = write_new(temporary, bytes, size, rules);

        if (r >= 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(temporary);
                return r;
        }
        return rules->durable ? sync_folder_of(path) : 0;
}

int file_sync_folder(const char *folder)
{
        _cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

char *program_path(const char *folder, const char *name)
{
        const char *libexec = getenv("RECONCILED_LIBEXECDIR");
        char self[4096], *path, *slash;
        ssize_t length;

        if (libexec)
                return format_string("%s/%s", libexec, name);
        length = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (length > 0) {
                self[length] = '\0';
                slash = strrchr(self, '/');
                path = format_string("%.*s/../%s/%s", (int)(slash - self), self, folder, name);
                if (!path || access(path, X_OK) == 0)
                        return path;
                free(path);
        }
        return format_string(RECONCILED_LIBEXECDIR "/%s", name);
}

char *file_in_path(const char *command)
{
        const char *path = getenv("PATH");

        for (path = path ? path : "/usr/bin:/bin"; *path;) {
                size_t length = strcspn(path, ":");
                char *candidate = format_string("%.*s/%s", (int)length, path, command);

                if (!candidate || (length > 0 && access(candidate, X_OK) == 0))
                        return candidate;
                free(candidate);
                path += length + (path[length] == ':');
        }
        errno = ENOENT;
        return NULL;
}
