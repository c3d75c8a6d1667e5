/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the handlers of a watch were given at the last success of each object, for `previous` in their next request. Written and
 * read by all workers, each time in one short transaction; the row of the ledger says which version of an object counts, so what
 * is left here by a run whose end was never recorded is not mistaken for it.
 *
 * <folder>/kept/1/data.mdb, mode 0600, LMDB without syncs: it survives the death of every process, not a power loss. The
 * supervisor removes a folder that cannot be trusted (supervisor/folders/previous-folder.h); a worker that
 * finds damage begins the whole file again. 0 or a negative errno.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct previous;

/* size_max: bytes that all objects may take; the file takes up to 4 MiB more. */
int previous_open(const char *folder, uint64_t size_max, struct previous **ret);
void previous_close(struct previous *previous); /* NULL is ignored */
/* false: it was removed, or another worker has begun it again; what is open is of no use any more. */
bool previous_is_current(const struct previous *previous);
/* Puts aside and removes what is damaged. */
int previous_begin_anew(const char *folder);

/* Keeps this version of an object beside `other_version` ("" = none), and drops what else there is under its key.
 * -ENOSPC: all of them would take more than size_max, or the disk is full. */
int previous_put(struct previous *previous, const char *key, const char *uid, const char *version,
                 const char *other_version, const char *json, size_t size);
/* The object as JSON, owned by the caller. -ENOENT; -EBADMSG: it is not what was written. */
int previous_get(struct previous *previous, const char *key, const char *uid, const char *version,
                 char **ret);
/* Looks at `count` objects after those that were looked at the last time, and drops those that nobody wants any more. */
typedef bool (*previous_wanted_t)(const char *key, const char *uid, void *userdata);
int previous_sweep(struct previous *previous, size_t count, previous_wanted_t is_wanted, void *userdata);
