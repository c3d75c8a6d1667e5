/* SPDX-License-Identifier: Apache-2.0 */
/* Which owner has which objects: a key for each pair, so that an owner's objects are found without a walk over
 * all. */
#include "store/owner.h"

#include <errno.h>
#include <string.h>

#include "store/disk/entry.h"
#include "store/disk/generation.h"
#include "store/internal.h"

int store_owner_add(struct store *store, const char *uid, const char *key)
{
        char buffer[KEY_MAX];
        MDB_val pair, empty = {0, buffer};
        int r = tombstone_key(uid, key, buffer, &pair);

        return r < 0 ? r : entry_put(store, TABLE_OWNERS, &pair, &empty, 0);
}

int store_owner_remove(struct store *store, const char *uid, const char *key)
{
        char buffer[KEY_MAX];
        MDB_val pair;
        int r = tombstone_key(uid, key, buffer, &pair);

        if (r >= 0)
                r = entry_remove(store, TABLE_OWNERS, &pair);
        return r == -ENOENT ? 0 : r;
}

/* The bounds and the visitor of a walk through a part of a table. */
struct range {
        struct store *store;
        MDB_txn *transaction;
        size_t prefix, owner; /* bytes of a key that are looked for; of these the owner's */
        store_visit_t visit;
        void *userdata;
};

static int visit_range(struct store *store, enum store_table table, MDB_val key, size_t owner,
                       int (*on_entry)(const struct range *, const MDB_val *key, const MDB_val *value),
                       store_visit_t visit, void *userdata)
{
        struct range range = {
                .store = store, .prefix = key.mv_size, .owner = owner, .visit = visit, .userdata = userdata};
        const void *prefix = key.mv_data;
        MDB_cursor *cursor = NULL;
        MDB_val value;
        int r = store_reader_follow(store, 0);

        if (r >= 0)
                r = store_errno(mdb_txn_begin(store->environment, NULL, MDB_RDONLY, &range.transaction));
        if (r < 0)
                return r;
        r = store_errno(mdb_cursor_open(range.transaction, store->table[table], &cursor));
        if (r >= 0)
                r = store_errno(
                        mdb_cursor_get(cursor, &key, &value, range.prefix > 0 ? MDB_SET_RANGE : MDB_FIRST));
        while (r >= 0 && key.mv_size >= range.prefix && memcmp(key.mv_data, prefix, range.prefix) == 0) {
                r = on_entry(&range, &key, &value);
                if (r >= 0)
                        r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
        }
        mdb_cursor_close(cursor);
        mdb_txn_abort(range.transaction);
        return r == -ENOENT ? 0 : r;
}

/* A key in the database has no NUL after it, and visitors read it as a string. */
static int visit_owner_record(const struct range *range, const MDB_val *key, const MDB_val *value)
{
        char name[KEY_MAX + 1];
        struct store_object object;
        int r = record_decode(key, value, &object);

        if (r < 0)
                return r;
        if (key->mv_size > KEY_MAX)
                return -EBADMSG;
        memcpy(name, key->mv_data, key->mv_size);
        name[key->mv_size] = '\0';
        object.key = name;
        return range->visit(&object, range->userdata);
}

/* The pair names the object, which is skipped if it is gone meanwhile. */
static int visit_owned(const struct range *range, const MDB_val *pair, const MDB_val *nothing _unused_)
{
        MDB_val key = {pair->mv_size - range->owner, (char *)pair->mv_data + range->owner}, value;
        int r = store_errno(mdb_get(range->transaction, range->store->table[TABLE_OBJECTS], &key, &value));

        return r < 0 ? (r == -ENOENT ? 0 : r) : visit_owner_record(range, &key, &value);
}

int store_visit_owned(struct store *store, const char *uid, const char *prefix, store_visit_t visit,
                      void *userdata)
{
        char buffer[KEY_MAX];
        MDB_val pair;
        int r = tombstone_key(uid, prefix, buffer, &pair);

        return r < 0 ? r
                     : visit_range(store, TABLE_OWNERS, pair, strlen(uid) + 1, visit_owned, visit, userdata);
}

int store_visit_prefix(struct store *store, const char *prefix, store_visit_t visit, void *userdata)
{
        MDB_val start = {strlen(prefix), (void *)(uintptr_t)prefix};

        return visit_range(store, TABLE_OBJECTS, start, 0, visit_owner_record, visit, userdata);
}

/* ---- how much it is: where a value lies and how long it is stands beside its key */

struct measure {
        struct store_extent *extent;
        char namespace
                [EXTENT_NAMESPACE_SIZE]; /* of the last key: those of one namespace come one after the other */
        size_t bytes;                    /* of that namespace */
};

static void owner_note_namespace(struct measure *measure, const MDB_val *key)
{
        const char *data = key->mv_data, *slash = memchr(data, '/', key->mv_size);
        size_t length = slash ? (size_t)(slash - data) : 0;

        if (length >= sizeof(measure->namespace))
                length = sizeof(measure->namespace) - 1;
        if (strlen(measure->namespace) == length && memcmp(measure->namespace, data, length) == 0)
                return;
        memcpy(measure->namespace, data, length);
        measure->namespace[length] = '\0';
        measure->bytes = 0;
}

