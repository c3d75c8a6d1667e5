/* SPDX-License-Identifier: Apache-2.0 */
#include "store/suspect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define WHY_MAX 300

static char *mark_path(const char *folder)
{
        return format_string("%s/SUSPECT", folder);
}

int store_suspect_mark(const char *folder, const char *why)
{
        _cleanup_free_ char *path = mark_path(folder);
        _cleanup_close_ int fd = -1;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        /* Only the existence of the file matters; on a full disk the reason is lost. */
        if (write(fd, why, strnlen(why, WHY_MAX)) < 0)
                return 0;
        return 0;
}

int store_suspect_read(const char *folder, char **ret_why)
{
        _cleanup_free_ char *path = mark_path(folder);
        _cleanup_close_ int fd = -1;
        char why[WHY_MAX + 1];
        ssize_t size;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        size = read(fd, why, WHY_MAX);
        why[size > 0 ? size : 0] = '\0';
        *ret_why = strdup(why[0] ? why : "it was found damaged");
        return *ret_why ? 0 : -ENOMEM;
}

int store_suspect_clear(const char *folder)
{
        _cleanup_free_ char *path = mark_path(folder);

        if (!path)
                return -ENOMEM;
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}
