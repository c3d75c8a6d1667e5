/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reading, for workers and tools. A store is opened on demand and cheap to keep; a reader never holds a
 * transaction beyond a call. store_free() (store.h) closes it.
 *
 * generation: as RUN names it (0: the current one); another one than is open is opened. -ENOENT: no such
 * object, or no store. -EBADMSG: what is there is damaged. The object is the caller's
 * (store_object_done).
 */
#include "store/record.h"

struct store;

int store_reader_new(const char *folder, struct store **ret);
/* Opens the current generation and names it, so that many reads after it look at CURRENT once. *ret is never 0 on success. */
int store_reader_current(struct store *store, uint64_t *ret);
int store_read(struct store *store, uint64_t generation, const char *key, struct store_object *ret);
int store_read_tombstone(struct store *store, uint64_t generation, const char *key, const char *uid,
                         struct store_object *ret);
