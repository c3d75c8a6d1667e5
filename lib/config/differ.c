/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two configurations of the whole operator, by the tables that they are read with: a key that is
 * added there counts, unless it stands in the list below.
 */
#include "config/differ.h"

#include <string.h>

#include "config/table.h"

/* Looked up each time that they are needed, or told to workers, each of which a reload replaces. */
static const char *const live[] = {"stop.grace", "record"};

static bool is_live(const char *key)
{
        for (size_t i = 0; i < ELEMENTS(live); i++)
                if (strcmp(live[i], key) == 0)
                        return true;
        return false;
}

static bool same_text(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_texts(const void *a, const void *b)
{
        struct list {
                char **text;
                size_t count;
        } const *old = a, *new = b;

        if (old->count != new->count)
                return false;
        for (size_t i = 0; i < old->count; i++)
                if (!same_text(old->text[i], new->text[i]))
                        return false;
        return true;
}

static bool same_value(const struct key *key, const void *a, const void *b)
{
        switch (key->kind) {
        case KEY_TEXT:
                return same_text(*(char *const *)a, *(char *const *)b);
        case KEY_TEXTS:
                return same_texts(a, b);
        case KEY_DURATION:
        case KEY_SIZE:
                return *(const uint64_t *)a == *(const uint64_t *)b;
        case KEY_UNSIGNED:
        case KEY_CHOICE:
        case KEY_CPU:
        case KEY_TRIGGER:
                return *(const unsigned *)a == *(const unsigned *)b;
        case KEY_BOOL:
        case KEY_MAPPING: /* whether it is there */
                return *(const bool *)a == *(const bool *)b;
        case KEY_KINDS:
        case KEY_PAIRS:
        case KEY_WATCHES:
        case KEY_LATER:
                break;
        }
        return true;
}

static bool differs(const struct key_table *table, const char *path, const struct config *old,
                    const struct config *new, char *ret_key, size_t size)
{
        for (size_t i = 0; i < table->count; i++) {
                const struct key *key = &table->key[i];
                bool somewhere = key->kind != KEY_MAPPING || key->offset > 0;
                char inner[64];

                snprintf(inner, sizeof(inner), "%s%s%s", path, path[0] ? "." : "", key->name);
                if (is_live(inner))
                        continue;
                if (somewhere &&
                    !same_value(key, (const char *)old + key->offset, (const char *)new + key->offset)) {
                        snprintf(ret_key, size, "%s", inner);
                        return true;
                }
                if (key->keys && differs(key->keys, inner, old, new, ret_key, size))
                        return true;
        }
        return false;
}

bool config_differs(const struct config *old, const struct config *new, char *ret_key, size_t size)
{
        return differs(&config_table, "", old, new, ret_key, size);
}
