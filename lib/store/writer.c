/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: objects, marks, tombstones, in transactions of many objects. */
#include "store/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/buried.h"
#include "store/disk/entry.h"
#include "store/disk/generation.h"
#include "store/internal.h"

#define VISIT_PAGE 256

void store_stop(struct store *store)
{
        mdb_txn_abort(TAKE_PTR(store->transaction));
        store->batch_objects = store->batch_bytes = 0;
        store->stopped = true;
}

bool store_in_transaction(const struct store *store)
{
        return store->transaction;
}

bool store_commit_due(const struct store *store)
{
        return store->batch_objects >= STORE_BATCH_OBJECTS || store->batch_bytes >= STORE_BATCH_BYTES;
}

bool store_has_objects_to_commit(const struct store *store)
{
        return store->batch_objects > 0;
}

int store_commit(struct store *store)
{
        MDB_txn *transaction;
        int r = store->transaction ? sums_write(store) : 0;

        transaction = TAKE_PTR(store->transaction);
        store->batch_objects = store->batch_bytes = 0;
        if (r < 0)
                mdb_txn_abort(transaction);
        else if (transaction)
                r = environment_commit(store, transaction);
        return r;
}

/* LMDB keys are not const, and never written to. */
static int plain_key(const char *key, MDB_val *ret)
{
        size_t size = strlen(key);

        if (size == 0 || size > KEY_MAX)
                return -ENAMETOOLONG;
        *ret = (MDB_val){size, (void *)(uintptr_t)key};
        return 0;
}

static int get(struct store *store, enum store_table table, MDB_val *key, MDB_val *ret)
{
        int r = store_begin(store);

        return r < 0 ? r : store_errno(mdb_get(store->transaction, store->table[table], key, ret));
}

static int del(struct store *store, enum store_table table, MDB_val *key)
{
        int r = entry_remove(store, table, key);

        if (r >= 0)
                store->batch_objects++;
        return r == -ENOENT ? 0 : r;
}

/* Encodes the record in its place in the database. `object` must not borrow from the store: LMDB may move its
 * pages. */
static int put_record(struct store *store, enum store_table table, MDB_val *key,
                      const struct store_object *object, unsigned flags)
{
        MDB_val value;
        size_t size;
        int r = record_size(object, &size);

        if (r >= 0)
                r = entry_reserve(store, table, key, size, flags, &value);
        if (r < 0)
                return r;
        record_encode(key, object, value.mv_data);
        entry_filled(store, table, key, &value);
        store->batch_objects++;
        store->batch_bytes += size;
        return 0;
}

/* ---- objects */

/* The number of a LIST below a hash of it: a mark that is wrong would hide a deletion, or invent one. */
static uint64_t mark_encode(const MDB_val *key, uint64_t mark)
{
        uint32_t number = (uint32_t)mark;
        uint64_t hash = XXH3_64bits_withSeed(key->mv_data, key->mv_size, number);

        return (hash & ~(uint64_t)UINT32_MAX) | number;
}

static int mark_decode(const MDB_val *key, const MDB_val *value, uint64_t *ret)
{
        uint64_t stored;

        if (value->mv_size != sizeof(stored))
                return -EBADMSG;
        memcpy(&stored, value->mv_data, sizeof(stored));
        if (mark_encode(key, stored) != stored)
                return -EBADMSG;
        *ret = (uint32_t)stored;
        return 0;
}

static int stored_mark(struct store *store, MDB_val *key, uint64_t *ret)
{
        MDB_val value;
        int r = get(store, TABLE_MARKS, key, &value);

        return r < 0 ? r == -ENOENT ? -EBADMSG : r : mark_decode(key, &value, ret);
}

/* A list that fills an empty store comes in the order of the keys, so this key need not be looked for. */
static bool is_behind_all(const struct store *store, const char *key)
{
        return store->in_order && strcmp(key, store->last) > 0;
}

static int find_object(struct store *store, const char *key, bool with_json, struct store_object *ret)
{
        struct store_object borrowed;
        MDB_val mdb_key, value;
        int r = is_behind_all(store, key) ? -ENOENT : plain_key(key, &mdb_key);

        if (r >= 0)
                r = get(store, TABLE_OBJECTS, &mdb_key, &value);
        if (r >= 0)
                r = with_json ? record_decode(&mdb_key, &value, &borrowed)
                              : record_decode_identity(&mdb_key, &value, &borrowed);
        if (r >= 0)
                r = stored_mark(store, &mdb_key, &borrowed.mark);
        return r < 0 ? r : record_copy(&borrowed, with_json, ret);
}

