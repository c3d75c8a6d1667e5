/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two configurations by the tables that they are read with: a key that is added there counts. */
#include "config/differ.h"

#include <string.h>

#include "config/table.h"

/* How the lists of the configuration lie in memory: a pointer to the items, and their number after it. */
struct list {
        const char *item;
        size_t count;
};

static bool same_count(const struct list *old, const struct list *new)
{
        return old->count == new->count;
}

static bool same_texts(const struct list *old, const struct list *new)
{
        char *const *a = (char *const *)(const void *)old->item, *const *b = (char *const *)(const void *)new
                                                                                     ->item;

        for (size_t i = 0; i < old->count; i++)
                if (!is_same_text(a[i], b[i]))
                        return false;
        return true;
}

static bool same_pairs(const struct list *old, const struct list *new)
{
        const struct config_pair *a = (const void *)old->item, *b = (const void *)new->item;

        for (size_t i = 0; i < old->count; i++)
                if (!is_same_text(a[i].name, b[i].name) || !is_same_text(a[i].value, b[i].value))
                        return false;
        return true;
}

static bool same_value(const struct key *key, const void *a, const void *b)
{
        switch (key->kind) {
        case KEY_TEXT:
                return is_same_text(*(char *const *)a, *(char *const *)b);
        case KEY_TEXTS:
                return same_count(a, b) && same_texts(a, b);
        case KEY_PAIRS:
                return same_count(a, b) && same_pairs(a, b);
        case KEY_KINDS: /* what is in it is compared by its own table */
                return same_count(a, b);
        case KEY_DURATION:
        case KEY_SIZE:
                return *(const uint64_t *)a == *(const uint64_t *)b;
        case KEY_UNSIGNED:
        case KEY_CHOICE:
        case KEY_MILLI:
        case KEY_TRIGGER:
                return *(const unsigned *)a == *(const unsigned *)b;
        case KEY_BOOL:
        case KEY_MAPPING: /* whether it is there */
                return *(const bool *)a == *(const bool *)b;
        case KEY_WATCHES:
        case KEY_WATCH:
                break;
        }
        return true;
}

static bool table_differs(const struct key_table *table, const char *path, const void *old, const void *new,
                          char *ret_key, size_t size);

/* Kinds: each of the list has the keys of the same table. */
static bool kinds_differ(const struct key *key, const char *path, const struct list *old,
                         const struct list *new, char *ret_key, size_t size)
{
        for (size_t i = 0; i < old->count; i++) {
                size_t at = i * sizeof(struct config_owned);

                if (table_differs(key->keys, path, old->item + at, new->item + at, ret_key, size))
                        return true;
        }
        return false;
}

static bool key_differs(const struct key *key, const char *path, const char *old, const char *new,
                        char *ret_key, size_t size)
{
        bool somewhere = key->kind != KEY_MAPPING || key->offset > 0;
        const void *a = old + key->offset, *b = new + key->offset;

        if (somewhere && !same_value(key, a, b)) {
                snprintf(ret_key, size, "%s", path);
                return true;
        }
        if (key->kind == KEY_KINDS)
                return kinds_differ(key, path, a, b, ret_key, size);
        if (key->kind == KEY_WATCHES || key->kind == KEY_WATCH) /* watches_differ() */
                return false;
        return key->keys && table_differs(key->keys, path, old, new, ret_key, size);
}

static bool table_differs(const struct key_table *table, const char *path, const void *old, const void *new,
                          char *ret_key, size_t size)
{
        for (size_t i = 0; i < table->count; i++) {
                char inner[DIFFER_KEY_SIZE];

                snprintf(inner, sizeof(inner), "%s%s%s", path, path[0] ? "." : "", table->key[i].name);
                if (key_differs(&table->key[i], inner, old, new, ret_key, size))
                        return true;
        }
        return false;
}

/* What the table does not have: `serve` and `plugin` have become `exec`, and the user of that name may be
 * another one. */
static bool same_handler(const struct config_handler *old, const struct config_handler *new)
{
        return old->kind == new->kind && old->uid == new->uid &&
               old->gid == new->gid &&is_same_text(old->home, new->home);
}

/* What a watch owns or is related to has watches of its own in the list, which differ where its own does. */
static bool watches_differ(const struct config *old, const struct config *new, char *ret_key, size_t size)
{
        snprintf(ret_key, size, "watches");
        if (old->watch_count != new->watch_count)
                return true;
        for (size_t i = 0; i < old->watch_count; i++) {
                const struct config_watch *a = &old->watch[i], *b = &new->watch[i];
                char path[DIFFER_KEY_SIZE];

                if (strcmp(a->name, b->name) != 0)
                        return true;
                snprintf(path, sizeof(path), "watches[%s]", a->name);
                if (table_differs(&watch_table, path, a, b, ret_key, size) ||
                    table_differs(&due_table, path, a, b, ret_key, size))
                        return true;
                if (same_handler(&a->handler, &b->handler))
                        continue;
                snprintf(ret_key, size, "%s.handler", path);
                return true;
        }
        return false;
}

bool config_differs(const struct config *old, const struct config *new, char *ret_key, size_t size)
{
        return table_differs(&config_table, "", old, new, ret_key, size) ||
               watches_differ(old, new, ret_key, size);
}
