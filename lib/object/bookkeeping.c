/* SPDX-License-Identifier: Apache-2.0 */
#include "object/bookkeeping.h"

#include <string.h>

static bool span_ends_with(const char *text, size_t size, const char *end)
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
        return span_ends_with(slash + 1, rest, name) &&
               (rest == strlen(name) || slash[rest - strlen(name)] == '.');
}

#define WORD_MAX 512

bool bookkeeping_next_word(const char **list, char *word, size_t size)
{
        size_t length = *list ? strcspn(*list, ",") : 0;

        if (length == 0 || length >= size)
                return false;
        memcpy(word, *list, length);
        word[length] = '\0';
        *list += length;
        *list += **list == ',';
        return true;
}

bool bookkeeping_has_word(const char *list, struct span word)
{
        char name[WORD_MAX];

        while (bookkeeping_next_word(&list, name, sizeof(name)))
                if (scan_string_equals(word, name))
                        return true;
        return false;
}

static bool is_in_list(struct span list, const char *finalizers)
{
        struct scan_walk walk;

        SCAN_ELEMENTS(walk, list)
                if (bookkeeping_has_word(finalizers, walk.value))
                        return true;
        return false;
}

int finalizer_look(const char *json, size_t size, const char *finalizers, struct finalizer_view *ret)
{
        struct scan_object object;
        int r = scan_identity(json, size, &object);

        if (r < 0)
                return r;
        *ret = (struct finalizer_view){
                .ours = is_in_list(object.finalizers, finalizers),
                .deleting = object.deletion_timestamp.start != NULL,
        };
        return 0;
}