int store_peek(struct store *store, const char *key, struct store_object *ret)
{
        return find_object(store, key, false, ret);
}

int store_get(struct store *store, const char *key, struct store_object *ret)
{
        return find_object(store, key, true, ret);
}

static int put_mark(struct store *store, MDB_val *key, uint64_t mark, unsigned flags)
{
        MDB_val value = {sizeof(mark), &mark};

        mark = mark_encode(key, mark);
        store->batch_objects++;
        store->batch_bytes += value.mv_size;
        return entry_put(store, TABLE_MARKS, key, &value, flags);
}

int store_touch(struct store *store, const char *key, uint64_t mark)
{
        MDB_val mdb_key;
        int r = plain_key(key, &mdb_key);

        return r < 0 ? r : put_mark(store, &mdb_key, mark, 0);
}

int store_put(struct store *store, const struct store_object *object)
{
        unsigned flags = is_behind_all(store, object->key) ? MDB_APPEND : 0;
        MDB_val key;
        int r = plain_key(object->key, &key);

        if (r >= 0)
                r = put_record(store, TABLE_OBJECTS, &key, object, flags);
        if (r >= 0)
                r = put_mark(store, &key, object->mark, flags);
        store->in_order = r >= 0 && flags == MDB_APPEND;
        if (store->in_order)
                memcpy(store->last, object->key, key.mv_size + 1);
        return r;
}

void store_expect_order(struct store *store)
{
        store->in_order = store_count(store) == 0;
        store->last[0] = '\0';
}

int store_remove(struct store *store, const char *key)
{
        MDB_val mdb_key;
        int r = plain_key(key, &mdb_key);

        if (r >= 0)
                r = del(store, TABLE_OBJECTS, &mdb_key);
        return r < 0 ? r : del(store, TABLE_MARKS, &mdb_key);
}

uint64_t store_count(const struct store *store)
{
        return store->sum[TABLE_OBJECTS].entries;
}

/* ---- tombstones */

/* Copies the stored object of the same UID, if there is one: it is to be written again. */
static int stored_state(struct store *store, const struct store_object *last, struct store_object *ret)
{
        struct store_object stored;
        MDB_val key, value;
        int r = plain_key(last->key, &key);

        if (r >= 0)
                r = get(store, TABLE_OBJECTS, &key, &value);
        if (r >= 0)
                r = record_decode(&key, &value, &stored);
        if (r >= 0)
                r = strcmp(stored.uid, last->uid) == 0 ? record_copy(&stored, true, ret) : -ENOENT;
        return r;
}

/* How many bytes of contents a tombstone has; 0 if there is none. */
static int buried_size(struct store *store, MDB_val *key, uint64_t *ret)
{
        struct store_object borrowed = {0};
        MDB_val value;
        int r = get(store, TABLE_TOMBSTONES, key, &value);

        if (r >= 0)
                r = record_decode_unchecked(key, &value, &borrowed);
        *ret = borrowed.json_size;
        return r == -ENOENT ? 0 : r;
}

static int remove_if_same(struct store *store, const struct store_object *object)
{
        struct store_object stored;
        int r = store_peek(store, object->key, &stored);

        if (r >= 0) {
                r = strcmp(stored.uid, object->uid) == 0 ? store_remove(store, object->key) : 0;
                store_object_done(&stored);
        }
        return r == -ENOENT ? 0 : r;
}

