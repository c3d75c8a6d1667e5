/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/warning.h"

#include <string.h>
#include <strings.h>

#include "ipc/message.h"

#define NAME "warning:"

static uint64_t hash_of(const char *text)
{
        uint64_t hash = 0xcbf29ce484222325;

        for (; *text; text++)
                hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
        return hash;
}

bool warnings_note(struct warnings *warnings, const char *text)
{
        uint64_t hash = hash_of(text);
        size_t known = warnings->count < WARNINGS_MAX ? warnings->count : WARNINGS_MAX;

        for (size_t i = 0; i < known; i++)
                if (warnings->seen[i] == hash)
                        return false;
        warnings->seen[warnings->count++ % WARNINGS_MAX] = hash;
        return true;
}

bool warning_read(const char *line, size_t size, char ret[static WARNING_TEXT_MAX])
{
        const char *end = line + size, *at;
        size_t used = 0;

        if (size <= strlen(NAME) || strncasecmp(line, NAME, strlen(NAME)) != 0)
                return false;
        while (end > line && (end[-1] == '\r' || end[-1] == '\n'))
                end--;
        at = line + strlen(NAME);
        while (at < end && (*at == ' ' || *at == '\t'))
                at++;
        /* The only code that a Kubernetes server sends: others come from caches on the way. */
        if (end - at < 4 || strncmp(at, "299 ", 4) != 0)
                return false;
        at = memchr(at, '"', (size_t)(end - at));
        if (!at)
                return false;
        for (at++; at < end && *at != '"' && used < WARNING_TEXT_MAX - 1; at++) {
                if (*at == '\\' && at + 1 < end)
                        at++;
                ret[used++] = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
        }
        ret[used] = '\0';
        utf8_clean(ret);
        return used > 0;
}
