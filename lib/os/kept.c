/* SPDX-License-Identifier: Apache-2.0 */
#include "os/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "os/file.h"

#define TEXT_MAX ((size_t)4 * 1024 * 1024)

static char *kept_path(const char *folder, const char *id)
{
        return format_string("%s/%s", folder, id);
}

static bool is_kept_id(const char *id)
{
        return strlen(id) == KEPT_ID_SIZE - 1 && strspn(id, "0123456789abcdef") == KEPT_ID_SIZE - 1;
}

int kept_write(const char *folder, const char *text, size_t size, char id[KEPT_ID_SIZE])
{
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -1;
        uint64_t random[2];
        int r;

        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return -EIO;
        snprintf(id, KEPT_ID_SIZE, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
        path = kept_path(folder, id);
        if (!path)
                return -ENOMEM;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 ? -errno : file_write_all(fd, text, size);
        if (fd >= 0 && r < 0)
                (void)unlink(path);
        return r;
}

int kept_read(const char *folder, const char *id, char **ret)
{
        _cleanup_free_ char *path = is_kept_id(id) ? kept_path(folder, id) : NULL;
        size_t size;

        if (!is_kept_id(id))
                return -ENOENT;
        return path ? file_read(path, TEXT_MAX, ret, &size) : -ENOMEM;
}

void kept_drop(const char *folder, const char *id)
{
        _cleanup_free_ char *path = is_kept_id(id) ? kept_path(folder, id) : NULL;

        if (path)
                (void)unlink(path);
}