int store_bury(struct store *store, const struct store_object *last)
{
        _cleanup_(store_object_done) struct store_object stored = {0};
        struct store_object object = *last;
        char buffer[KEY_MAX];
        uint64_t before;
        bool alone = false;
        MDB_val key;
        int r = tombstone_key(last->key, last->uid, buffer, &key);

        if (r >= 0 && last->json_size == 0) {
                r = stored_state(store, last, &stored);
                if (r >= 0) {
                        object.json = stored.json;
                        object.json_size = stored.json_size;
                        object.resource_version = stored.resource_version;
                        object.fingerprint = stored.fingerprint;
                        object.held = stored.held && !last->unheld;
                }
                r = r == -ENOENT ? 0 : r;
        }
        if (r >= 0)
                r = buried_size(store, &key, &before);
        if (r >= 0 && object.json_size > before) {
                r = buried_has_room(store, last->key, object.json_size - before);
                alone = r == 0;
                if (alone)
                        object.json_size = 0;
        }
        if (r >= 0)
                r = put_record(store, TABLE_TOMBSTONES, &key, &object, 0);
        if (r >= 0)
                r = buried_change(store, last->key, before, object.json_size);
        if (r >= 0)
                r = remove_if_same(store, last);
        return r < 0 ? r : alone ? STORE_BURIED_ALONE : 0;
}

int store_tombstone_remove(struct store *store, const char *key, const char *uid)
{
        char buffer[KEY_MAX];
        uint64_t before;
        MDB_val mdb_key;
        int r = tombstone_key(key, uid, buffer, &mdb_key);

        if (r >= 0)
                r = buried_size(store, &mdb_key, &before);
        if (r >= 0)
                r = buried_change(store, key, before, 0);
        return r < 0 ? r : del(store, TABLE_TOMBSTONES, &mdb_key);
}

bool store_tombstone_exists(struct store *store, const char *key, const char *uid)
{
        char buffer[KEY_MAX];
        MDB_val mdb_key, value;

        return tombstone_key(key, uid, buffer, &mdb_key) >= 0 &&
               get(store, TABLE_TOMBSTONES, &mdb_key, &value) >= 0;
}

/* ---- visits: pages of copies, so that the visitor may write, and memory stays bounded */

struct visit {
        enum store_table table;
        uint64_t mark; /* TABLE_MARKS: only what is below */
        char after[KEY_MAX];
        size_t after_size;
        struct store_object page[VISIT_PAGE];
        size_t count;
};

static int visit_take_marked(struct store *store, struct visit *visit, MDB_val *key, const MDB_val *value)
{
        char buffer[KEY_MAX + 1];
        uint64_t mark;

        if (key->mv_size > KEY_MAX || mark_decode(key, value, &mark) < 0)
                return -EBADMSG;
        if (mark >= visit->mark)
                return 0;
        memcpy(buffer, key->mv_data, key->mv_size);
        buffer[key->mv_size] = '\0';
        return store_peek(store, buffer, &visit->page[visit->count]) < 0 ? -EBADMSG : 1;
}

static int visit_take_record(struct visit *visit, MDB_val *key, const MDB_val *value)
{
        struct store_object borrowed;
        int r = record_decode_identity(key, value, &borrowed);

        if (r >= 0)
                r = record_copy(&borrowed, false, &visit->page[visit->count]);
        return r < 0 ? r : 1;
}

static int visit_take(struct store *store, struct visit *visit, MDB_val *key, const MDB_val *value)
{
        int r = visit->table == TABLE_MARKS ? visit_take_marked(store, visit, key, value)
                                            : visit_take_record(visit, key, value);

        if (r > 0)
                visit->count++;
        memcpy(visit->after, key->mv_data, key->mv_size);
        visit->after_size = key->mv_size;
        return r;
}

/* Fills the page with what follows `after`. 1 if there may be more. */
static int visit_fill(struct store *store, struct visit *visit)
{
        MDB_val key = {visit->after_size, visit->after}, value;
        MDB_cursor *cursor;
        int r = store_begin(store);

        if (r >= 0)
                r = store_errno(mdb_cursor_open(store->transaction, store->table[visit->table], &cursor));
        if (r < 0)
                return r;
        r = store_errno(
                mdb_cursor_get(cursor, &key, &value, visit->after_size > 0 ? MDB_SET_RANGE : MDB_FIRST));
        if (r >= 0 && visit->after_size == key.mv_size && visit->after_size > 0 &&
            memcmp(key.mv_data, visit->after, key.mv_size) == 0)
                r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
        while (r >= 0 && visit->count < VISIT_PAGE) {
                r = visit_take(store, visit, &key, &value);
                if (r >= 0)
                        r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
        }
        mdb_cursor_close(cursor);
        if (r == -ENOENT)
                return 0;
        return r < 0 ? r : 1;
}

