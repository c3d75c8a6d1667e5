/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The keys of the configuration. Private to config/. */
#include "config/internal.h"

enum key_kind {
        KEY_TEXT,
        KEY_DURATION, /* min and max in usec */
        KEY_UNSIGNED, /* min and max */
        KEY_TEXTS,    /* list of strings: char ** and a size_t after it */
        KEY_TRIGGER,
        KEY_BOOL,
        KEY_SIZE, /* bytes, with a unit */
        KEY_MILLI, /* "2", "0.5" or "500m"; min and max in thousandths; `choice`: the word for what it counts */
        KEY_CHOICE,  /* one of the words in `choice`; its index is the enum's value */
        KEY_MAPPING, /* keys; offset, if not 0: of a bool that is set if the mapping is there */
        KEY_KINDS,   /* list of mappings of `keys`: struct config_owned * and a size_t after it */
        KEY_PAIRS, /* mapping of the author's own names to texts: struct config_pair * and a size_t after */
        KEY_WATCHES, /* list of mappings of `keys`: each a watch */
        KEY_WATCH,   /* one such mapping */
};

struct key_table;

struct key {
        const char *name;
        enum key_kind kind;
        size_t offset; /* in the struct of the table */
        uint64_t min, max;
        const struct key_table *keys;
        bool required;
        const char *const *choice; /* ends with NULL */
};

struct key_table {
        const struct key *key;
        size_t count;
};

extern const struct key_table config_table, watch_table, startup_table;
extern const struct key_table
        due_table; /* the keys of `schedules` and `startup` that no watch of `watches` has */

void table_done(const struct key_table *table, void *target); /* frees what its keys hold */
