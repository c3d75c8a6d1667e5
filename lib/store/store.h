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
 * Named databases: objects (key -> record), tombstones (key NUL uid -> record), dirty (sequence -> change),
 * questions (key NUL uid: an absence that a GET must explain), meta (with one position a stream). Every
 * record carries XXH3 checksums, of what it is about and of the JSON; what has a wrong one is never given to
 * anyone: -EBADMSG, and the writer rebuilds. Each table as a whole has a sum, which tells of records that
 * damage has hidden.
 */
#include "base/error.h"
#include "ipc/message.h"

struct store;

#define STORE_SCHEMA UINT64_C(5)

/* One record. For writes everything is borrowed from the caller; what store_read returns is owned by it
 * (store_object_done). */
struct store_object {
        char *key; /* "namespace/name" */
        char *uid;
        char *resource_version;
        uint64_t fingerprint;
        uint64_t mark; /* number of the LIST that last saw it: what a finished LIST did not mark is gone */
        char *json;    /* as it came, unparsed; NUL-terminated; may be empty for a tombstone without a last
                          state */
        size_t json_size;
        bool held;   /* since it is being deleted, a watch that wanted our finalizer has seen that on it */
        bool unheld; /* store_bury: how it ended says nothing of our finalizer, whatever was seen before */
        enum finalizer_state finalizer; /* as announced; not stored with it */
};

void store_object_done(struct store_object *object);

/* What the store's content belongs to; kept in the meta record. */
struct store_meta {
        char *cluster; /* identity of the cluster; "" unknown */
        char *scope;   /* hex hash over resource, namespaces, selectors */
        uint64_t mark;
        uint64_t sequence; /* last one given to a dirty entry */
};

/* resourceVersions are numbers that grow (by contract since Kubernetes 1.35, in fact always). "" is below
 * all. */
bool resource_version_less(const char *a, const char *b);

/* ---- reader (workers): opens on demand, cheap to keep. A reader never holds a transaction beyond a call.
 * generation: as RUN names it (0: the current one); a mismatch with what is open reopens. -ENOENT: no such
 * object (or no store).
 */
int store_reader_new(const char *folder, struct store **ret);
int store_read(struct store *store, uint64_t generation, const char *key, struct store_object *ret);
int store_read_tombstone(struct store *store, uint64_t generation, const char *key, const char *uid,
                         struct store_object *ret);

/* ---- writer (the watcher). Opening takes a lock on the folder: -EBUSY when another process writes. A store
 * of another schema, unreadable or suspect is rebuilt: *ret_rebuilt (may be NULL) tells, with the
 * reason in *error. */
int store_writer_new(const char *folder, bool *ret_rebuilt, struct store **ret, struct error *error);
/* The same, of at most so many bytes (0: as many as there are): what is beyond that is -ENOSPC. */
int store_writer_new_within(const char *folder, uint64_t size_max, bool *ret_rebuilt, struct store **ret,
                            struct error *error);
/* Drops all that is not committed; every later write fails with -ENOSPC. */
void store_stop(struct store *store);
/* Starts a new, empty generation. Nothing is carried over: what the ledger holds tells which deletions are
 * still owed. */
int store_rebuild(struct store *store, struct error *error);
uint64_t store_generation(const struct store *store);

/* Writes go into one transaction that store_commit ends; it begins by itself. A commit is due after
 * STORE_BATCH_OBJECTS or STORE_BATCH_BYTES (store_commit_due), or when the loop has nothing else to do. LMDB
 * keeps the pages of the largest one for the next, as long as the store is open: larger ones make each
 * watcher larger for good, and save nothing. The map is 64 GiB of address space from the start, in every
 * process; the file is as large as its content. */
#define STORE_BATCH_OBJECTS 384 /* entries of tables; an object that is new has four */
#define STORE_BATCH_BYTES   (1024 * 1024)
bool store_commit_due(const struct store *store);
bool store_in_transaction(const struct store *store); /* one is open */
bool store_has_objects_to_commit(const struct store *store);
int store_commit(struct store *store);

int store_meta_get(struct store *store, struct store_meta *ret); /* store_meta_done frees */
int store_meta_set(struct store *store, const struct store_meta *meta);
void store_meta_done(struct store_meta *meta);

/* When the server's database was last seen to have gone back in time (CLOCK_REALTIME); 0: never. */
int store_restored_get(struct store *store, uint64_t *ret);
int store_restored_set(struct store *store, uint64_t realtime_usec);

/* How far one stream of the watch has come: everything up to this resourceVersion is in the store. Written
 * in the transaction of the objects that it speaks of. */
