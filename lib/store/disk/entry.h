/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The only ways to change a table other than TABLE_META, which keep the sum of each table. Private to
 * store/. 0 or a negative errno. flags: MDB_APPEND where the key is known to be after all others.
 */
#include "store/internal.h"

int entry_put(struct store *store, enum store_table table, MDB_val *key, MDB_val *value, unsigned flags);
/* The same without a copy: until entry_filled() the entry holds what happens to be there, and nothing else
 * may be written. */
int entry_reserve(struct store *store, enum store_table table, MDB_val *key, size_t size, unsigned flags,
                  MDB_val *ret);
void entry_filled(struct store *store, enum store_table table, const MDB_val *key, const MDB_val *value);
int entry_remove(struct store *store, enum store_table table, MDB_val *key); /* -ENOENT */

/* The hash of an entry in its table's sum. A record is hashed by its beginning, which has a checksum over
 * the rest. */
uint64_t entry_hash(enum store_table table, const MDB_val *key, const MDB_val *value);
bool entry_is_record(enum store_table table); /* the entries of this table are objects: record_decode() */

int sums_write(struct store *store); /* before each commit */
int sums_read(struct store *store);  /* -EBADMSG: there are none, or they are damaged */
