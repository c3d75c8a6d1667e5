/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rows in memory: a hash table by watch, key and UID, the order of their last use, and a list of those that
 * are not written yet (dirty). The cache owns its rows; a pointer to one is valid until the next call that
 * adds or drops rows. Zeros are an empty cache. Nothing here reads or writes the database.
 */
#include <stddef.h>

#include "ledger/row/row.h"

#define CACHE_ROWS 4096 /* more than a watch may announce before its keys are handled */

/* The texts of a run. */
#define RUN_TEXT(kind, index, number, column, field) IF_TEXT_##kind(RUN_TEXT_##field, )
enum run_text { LEDGER_RUN(RUN_TEXT) RUN_TEXTS };

struct cached_row {
        struct cached_row *chain, *newer, *older, *next_dirty;
        uint64_t hash;
        const char *watch;
        struct ledger_row row;
        struct ledger_run run; /* valid when has_run */
        char *run_text[RUN_TEXTS];
        bool exists;  /* in the ledger, as callers see it */
        bool on_disk; /* in the database, as `index` and `checksum` say */
        bool dirty, has_run;
        bool blank; /* only its names are known: before the first run */
        uint64_t checksum;
        struct row_index index;
        size_t names_max; /* bytes */
        char names[];     /* watch, key and UID, each with its final zero */
};

/* All rows that the database has from one that was asked for up to the next one are in the cache. */
struct known_rows {
        const struct cached_row *asked; /* NULL if nothing is known */
        char *next_key, *next_uid;      /* NULL if its watch has no other row */
};

struct row_cache {
        struct cached_row *bucket[CACHE_ROWS];
        struct cached_row *newest, *oldest;    /* by their last use */
        struct cached_row *dirty, *last_dirty; /* in the order of change: neighbours share pages */
        struct cached_row *spare;              /* dropped rows, to be recycled; linked by `chain` */
        size_t count, dirty_count;
        struct known_rows known;
};

/* NULL: not in the cache. A row that is found becomes the newest. */
struct cached_row *cache_find(struct row_cache *cache, const char *watch, const char *key, const char *uid);
/* Adds a row that does not exist, with empty texts. NULL: no memory. */
struct cached_row *cache_add(struct row_cache *cache, const char *watch, const char *key, const char *uid);
bool cache_is_full(const struct row_cache *cache);
void cache_make_room(struct row_cache *cache); /* drops the oldest quarter; dirty rows stay */
void cache_forget(struct row_cache *cache, struct cached_row *cached); /* drops a row that is not dirty */
void cache_clear(struct row_cache *cache, bool dirty_too);             /* and frees the spare rows */
/* See struct known_rows. What is known is forgotten when a row is dropped, or there is no memory for it. */
void cache_know(struct row_cache *cache, const struct cached_row *asked, const char *next_key,
                const char *next_uid);
bool cache_is_next(const struct row_cache *cache, const struct cached_row *asked);
/* Whether the database does not have this row, which was not in the cache. */
bool cache_knows_of_none(const struct row_cache *cache, const struct cached_row *asked);
void cache_mark_dirty(struct row_cache *cache, struct cached_row *cached);

/* Copies all but the names into the cached row. 0, -ENOMEM. */
int cached_keep_row(struct cached_row *cached, const struct ledger_row *row);
int cached_keep_run(struct cached_row *cached, const struct ledger_run *run);
