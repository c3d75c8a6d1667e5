/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects by their owner, or by the beginning of their key. 0 or a negative errno. */
#include <stdbool.h>
#include <stdint.h>

#include "store/record.h"

struct store;

/* Which owner (by the UID that owner references name) has which objects (by their keys). */
int store_owner_add(struct store *store, const char *uid, const char *key);
int store_owner_remove(struct store *store, const char *uid, const char *key);
/* For readers: the owner's objects whose keys begin with `prefix` ("namespace/"; "" = all), in place, in the
 * order of their keys; the visitor must be quick. */
int store_visit_owned(struct store *store, const char *uid, const char *prefix, store_visit_t visit,
                      void *userdata);

/* For readers, likewise: those whose keys begin with `prefix` ("namespace/"; "" = all). */
int store_visit_prefix(struct store *store, const char *prefix, store_visit_t visit, void *userdata);
/* About how many records those are, and their bytes; no record is read. */
#define EXTENT_NAMESPACE_SIZE 64 /* a namespace has at most 63 bytes */
struct store_extent {
        size_t count, bytes;
        char largest
                [EXTENT_NAMESPACE_SIZE]; /* the namespace with most of the bytes; "": none, or objects of the cluster */
        size_t largest_bytes;            /* of that namespace */
};
int store_extent_owned(struct store *store, const char *uid, const char *prefix, struct store_extent *ret);
int store_extent_prefix(struct store *store, const char *prefix, struct store_extent *ret);

/*
 * Questions about objects that are not where they should be, until each is answered; on disk, because there
 * may be as many as objects. 0 or a negative errno; writes go into the writer's transaction.
 */

struct store_question {
        char *key, *uid;
        bool owed; /* from the ledger: the store may never have known the object */
};
int store_question_add(struct store *store, const char *key, const char *uid, bool owed);
int store_question_remove(struct store *store, const char *key, const char *uid);
/* The first question after `after` (may be NULL). -ENOENT if there is none. The caller owns it
 * (store_question_done). */
int store_question_next(struct store *store, const struct store_question *after, struct store_question *ret);
uint64_t store_question_count(const struct store *store);
void store_question_done(struct store_question *question);
