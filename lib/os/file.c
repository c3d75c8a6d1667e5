/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "os/syscall.h"

int file_read(const char *path, size_t max, char **ret, size_t *ret_size)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        _cleanup_free_ char *data = NULL;
        size_t used = 0, room;
        struct stat st;
        ssize_t r;

        if (fd < 0 || fstat(fd, &st) < 0)
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