struct store_position {
        char *resource_version; /* "" = nothing is complete */
        char *basis;            /* what the objects were chosen and fingerprinted by; opaque */
        uint64_t mark;          /* of the last complete LIST */
};
int store_position_get(struct store *store, const char *stream, struct store_position *ret); /* -ENOENT */
int store_position_set(struct store *store, const char *stream, const struct store_position *position);
void store_position_done(struct store_position *position);

/* Which owner (by the UID that owner references name) has which objects (by their keys). */
int store_owner_add(struct store *store, const char *uid, const char *key);
int store_owner_remove(struct store *store, const char *uid, const char *key);
/* For readers: the owner's objects whose keys begin with `prefix` ("namespace/"; "" = all), in place, in the
 * order of their keys; the visitor must be quick. */
typedef int (*store_visit_t)(const struct store_object *object, void *userdata);
int store_visit_owned(struct store *store, const char *uid, const char *prefix, store_visit_t visit,
                      void *userdata);

/* For readers, likewise: those whose keys begin with `prefix` ("namespace/"; "" = all). */
int store_visit_prefix(struct store *store, const char *prefix, store_visit_t visit, void *userdata);
/* About how much those would be, of which nothing is read: how many records, and their bytes. */
struct store_extent {
        size_t count, bytes;
};
int store_extent_owned(struct store *store, const char *uid, const char *prefix, struct store_extent *ret);
int store_extent_prefix(struct store *store, const char *prefix, struct store_extent *ret);

int store_get(struct store *store, const char *key, struct store_object *ret); /* -ENOENT; with the JSON */
/* Looks up without the JSON (json NULL), whose checksum is left to who reads it: what a diff needs. */
int store_peek(struct store *store, const char *key, struct store_object *ret);
int store_put(struct store *store, const struct store_object *object);
int store_touch(struct store *store, const char *key, uint64_t mark); /* sets the mark alone */
int store_unhold_object(struct store *store, const char *key); /* takes `held` off it; -ENOENT */
/* Takes `held` off all objects, on disk when it returns. */
int store_unhold(struct store *store, void (*on_progress)(void *userdata), void *userdata);
/* A list begins, and lists come in the order of their keys: into an empty store each object is then put
 * behind all others, without looking for its place, until one comes that is out of order. */
void store_expect_order(struct store *store);
int store_remove(struct store *store, const char *key);
/* Moves the object to the tombstones under its UID (last known state kept); json may be replaced by a newer
 * last state. */
int store_bury(struct store *store, const struct store_object *last);
int store_tombstone_remove(struct store *store, const char *key, const char *uid);
bool store_tombstone_exists(struct store *store, const char *key, const char *uid);
uint64_t store_count(const struct store *store);

/* Calls for every object whose mark is below `mark` (a finished LIST: these are gone), in pages that keep
 * memory bounded; the callback may bury or remove the object. */
int store_visit_unmarked(struct store *store, uint64_t mark, store_visit_t visit, void *userdata);
int store_visit_tombstones(struct store *store, store_visit_t visit, void *userdata);
/* The objects behind the key `after` ("" = from the beginning), in order, at most `max`; the visitor sees
 * them in place, with a JSON whose checksum nobody has looked at, and must not write. Returns how many there
 * were. */
int store_visit_objects(struct store *store, const char *after, size_t max, store_visit_t visit,
                        void *userdata);

/* Questions about objects that are not where they should be, until each is answered; on disk, because there
 * may be as many as objects. */
struct store_question {
        char *key, *uid;
        bool owed; /* from the ledger: the store may never have known the object */
};
int store_question_add(struct store *store, const char *key, const char *uid, bool owed);
int store_question_remove(struct store *store, const char *key, const char *uid);
/* The first one behind `after` (may be NULL). -ENOENT: none. */
int store_question_next(struct store *store, const struct store_question *after, struct store_question *ret);
uint64_t store_question_count(const struct store *store);
void store_question_done(struct store_question *question);

/* The dirty index: keys that are not announced yet, in order: one entry for the update of a key, one for
 * each UID of it that was deleted or unselected, or owns what has changed. A key marked twice keeps its
 * place with the newest data; the end of an object stands before the update of the next object of that name.
 */
int store_dirty_add(struct store *store, const struct record_change *change); /* sequence is assigned */
/* Takes the oldest `max` entries out, calling for each. */
typedef int (*store_dirty_t)(const struct record_change *change, void *userdata);
int store_dirty_take(struct store *store, size_t max, store_dirty_t visit, void *userdata);
uint64_t store_dirty_count(const struct store *store);

/* For the writer, once it is open: whether each table holds exactly what was written. -EBADMSG: it does not,
 * and nothing in it is to be believed. Reads everything; `progress` (may be NULL) is called now and then. */
int store_verify(struct store *store, void (*progress)(void *userdata), void *userdata);

/* Marks the content clean (boot survives) and closes. */
void store_free(struct store *store);
DEFINE_CLEANUP(struct store *, store_free);