static int visit_table(struct store *store, enum store_table table, uint64_t mark, store_visit_t callback,
                       void *userdata)
{
        _cleanup_free_ struct visit *visit = calloc(1, sizeof(*visit));
        int more, r = 0;

        if (!visit)
                return -ENOMEM;
        visit->table = table;
        visit->mark = mark;
        do {
                more = visit_fill(store, visit);
                for (size_t i = 0; i < visit->count; i++) {
                        if (more >= 0 && r >= 0)
                                r = callback(&visit->page[i], userdata);
                        store_object_done(&visit->page[i]);
                }
                visit->count = 0;
                if (more >= 0 && r >= 0 && store_commit_due(store))
                        r = store_commit(store);
        } while (more > 0 && r >= 0);
        return more < 0 ? more : r;
}

int store_visit_objects(struct store *store, const char *after, size_t max, store_visit_t visit,
                        void *userdata)
{
        struct store_object borrowed;
        char buffer[KEY_MAX + 1] = "";
        MDB_val key = {strnlen(after, KEY_MAX), buffer}, value;
        MDB_cursor *cursor;
        int count = 0, r = store_begin(store);

        memcpy(buffer, after, key.mv_size);
        if (r >= 0)
                r = store_errno(mdb_cursor_open(store->transaction, store->table[TABLE_OBJECTS], &cursor));
        if (r < 0)
                return r;
        r = store_errno(mdb_cursor_get(cursor, &key, &value, after[0] ? MDB_SET_RANGE : MDB_FIRST));
        while (r >= 0 && (size_t)count < max) {
                memcpy(buffer, key.mv_data, key.mv_size);
                buffer[key.mv_size] = '\0';
                if (strcmp(buffer, after) != 0) {
                        r = record_decode_unchecked(&key, &value, &borrowed);
                        borrowed.key = buffer;
                        if (r >= 0)
                                r = visit(&borrowed, userdata);
                        count++;
                }
                if (r >= 0)
                        r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
        }
        mdb_cursor_close(cursor);
        return r < 0 && r != -ENOENT ? r : count;
}

int store_visit_unmarked(struct store *store, uint64_t mark, store_visit_t visit, void *userdata)
{
        return visit_table(store, TABLE_MARKS, mark, visit, userdata);
}

int store_visit_tombstones(struct store *store, store_visit_t visit, void *userdata)
{
        return visit_table(store, TABLE_TOMBSTONES, 0, visit, userdata);
}

/* Takes `held` off one object, or off all objects, in pages. */
#define PAGE 1024 /* objects that are looked at in one go */

struct page {
        char last[KEY_MAX + 1];
        char *held[PAGE];
        size_t count;
};

static int take_held(const struct store_object *object, void *userdata)
{
        struct page *page = userdata;

        snprintf(page->last, sizeof(page->last), "%s", object->key);
        if (!object->held)
                return 0;
        page->held[page->count] = strdup(object->key);
        return page->held[page->count++] ? 0 : -ENOMEM;
}

int store_unhold_object(struct store *store, const char *key)
{
        struct store_object object;
        int r = store_get(store, key, &object);

        if (r < 0)
                return r;
        object.held = false;
        r = store_put(store, &object);
        store_object_done(&object);
        return r;
}

static int unhold(struct store *store, const char *key)
{
        int r = store_unhold_object(store, key);

        return r < 0 || !store_commit_due(store) ? r : store_commit(store);
}

static void page_empty(struct page *page)
{
        while (page->count > 0)
                free(page->held[--page->count]);
}

int store_unhold(struct store *store, void (*on_progress)(void *userdata), void *userdata)
{
        _cleanup_free_ struct page *page = calloc(1, sizeof(*page));
        int seen, r = 0;

        if (!page)
                return -ENOMEM;
        do {
                seen = store_visit_objects(store, page->last, PAGE, take_held, page);
                for (size_t i = 0; i < page->count && seen >= 0 && r >= 0; i++)
                        r = unhold(store, page->held[i]);
                page_empty(page);
                on_progress(userdata);
        } while (seen > 0 && r >= 0);
        if (seen >= 0 && r >= 0)
                r = store_commit(store);
        return seen < 0 ? seen : r;
}
