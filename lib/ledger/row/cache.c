/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row that a turn of the loop changes is written once, by ledger_commit(), however often it was changed; a
 * row that was read for a change is not read again for its run and for the end of that run. The number of rows
 * is bounded, but rows that are not written yet are never dropped, except by a commit that failed.
 */
#include "ledger/row/cache.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/short-hash.h"

#define NAMES_MIN 128 /* watch, key and uid of most objects */

static char nothing[] = ""; /* most of a row's texts are empty */

static void text_forget(char **text)
{
        if (*text != nothing)
                free(*text);
        *text = nothing;
}

static int text_keep(char **kept, const char *text, size_t max)
{
        char *copy = nothing;

        if (!text)
                text = "";
        if (strcmp(*kept, text) == 0)
                return 0;
        if (text[0] && !(copy = strndup(text, max)))
                return -ENOMEM;
        text_forget(kept);
        *kept = copy;
        return 0;
}

#define LONG_MAX_SIZE ((size_t)PTRDIFF_MAX - 1)

/* For each text: it is kept; it goes where the kept text is; it is forgotten; it is empty. */
#define MAX_TEXT LEDGER_TEXT_MAX
#define MAX_LONG LONG_MAX_SIZE
#define KEEP(kind, index, number, column, field)                                                            \
        IF_TEXT_##kind(if (r >= 0) r = text_keep(&cached->row.field, row->field, MAX_##kind);)
#define KEPT(kind, index, number, column, field)   IF_TEXT_##kind(kept.field = cached->row.field;)
#define FORGET(kind, index, number, column, field) IF_TEXT_##kind(text_forget(&cached->row.field);)
#define EMPTY(kind, index, number, column, field)  IF_TEXT_##kind(cached->row.field = nothing;)

int cached_keep_row(struct cached_row *cached, const struct ledger_row *row)
{
        struct ledger_row kept = *row;
        int r = 0;

        LEDGER_STATE(KEEP)
        if (r < 0)
                return r;
        kept.key = cached->row.key;
        kept.uid = cached->row.uid;
        LEDGER_STATE(KEPT)
        cached->row = kept;
        return 0;
}

#define KEEP_RUN(kind, index, number, column, field)                                                        \
        IF_TEXT_##kind(if (r >= 0) r = text_keep(&cached->run_text[RUN_TEXT_##field], run->field,           \
                                                 LEDGER_TEXT_MAX);)

#define KEPT_RUN_NUMBER(field)                       run->field
#define KEPT_RUN_TEXT(field)                         cached->run_text[RUN_TEXT_##field]
#define KEPT_RUN(kind, index, number, column, field) .field = KEPT_RUN_##kind(field),

int cached_keep_run(struct cached_row *cached, const struct ledger_run *run)
{
        int r = 0;

        LEDGER_RUN(KEEP_RUN)
        if (r >= 0)
                cached->run = (struct ledger_run){LEDGER_RUN(KEPT_RUN)};
        return r;
}

static void cached_done(struct cached_row *cached)
{
        LEDGER_STATE(FORGET)
}

/* Many are dropped at once, and as many come: to malloc() that is fragments to be joined and split again.
 * With the words of its last run: those of the next row are mostly the same. Each new row takes one of those
 * that were dropped, whatever its size: there are never more than the cache has had at once. */
static struct cached_row *cached_new(struct row_cache *cache, size_t names_size)
{
        char *run_text[RUN_TEXTS];
        struct cached_row *spare = cache->spare, *cached = spare;
        size_t names_max = names_size < NAMES_MIN ? NAMES_MIN : names_size;

        if (!spare || spare->names_max < names_size)
                cached = realloc(spare, sizeof(*cached) + names_max);
        else
                names_max = spare->names_max;
        if (!cached)
                return NULL;
        for (size_t i = 0; i < RUN_TEXTS; i++)
                run_text[i] = spare ? cached->run_text[i] : nothing;
        if (spare)
                cache->spare = cached->chain;
        *cached = (struct cached_row){.names_max = names_max};
        memcpy(cached->run_text, run_text, sizeof(run_text));
        return cached;
}

static void free_spare(struct row_cache *cache)
{
        while (cache->spare) {
                struct cached_row *next = cache->spare->chain;

                for (size_t i = 0; i < RUN_TEXTS; i++)
                        text_forget(&cache->spare->run_text[i]);
                free(cache->spare);
                cache->spare = next;
        }
}

/* ---- the table, and the order of use */

static uint64_t row_hash(const char *watch, const char *key, const char *uid)
{
        uint64_t hash = XXH3_64bits(watch, strlen(watch));

        hash = XXH3_64bits_withSeed(key, strlen(key), hash);
        return XXH3_64bits_withSeed(uid, strlen(uid), hash);
}

static void unlink_use(struct row_cache *cache, struct cached_row *cached)
{
        *(cached->newer ? &cached->newer->older : &cache->newest) = cached->older;
        *(cached->older ? &cached->older->newer : &cache->oldest) = cached->newer;
        cached->newer = cached->older = NULL;
}

static void link_newest(struct row_cache *cache, struct cached_row *cached)
{
        cached->older = cache->newest;
        *(cache->newest ? &cache->newest->newer : &cache->oldest) = cached;
        cache->newest = cached;
}

