/* SPDX-License-Identifier: Apache-2.0 */
#include "object/namespace.h"

#include <string.h>

/* The last '*' takes as many bytes as it must; an earlier one never needs to be asked again. */
static bool match(const char *pattern, const char *name, const char *end)
{
        const char *star = NULL, *tried = NULL;

        while (name < end) {
                if (*pattern == '*') {
                        star = ++pattern;
                        tried = name;
                } else if (*pattern && (*pattern == '?' || *pattern == *name)) {
                        pattern++;
                        name++;
                } else if (star) {
                        pattern = star;
                        name = ++tried;
                } else {
                        return false;
                }
        }
        while (*pattern == '*')
                pattern++;
        return *pattern == '\0';
}

bool namespaces_are_patterns(const struct record_string *pattern, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (pattern[i].value[0] == '!' || strpbrk(pattern[i].value, "*?"))
                        return true;
        return false;
}

bool namespace_match(const struct record_string *pattern, size_t count, const char *name, size_t length)
{
        bool included = false, any_inclusion = false;

        for (size_t i = 0; i < count; i++) {
                bool exclusion = pattern[i].value[0] == '!';
                bool matches = match(pattern[i].value + exclusion, name, name + length);

                if (exclusion && matches)
                        return false;
                if (!exclusion) {
                        any_inclusion = true;
                        included = included || matches;
                }
        }
        return included || !any_inclusion;
}
