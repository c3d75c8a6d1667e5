/* SPDX-License-Identifier: Apache-2.0 */
/* The file is read for each request, so that a new token is in force at once. */
#include "gateway/token.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "os/syscall.h"

#define TOKEN_MAX 4096
#define SCHEME    "Bearer "

/* Takes as long for a wrong token as for the right one. */
static bool equal(const char *a, size_t a_size, const char *b, size_t b_size)
{
        unsigned char difference = a_size != b_size;

        for (size_t i = 0; i < a_size; i++)
                difference |= (unsigned char)(a[i] ^ b[i < b_size ? i : 0]);
        return difference == 0;
}

bool gateway_token_matches(const char *file, const char *authorization)
{
        _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        char token[TOKEN_MAX + 1];
        ssize_t size = fd < 0 ? -1 : sys_read(fd, token, TOKEN_MAX);
        bool matches = false;

        while (size > 0 && (token[size - 1] == '\n' || token[size - 1] == '\r'))
                size--;
        /* A file that is not there or empty lets nobody in. */
        if (size > 0 && authorization && strncasecmp(authorization, SCHEME, strlen(SCHEME)) == 0) {
                authorization += strlen(SCHEME);
                matches = equal(authorization, strlen(authorization), token, (size_t)size);
        }
        explicit_bzero(token, sizeof(token));
        return matches;
}
