/* SPDX-License-Identifier: Apache-2.0 */
#include "object/bookkeeping.h"

static bool ends_with(const char *text, size_t size, const char *end)
{
        size_t length = strlen(end);

        return size >= length && memcmp(text + size - length, end, length) == 0;
}

bool bookkeeping_is_key(struct span key, const char *operator_name, const char *name)
{
        const char *text = key.start + 1, *slash;
        size_t size = key.size, prefix, rest;

        if (!key.start || size < 2 || key.start[0] != '"')
                return false;
        size -= 2;
        slash = memchr(text, '/', size);
        if (!slash)
                return false;
        prefix = (size_t)(slash - text);
        rest = size - prefix - 1;
        if (operator_name && (prefix != strlen(operator_name) || memcmp(text, operator_name, prefix) != 0))
                return false;
        return ends_with(slash + 1, rest, name) &&
               (rest == strlen(name) || slash[rest - strlen(name)] == '.');
}

bool bookkeeping_has_word(const char *list, struct span word)
{
        while (list && *list) {
                size_t size = strcspn(list, ",");

                if (word.size == size + 2 && memcmp(word.start + 1, list, size) == 0)
                        return true;
                list += size;
                list += *list == ',';
        }
        return false;
}
