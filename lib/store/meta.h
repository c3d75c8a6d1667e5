/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cluster and the selection that the store is for, and how far each stream of its watch has come. The
 * caller frees the results of _get (_done). Without a record: -ENOENT; damaged: -EBADMSG. Writes go into the
 * writer's transaction.
 */
#include <stdint.h>

struct store;

/* The cluster and the selection of the store's content; kept in the meta record. */
struct store_meta {
        char *cluster; /* identity of the cluster; "" unknown */
        char *scope;   /* hex hash over resource, namespaces, selectors */
        uint64_t mark;
        uint64_t sequence; /* last one given to a dirty entry */
};
int store_meta_get(struct store *store, struct store_meta *ret); /* store_meta_done frees */
int store_meta_set(struct store *store, const struct store_meta *meta);
void store_meta_done(struct store_meta *meta);

/* restored_boottime: when the server's database was last seen to have gone back in time; 0 if never. epoch: a
 * number of its own for each time from which on versions in the store can be compared; 0 if it is empty. */
struct store_epoch {
        uint64_t restored_boottime, epoch;
};
int store_epoch_get(struct store *store, struct store_epoch *ret);
int store_epoch_set(struct store *store, const struct store_epoch *epoch);

/* How far one stream of the watch has come: everything up to this resourceVersion is in the store. Written
 * in the transaction of the objects that it speaks of. */
struct store_position {
        char *resource_version; /* "" = nothing is complete */
        char *basis;            /* how objects are chosen and fingerprinted; opaque */
        uint64_t mark;          /* mark of the last complete LIST */
};
int store_position_get(struct store *store, const char *stream, struct store_position *ret); /* -ENOENT */
int store_position_set(struct store *store, const char *stream, const struct store_position *position);
void store_position_done(struct store_position *position);

/* What a reader can compare a version with: in this epoch, everything up to this version is in the store, as far as this
 * stream goes. -ENOENT: nothing is complete, or there is no such stream. */
struct store_progress {
        uint64_t epoch, version;
};
int store_read_progress(struct store *store, const char *stream, struct store_progress *ret);

/* Whether damage has hidden or brought back anything. */

/* For the writer, once it is open: whether each table holds exactly what was written. -EBADMSG: it does not,
 * and nothing in it is to be believed. Reads everything; `progress` (may be NULL) is called now and then.
 * Another negative errno: it could not be read. */
int store_verify(struct store *store, void (*progress)(void *userdata), void *userdata);
