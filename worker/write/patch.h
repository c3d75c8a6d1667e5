/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A merge patch to the run's object. Others write to the object as well while its handler runs. Each patch
 * carries the resourceVersion that was read, so the API server refuses one that is based on an older object
 * (409). Then the object is read again, and the step that wrote makes its patch anew from what is there now:
 * the answer is kept, and only our own patch is made again. The handler's own `patch` is for what the
 * handler has seen, and is never made again.
 *
 * With the changes of others, the handler might have answered otherwise. From then on (now.foreign) nothing
 * that we write is claimed as known, so that the change runs the handler once more.
 */
#include "kube/client.h"
#include "worker/run/run.h"

/* Sends it. subresource: NULL for the object itself. The body carries uid and resourceVersion. on_done gets
 * the run as its userdata. again: called after a conflict, with the object as it is now; NULL: the patch is
 * only for what was read before, and a conflict goes to on_done. After ten conflicts in a row, or when the
 * object is being deleted now, there is no further attempt. 0, or why it cannot be started. */
int patch_send(struct run *run, const char *subresource, const struct text *body,
               void (*on_done)(struct kube_transfer *, const struct kube_response *, void *),
               void (*again)(struct run *));