static bool is_row(const struct cached_row *cached, const char *watch, const char *key, const char *uid)
{
        return strcmp(cached->row.key, key) == 0 && strcmp(cached->row.uid, uid) == 0 &&
               strcmp(cached->watch, watch) == 0;
}

struct cached_row *cache_find(struct row_cache *cache, const char *watch, const char *key, const char *uid)
{
        struct cached_row *cached;
        uint64_t hash;

        /* A row is asked for several times in succession: it is read, changed, and gets the end of its
         * run. */
        if (cache->newest && is_row(cache->newest, watch, key, uid))
                return cache->newest;
        hash = row_hash(watch, key, uid);
        cached = cache->bucket[hash % CACHE_ROWS];
        while (cached && (cached->hash != hash || !is_row(cached, watch, key, uid)))
                cached = cached->chain;
        if (cached && cached != cache->newest) {
                unlink_use(cache, cached);
                link_newest(cache, cached);
        }
        return cached;
}

/* ---- what the database has */

static void forget_known(struct row_cache *cache)
{
        free(cache->known.next_key);
        free(cache->known.next_uid);
        cache->known = (struct known_rows){0};
}

void cache_know(struct row_cache *cache, const struct cached_row *asked, const char *next_key,
                const char *next_uid)
{
        struct known_rows *known = &cache->known;

        forget_known(cache);
        *known = (struct known_rows){asked, next_key ? strdup(next_key) : NULL,
                                     next_key ? strdup(next_uid) : NULL};
        if (next_key && (!known->next_key || !known->next_uid))
                forget_known(cache);
}

static int compare_to_key(const struct cached_row *cached, const char *key, const char *uid)
{
        int order = strcmp(cached->row.key, key);

        return order != 0 ? order : strcmp(cached->row.uid, uid);
}

static bool knows_watch(const struct row_cache *cache, const struct cached_row *asked)
{
        return cache->known.asked && strcmp(cache->known.asked->watch, asked->watch) == 0;
}

bool cache_is_next(const struct row_cache *cache, const struct cached_row *asked)
{
        const struct known_rows *known = &cache->known;

        return knows_watch(cache, asked) && known->next_key &&
               compare_to_key(asked, known->next_key, known->next_uid) == 0;
}

bool cache_knows_of_none(const struct row_cache *cache, const struct cached_row *asked)
{
        const struct known_rows *known = &cache->known;

        return knows_watch(cache, asked) &&
               compare_to_key(asked, known->asked->row.key, known->asked->row.uid) >= 0 &&
               (!known->next_key || compare_to_key(asked, known->next_key, known->next_uid) < 0);
}

/* ---- rows that go */

void cache_forget(struct row_cache *cache, struct cached_row *cached)
{
        struct cached_row **place = &cache->bucket[cached->hash % CACHE_ROWS];

        while (*place != cached)
                place = &(*place)->chain;
        *place = cached->chain;
        unlink_use(cache, cached);
        cache->count--;
        cached_done(cached);
        forget_known(cache);
        cached->chain = cache->spare;
        cache->spare = cached;
}

struct cached_row *cache_add(struct row_cache *cache, const char *watch, const char *key, const char *uid)
{
        size_t watch_size = strlen(watch) + 1, key_size = strlen(key) + 1, uid_size = strlen(uid) + 1;
        struct cached_row *cached = cached_new(cache, watch_size + key_size + uid_size);
        struct cached_row **bucket;

        if (!cached)
                return NULL;
        cached->watch = memcpy(cached->names, watch, watch_size);
        cached->row.key = memcpy(cached->names + watch_size, key, key_size);
        cached->row.uid = memcpy(cached->names + watch_size + key_size, uid, uid_size);
        LEDGER_STATE(EMPTY)
        cached->hash = row_hash(watch, key, uid);
        bucket = &cache->bucket[cached->hash % CACHE_ROWS];
        cached->chain = *bucket;
        *bucket = cached;
        link_newest(cache, cached);
        cache->count++;
        return cached;
}

bool cache_is_full(const struct row_cache *cache)
{
        return cache->count >= CACHE_ROWS;
}

void cache_make_room(struct row_cache *cache)
{
        struct cached_row *cached = cache->oldest;

        while (cached && cache->count > CACHE_ROWS / 4 * 3) {
                struct cached_row *newer = cached->newer;

                if (!cached->dirty)
                        cache_forget(cache, cached);
                cached = newer;
        }
}

void cache_clear(struct row_cache *cache, bool dirty_too)
{
        struct cached_row *cached = cache->oldest;

        while (cached) {
                struct cached_row *newer = cached->newer;

                if (dirty_too || !cached->dirty)
                        cache_forget(cache, cached);
                cached = newer;
        }
        free_spare(cache);
        if (dirty_too) {
                cache->dirty = NULL;
                cache->dirty_count = 0;
        }
}

void cache_mark_dirty(struct row_cache *cache, struct cached_row *cached)
{
        if (cached->dirty)
                return;
        cached->dirty = true;
        cached->next_dirty = NULL;
        *(cache->dirty ? &cache->last_dirty->next_dirty : &cache->dirty) = cached;
        cache->last_dirty = cached;
        cache->dirty_count++;
}
