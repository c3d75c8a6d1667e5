/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-escape.h"

#include <errno.h>
#include <string.h>

static int hex_value(const char *at, unsigned *ret)
{
        unsigned value = 0;

        for (size_t i = 0; i < 4; i++) {
                char c = at[i];

                if (c >= '0' && c <= '9')
                        value = value << 4 | (unsigned)(c - '0');
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        value = value << 4 | (unsigned)((c | 0x20) - 'a' + 10);
                else
                        return -EBADMSG;
        }
        *ret = value;
        return 0;
}

/* Behind "\u". */
static int decode_unicode(const char **at, const char *end, unsigned *ret)
{
        unsigned low;

        if (end - *at < 4 || hex_value(*at, ret) < 0)
                return -EBADMSG;
        *at += 4;
        if (*ret < 0xd800 || *ret >= 0xe000)
                return 0;
        if (*ret < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u' &&
            hex_value(*at + 2, &low) == 0 && low >= 0xdc00 && low < 0xe000) {
                *at += 6;
                *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
        } else {
                *ret = 0xfffd;
        }
        return 0;
}

int json_escape_decode(const char **at, const char *end, unsigned *ret)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *found;

        if (*at >= end)
                return -EBADMSG;
        if (**at == 'u') {
                (*at)++;
                return decode_unicode(at, end, ret);
        }
        found = memchr(from, **at, sizeof(from) - 1);
        if (!found)
                return -EBADMSG;
        (*at)++;
        *ret = (unsigned char)to[found - from];
        return 0;
}

size_t utf8_encode(unsigned code, char *out)
{
        char *at = out;

        if (code < 0x80) {
                *at++ = (char)code;
                return 1;
        }
        if (code < 0x800) {
                *at++ = (char)(0xc0 | code >> 6);
        } else {
                if (code < 0x10000) {
                        *at++ = (char)(0xe0 | code >> 12);
                } else {
                        *at++ = (char)(0xf0 | code >> 18);
                        *at++ = (char)(0x80 | (code >> 12 & 0x3f));
                }
                *at++ = (char)(0x80 | (code >> 6 & 0x3f));
        }
        *at++ = (char)(0x80 | (code & 0x3f));
        return (size_t)(at - out);
}
