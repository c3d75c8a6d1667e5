/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The run's object as the server has it: what it was read as, with the writes that this run has made since,
 * or as it was read again after a conflict.
 */
#include "kube/client.h"
#include "object/bookkeeping.h"
#include "worker/run-state.h"

/* The object as it is now; borrowed until the next write. */
const char *object_json(const struct run *run);
/* Its resourceVersion; borrowed until the next write. */
const char *object_version(const struct run *run);
/* Our finalizer on it, and whether it is being deleted. */
struct finalizer_view object_finalizer(const struct run *run);
/* False for the operator's own (schedules, `startup`): it is one like any other until it is gone, and another one takes its place. */
bool object_is_deleting(const struct run *run);
/* The fingerprint of the object in `json`, as the watcher will compute it. */
int object_fingerprint(const struct run *run, const char *json, size_t size, uint64_t *ret);
/* A fingerprint of it as it is now, without what we write ourselves between attempts, whatever the watch's
 * trigger is. 0: it cannot be read. */
uint64_t object_essence(const struct run *run);

/* Asks the server for it; a watch with metadataOnly gets its metadata. 0: *ret is the answer, whatever it says; negative:
 * it cannot be asked. */
_warn_unused_ int object_get(struct run *run, struct kube_answer *ret) _suspends_;
/* Looks its resource up and asks for it. 0: it is there, or not found; negative: the run has ended. */
_warn_unused_ int object_fetch(struct run *run, struct kube_answer *ret) _suspends_;
/* Takes the answer to a write of ours as what the object is now. The write carried the resourceVersion, so
 * this is exactly what was there and our own change. 0, -ENOMEM, or that it cannot be read. */
int object_take_result(struct run *run, const struct kube_response *response);
/* Looks its resource up, unless it is known. 0; negative: the run has ended. */
_warn_unused_ int object_discover(struct run *run) _suspends_;
/* Before a write: 1; negative: the operator stops, or the resource cannot be looked up, and the run has ended. */
_warn_unused_ int object_may_write(struct run *run) _suspends_;
/* The kind, or its status subresource, may have moved since then: looks it up again, once in a run. -EAGAIN: what was
 * written begins again; 0: it was looked up in this run; another negative: the run has ended. */
_warn_unused_ int object_rediscover(struct run *run) _suspends_;
/* The server refused `what` ("handler's patch", "operator's finalizer" ...). -EAGAIN: after a 404 the resource was looked up
 * again, and the step begins again; else the run has ended. */
int object_refused(struct run *run, const char *what, const struct kube_response *response) _suspends_;
