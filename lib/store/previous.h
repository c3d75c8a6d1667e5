/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the handlers of a watch were given at the last success of each object, for `previous` in their next request. Written and
 * read by all workers, each time in one short transaction; the row of the ledger says which version of an object counts, so what
 * is left here by a run whose end was never recorded is not mistaken for it.
 *
 * <folder>/1/data.mdb, mode 0600, LMDB without syncs: it survives the death of every process, not a power loss. The supervisor
 * removes a folder that cannot be trusted (supervisor/folders/previous-folder.h). 0 or a negative errno.
 */
#include <stddef.h>
#include <stdint.h>

struct store;

/* size_max: bytes that the file may take. */
int previous_open(const char *folder, uint64_t size_max, struct store **ret);
void previous_close(struct store *store); /* NULL is ignored */

/* -ENOSPC: all of them would take more than size_max, or the disk is full. */
int previous_put(struct store *store, const char *key, const char *uid, const char *version,
                 const char *json, size_t size);
/* The object as JSON, owned by the caller. -ENOENT; -EBADMSG: it is not what was written. */
int previous_get(struct store *store, const char *key, const char *uid, const char *version, char **ret);
/* Drops what is kept under this key, but for two versions of the object with this UID ("" = none). */
int previous_drop(struct store *store, const char *key, const char *uid, const char *version,
                  const char *other_version);
