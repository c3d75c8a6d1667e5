/* SPDX-License-Identifier: Apache-2.0 */
#include "kubeconfig/pem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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
