/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that wait for an answer of the server: a table of their own, key NUL uid -> one byte. */
#include "store/question.h"

#include <errno.h>
#include <string.h>

#include "store/disk/entry.h"
#include "store/disk/generation.h"
#include "store/internal.h"

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
