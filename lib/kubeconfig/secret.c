/* SPDX-License-Identifier: Apache-2.0 */
#include "kubeconfig/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "kubeconfig/pem.h"
#include "os/syscall.h"

#define FILE_MAX ((size_t)1024 * 1024)

void secret_wipe(char **secret)
{
        if (*secret)
                explicit_bzero(*secret, strlen(*secret));
        free(*secret);
        *secret = NULL;
}

int secret_read_file(const char *path, char **ret, struct error *error)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        size_t used = 0;
        struct stat st;
        char *data;
        ssize_t r;

        if (fd < 0)
                return error_set(error, -errno, "%s: cannot be read: %s", path, strerror(errno));
        if (fstat(fd, &st) < 0)
                return error_set(error, -errno, "%s: cannot be read: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return error_set(error, -EINVAL, "%s: is not a regular file", path);
        if ((size_t)st.st_size > FILE_MAX)
                return error_set(error, -EFBIG, "%s: is larger than 1 MiB", path);
        data = calloc(1, FILE_MAX + 1);
        if (!data)
                return error_set(error, -ENOMEM, "no memory");
        while ((r = sys_read(fd, data + used, FILE_MAX - used)) > 0)
                used += (size_t)r;
        if (r >= 0 && strlen(data) == used) {
                *ret = strdup(data);
                r = *ret ? 0 : -ENOMEM;
        } else if (r >= 0) {
                r = -EINVAL;
        }
        explicit_bzero(data, used);
        free(data);
        if (r < 0)
                return error_set(error, (int)r, "%s: %s", path,
                                 r == -EINVAL ? "holds a NUL byte" : strerror((int)-r));
        return 0;
}

static void trim(char *text)
{
        size_t start = strspn(text, " \t\r\n"), length = strlen(text) - start;

        memmove(text, text + start, length + 1);
        while (length > 0 && strchr(" \t\r\n", text[length - 1]))
                text[--length] = '\0';
}

int secret_read_token(const char *path, char **ret, struct error *error)
{
        char *token = NULL;
        const char *problem;
        int r = secret_read_file(path, &token, error);

        if (r < 0 || !token)
                return r;
        trim(token);
        problem = token_problem(token);
        if (problem) {
                secret_wipe(&token);
                return error_set(error, -EINVAL, "%s: %s", path, problem);
        }
        *ret = token;
        return 0;
}
