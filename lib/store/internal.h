/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Types and functions that only the files of the store share. Private to store/. */
#include <lmdb.h>
/* XXH3, with the widest vectors that this processor has where the library can choose among them: the same sums, of an
 * object's bytes in a third of the time. */
#ifdef RECONCILED_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "store/record.h"
#include "store/store.h"

enum store_table {
        TABLE_OBJECTS,
        TABLE_MARKS,
        TABLE_TOMBSTONES,
        TABLE_DIRTY,
        TABLE_DIRTY_INDEX,
        TABLE_QUESTIONS,
        TABLE_OWNERS,
        TABLE_BURIED,
        TABLE_META,
        TABLE_COUNT
};

/* Address space, not memory or disk: the file grows as it is filled. */
#define MAP_SIZE ((size_t)64 << 30)
#define KEY_MAX  511 /* LMDB's own limit */

/* dirty.c: bytes of a namespace that count, and of a place in the dirty index. */
#define DIRTY_NAMESPACE_MAX 255
#define PLACE_MAX           (DIRTY_NAMESPACE_MAX + 1 + 8)
uint64_t dirty_sequence(const MDB_val *place);

/* The number and the sum of the entries that a table must hold: see entry.c. */
struct table_sum {
        uint64_t entries, sum;
};

struct store {
        char *folder;
        uint64_t generation;
        MDB_env *environment;
        MDB_dbi table[TABLE_COUNT];
        MDB_txn *transaction; /* the writer's, while one is open */
        size_t batch_objects, batch_bytes;
        uint64_t sequence;                  /* last one given */
        char turn[DIRTY_NAMESPACE_MAX + 1]; /* the namespace that was the last to be announced (dirty.c) */
        struct table_sum sum[TABLE_COUNT];  /* with the open transaction; TABLE_META's is not used */
        bool sums_changed;
        uint64_t
                looked_at; /* the file's size when there was enough room on the disk; before the first look, 0 */
        uint64_t space; /* so much of the file has blocks; before it is looked at, 0 */
        bool in_order;  /* every object so far came after all others; `last` is the last one */
        char last[KEY_MAX + 1];
        int lock_fd;
        bool writer;
        uint64_t size_max; /* bytes; 0: no bound but the disk's */
        bool stopped;      /* nothing is written any more */
};

/* reader.c: opens the generation; 0: the current one. */
int store_reader_follow(struct store *store, uint64_t generation);
/* A record of the open generation; *ret is owned by the caller. */
int store_read_record(struct store *store, enum store_table table, MDB_val *key, struct store_object *ret);

/* record.c: one value, checksummed together with its key. */
#define RECORD_HEADER_SIZE 40
int record_size(const struct store_object *object, size_t *ret);
void record_encode(const MDB_val *key, const struct store_object *object, char *out); /* this many bytes */
/* Borrows from the value; the key is taken up to its first NUL. -EBADMSG. */
int record_decode(const MDB_val *key, const MDB_val *value, struct store_object *ret_borrowed);
/* Decodes without the JSON, which is not read, so the cost does not grow with the object. */
int record_decode_identity(const MDB_val *key, const MDB_val *value, struct store_object *ret_borrowed);
/* Decodes with the JSON, whose checksum is not verified: for callers that tolerate damage in it. */
int record_decode_unchecked(const MDB_val *key, const MDB_val *value, struct store_object *ret_borrowed);
int record_copy(const struct store_object *borrowed, bool with_json, struct store_object *ret);

struct store_meta;

/* meta.c: as store_meta_get(); -ESTALE for another schema, which is returned. */
int meta_read(struct store *store, struct store_meta *ret, uint64_t *ret_schema);

/* A tombstone's key: key NUL uid. */
int tombstone_key(const char *key, const char *uid, char buffer[KEY_MAX], MDB_val *ret);
