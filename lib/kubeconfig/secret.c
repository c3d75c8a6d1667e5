/* SPDX-License-Identifier: Apache-2.0 */
#include "kubeconfig/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "os/file.h"

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
        size_t size;
        char *data;
        int r = file_read(path, FILE_MAX, &data, &size);

        if (r == -EINVAL || r == -EFBIG)
                return error_set(error, r, "%s: %s", path,
                                 r == -EINVAL ? "is not a regular file" : "is larger than 1 MiB");
        if (r < 0)
                return error_set(error, r, "%s: cannot be read: %s", path, strerror(-r));
        if (strlen(data) == size) {
                *ret = data;
                return 0;
        }
        explicit_bzero(data, size);
        free(data);
        return error_set(error, -EINVAL, "%s: holds a NUL byte", path);
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

/* Three of them and a token must fit into one CREDENTIAL message. */
#define PEM_MAX   ((size_t)60 * 1024)
#define TOKEN_MAX ((size_t)16 * 1024)

int pem_decode_base64(const char *input, char **ret)
{
        static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        size_t length = strlen(input), used = 0;
        char *output = malloc(length / 4 * 3 + 4);
        unsigned bits = 0, have = 0;

        if (!output)
                return -ENOMEM;
        for (; *input && *input != '='; input++) {
                const char *found = strchr(alphabet, *input);

                if (strchr(" \n\r\t", *input))
                        continue;
                if (!found) {
                        explicit_bzero(output, used);
                        free(output);
                        return -EINVAL;
                }
                bits = (bits << 6 | (unsigned)(found - alphabet)) & 0xffff;
                have += 6;
                if (have >= 8) {
                        have -= 8;
                        output[used++] = (char)(bits >> have & 0xff);
                }
        }
        output[used] = '\0';
        if (strlen(output) != used) {
                explicit_bzero(output, used);
                free(output);
                return -EINVAL;
        }
        *ret = output;
        return 0;
}

static bool is_utf8(const char *text)
{
        size_t left = strlen(text);

        while (left > 0) {
                size_t n = utf8_sequence(text, left);

                if (n == 0)
                        return false;
                text += n;
                left -= n;
        }
        return true;
}

const char *pem_problem(const char *text)
{
        if (strlen(text) > PEM_MAX)
                return "is larger than 60 KiB; name the cluster's own certificate, not a bundle of all "
                       "(without "
                       "certificate-authority the machine's public ones are trusted)";
        if (!strstr(text, "-----BEGIN "))
                return "holds no PEM block (-----BEGIN ...)";
        /* TLS libraries ask the terminal for the password, and wait. */
        if (strstr(text, "-----BEGIN ENCRYPTED ") || strstr(text, "Proc-Type: 4,ENCRYPTED"))
                return "is encrypted, and there is nobody here to type the password; decrypt it (openssl "
                       "pkey)";
        return is_utf8(text) ? NULL : "holds bytes that are not text";
}

const char *token_problem(const char *token)
{
        size_t length = strlen(token);

        if (length == 0)
                return "holds no token";
        if (length > TOKEN_MAX)
                return "is larger than 16 KiB";
        /* The token becomes a line of the request's header. */
        for (const char *c = token; *c; c++)
                if (*c <= ' ' || *c > '~')
                        return "holds characters that no token can have";
        return NULL;
}
