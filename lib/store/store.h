/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The object store: a disposable cache of one watch's objects in LMDB. One writer (the watch's watcher), any
 * number of readers (workers), always the newest version.
 *
 * On disk: <folder>/CURRENT names the generation; <folder>/<generation>/data.mdb, mode 0600. A rebuild makes
 * a new generation folder, fills CURRENT atomically and removes old ones. NOSYNC: it survives the death of
 * every process; not a power loss: CURRENT also names the boot in which the store is being written, or says
 * "clean", and a store that is neither clean nor of this boot is not even opened; nor is one that a user of
 * it has died over (suspect.h).
 *
 * Named databases: objects (key -> record), tombstones (key NUL uid -> record), dirty (namespace NUL
 * sequence -> change),
 * questions (key NUL uid: an absence that a GET must explain), buried ("namespace/" -> bytes of contents of its
 * tombstones), meta (with one position a stream). Every
 * record carries XXH3 checksums, of what it is about and of the JSON; what has a wrong one is never given to
 * anyone: -EBADMSG, and the writer rebuilds. Each table as a whole has a sum, which shows that damage has
 * hidden records.
 */
#include "base/error.h"
#include "ipc/message.h"

struct store;

#define STORE_SCHEMA UINT64_C(7)

/* resourceVersions are numbers that grow (by contract since Kubernetes 1.35, in fact always). "" is below
 * all. */
bool resource_version_less(const char *a, const char *b);

/* ---- writer (the watcher). Opening takes a lock on the folder: -EBUSY when another process writes. A store
 * of another schema, unreadable or suspect is rebuilt: *ret_rebuilt (may be NULL) reports that, with the
 * reason in *error. */
int store_writer_new(const char *folder, bool *ret_rebuilt, struct store **ret, struct error *error);
/* The same with a maximum size in bytes (0: unbounded); writes beyond it fail with -ENOSPC. */
int store_writer_new_within(const char *folder, uint64_t size_max, bool *ret_rebuilt, struct store **ret,
                            struct error *error);
/* Starts a new, empty generation. Nothing is carried over: what the ledger holds tells which deletions are
 * still owed. */
int store_rebuild(struct store *store, struct error *error);
uint64_t store_generation(const struct store *store);

/* Marks the content clean (boot survives) and closes. */
void store_free(struct store *store);
DEFINE_CLEANUP(struct store *, store_free);
