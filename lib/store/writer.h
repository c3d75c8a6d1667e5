/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writing, by the watcher alone: objects, marks and tombstones, in transactions of many objects. 0 or a
 * negative errno: -ENOSPC when there is no room (or after store_stop), -EBADMSG when what was there is
 * damaged.
 */
#include "store/record.h"

struct store;

/* Writes go into one transaction that store_commit ends; it begins by itself. A commit is due after
 * STORE_BATCH_OBJECTS or STORE_BATCH_BYTES (store_commit_due), or when the loop has nothing else to do. LMDB
 * keeps the pages of the largest one for the next, as long as the store is open: larger ones make each
 * watcher larger for good, and save nothing. The map is 64 GiB of address space from the start, in every
 * process; the file is as large as its content. */

/* The space of the file system that a store on a disk leaves free: this part of it, but not more than the maximum. */
#define STORE_RESERVE_PART  20
#define STORE_RESERVE_MAX   (256 * (uint64_t)1024 * 1024)
#define STORE_BATCH_OBJECTS 384 /* entries of tables; an object that is new has four */
#define STORE_BATCH_BYTES   (1024 * 1024)
bool store_commit_due(const struct store *store);
bool store_in_transaction(const struct store *store); /* one is open */
bool store_has_objects_to_commit(const struct store *store);
int store_commit(struct store *store);
/* Drops all that is not committed; every later write fails with -ENOSPC. */
void store_stop(struct store *store);

int store_get(struct store *store, const char *key, struct store_object *ret); /* -ENOENT; with the JSON */

/* Looks up without the JSON (json NULL), whose checksum is left to who reads it: what a diff needs. */
int store_peek(struct store *store, const char *key, struct store_object *ret);
int store_put(struct store *store, const struct store_object *object);
int store_touch(struct store *store, const char *key, uint64_t mark); /* sets the mark alone */

/* A list begins, and lists come in the order of their keys: into an empty store each object is then put
 * after all others, without looking for its place, until one comes that is out of order. */
void store_expect_order(struct store *store);
int store_remove(struct store *store, const char *key);
/* Moves the object to the tombstones under its UID (last known state kept); json may be replaced by a newer
 * last state. STORE_BURIED_ALONE: without a last state, because there is no more room for contents of
 * tombstones of this namespace, or of all (buried.h). */
#define STORE_BURIED_ALONE 1
int store_bury(struct store *store, const struct store_object *last);
int store_tombstone_remove(struct store *store, const char *key, const char *uid);
bool store_tombstone_exists(struct store *store, const char *key, const char *uid);
uint64_t store_count(const struct store *store);

/* Calls for every object whose mark is below `mark` (a finished LIST: these are gone), in pages that keep
 * memory bounded; the callback may bury or remove the object. */
int store_visit_unmarked(struct store *store, uint64_t mark, store_visit_t visit, void *userdata);
int store_visit_tombstones(struct store *store, store_visit_t visit, void *userdata);
/* The objects after the key `after` ("" = from the beginning), in order, at most `max`; the visitor sees
 * them in place, with a JSON whose checksum nobody has looked at, and must not write. Returns how many there
 * were. */
int store_visit_objects(struct store *store, const char *after, size_t max, store_visit_t visit,
                        void *userdata);

/* Marks of objects on which a watch that wants our finalizer has seen it (`held` of struct store_object). */

int store_unhold_object(struct store *store, const char *key); /* takes `held` off it; -ENOENT */

/* Takes `held` off all objects, on disk when it returns. on_progress: now and then. 0 or a negative
 * errno. */
int store_unhold(struct store *store, void (*on_progress)(void *userdata), void *userdata);