static int measure_object(const struct range *range, const MDB_val *key, const MDB_val *value)
{
        struct measure *measure = range->userdata;
        struct store_extent *extent = measure->extent;

        owner_note_namespace(measure, key);
        measure->bytes += value->mv_size;
        extent->count++;
        extent->bytes += value->mv_size;
        if (measure->bytes > extent->largest_bytes) {
                extent->largest_bytes = measure->bytes;
                memcpy(extent->largest, measure->namespace, sizeof(extent->largest));
        }
        return 0;
}

static int measure_owned(const struct range *range, const MDB_val *pair, const MDB_val *nothing _unused_)
{
        MDB_val key = {pair->mv_size - range->owner, (char *)pair->mv_data + range->owner}, value;
        int r = store_errno(mdb_get(range->transaction, range->store->table[TABLE_OBJECTS], &key, &value));

        return r < 0 ? (r == -ENOENT ? 0 : r) : measure_object(range, &key, &value);
}

int store_extent_owned(struct store *store, const char *uid, const char *prefix, struct store_extent *ret)
{
        struct measure measure = {.extent = ret};
        char buffer[KEY_MAX];
        MDB_val pair;
        int r = tombstone_key(uid, prefix, buffer, &pair);

        *ret = (struct store_extent){0};
        return r < 0 ? r
                     : visit_range(store, TABLE_OWNERS, pair, strlen(uid) + 1, measure_owned, NULL,
                                   &measure);
}

int store_extent_prefix(struct store *store, const char *prefix, struct store_extent *ret)
{
        struct measure measure = {.extent = ret};
        MDB_val start = {strlen(prefix), (void *)(uintptr_t)prefix};

        *ret = (struct store_extent){0};
        return visit_range(store, TABLE_OBJECTS, start, 0, measure_object, NULL, &measure);
}

/* Questions that wait for an answer of the server: a table of their own, key NUL uid -> one byte. */
int store_question_add(struct store *store, const char *key, const char *uid, bool owed)
{
        char buffer[KEY_MAX];
        unsigned char byte = owed;
        MDB_val index, value = {1, &byte}, old;
        int r = tombstone_key(key, uid, buffer, &index);

        if (r >= 0)
                r = store_begin(store);
        if (r < 0)
                return r;
        r = store_errno(mdb_get(store->transaction, store->table[TABLE_QUESTIONS], &index, &old));
        if (r >= 0 && (!owed || (old.mv_size == 1 && *(unsigned char *)old.mv_data)))
                return 0;
        store->batch_objects++;
        return entry_put(store, TABLE_QUESTIONS, &index, &value, 0);
}

int store_question_remove(struct store *store, const char *key, const char *uid)
{
        char buffer[KEY_MAX];
        MDB_val index;
        int r = tombstone_key(key, uid, buffer, &index);

        if (r >= 0)
                r = entry_remove(store, TABLE_QUESTIONS, &index);
        if (r >= 0)
                store->batch_objects++;
        return r == -ENOENT ? 0 : r;
}

static int decode_question(const MDB_val *index, const MDB_val *value, struct store_question *ret)
{
        const char *data = index->mv_data, *zero = memchr(data, '\0', index->mv_size);
        struct store_question question = {0};

        if (!zero || value->mv_size != 1)
                return -EBADMSG;
        question.key = strdup(data);
        question.uid = strndup(zero + 1, index->mv_size - (size_t)(zero + 1 - data));
        question.owed = *(const unsigned char *)value->mv_data;
        if (!question.key || !question.uid) {
                store_question_done(&question);
                return -ENOMEM;
        }
        *ret = question;
        return 0;
}

int store_question_next(struct store *store, const struct store_question *after, struct store_question *ret)
{
        char buffer[KEY_MAX];
        MDB_val index = {0, buffer}, found, value;
        MDB_cursor *cursor;
        int r = after ? tombstone_key(after->key, after->uid, buffer, &index) : 0;

        if (r >= 0)
                r = store_begin(store);
        if (r >= 0)
                r = store_errno(mdb_cursor_open(store->transaction, store->table[TABLE_QUESTIONS], &cursor));
        if (r < 0)
                return r;
        found = index;
        r = store_errno(mdb_cursor_get(cursor, &found, &value, after ? MDB_SET_RANGE : MDB_FIRST));
        if (r >= 0 && after && found.mv_size == index.mv_size &&
            memcmp(found.mv_data, buffer, index.mv_size) == 0)
                r = store_errno(mdb_cursor_get(cursor, &found, &value, MDB_NEXT));
        if (r >= 0)
                r = decode_question(&found, &value, ret);
        mdb_cursor_close(cursor);
        return r;
}

uint64_t store_question_count(const struct store *store)
{
        return store->sum[TABLE_QUESTIONS].entries;
}

void store_question_done(struct store_question *question)
{
        free(question->key);
        free(question->uid);
        *question = (struct store_question){0};
}
