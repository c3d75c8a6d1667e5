/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The run's object as the server has it: what it was read as, with the writes that this run has made since,
 * or as it was read again after a conflict.
 */
#include "kube/client.h"
#include "object/bookkeeping.h"
#include "worker/run/run.h"

/* As it is now; borrowed until the next write. */
const char *object_json(const struct run *run);
/* Its resourceVersion; borrowed until the next write. */
const char *object_version(const struct run *run);
/* Our finalizer on it, and whether it is being deleted. */
struct finalizer_view object_finalizer(const struct run *run);
bool object_is_deleting(const struct run *run);
/* The fingerprint of the object in `json`, as the watcher will compute it. */
int object_fingerprint(const struct run *run, const char *json, size_t size, uint64_t *ret);
/* A fingerprint of it as it is now, without what we write ourselves between attempts, whatever the watch's
 * trigger is. 0: it cannot be read. */
uint64_t object_essence(const struct run *run);

/* Asks the server for it; a watch with metadataOnly gets its metadata. 0, or why it cannot be asked. */
int object_get(struct run *run,
               void (*on_done)(struct kube_transfer *, const struct kube_response *, void *));
/* Takes the answer to a write of ours as what the object is now. The write carried the resourceVersion, so
 * this is exactly what was there and our own change. 0, -ENOMEM, or that it cannot be read. */
int object_take_result(struct run *run, const struct kube_response *response);
/* Looks its resource up, and calls go_on(); a failure ends the run. Asked for again, once in a run, where a
 * 404 says that the kind may have moved (run->request.rediscovered). */
void object_discover(struct run *run, void (*go_on)(struct run *run));
