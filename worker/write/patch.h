/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A merge patch to the run's object. Others write to the object as well while its handler runs. Each patch
 * carries the resourceVersion that was read, so the API server refuses one that is based on an older object
 * (409). Then, and where no answer came, the object is read again, and the step that wrote makes its patch
 * again from what is there now: the answer is kept, and only our own patch is made again. The handler's own
 * `patch` is for what the handler has seen, and is never made again.
 *
 * With the changes of others, the handler might have answered otherwise. From then on (now.foreign) nothing
 * that we write is claimed as known, so that the change runs the handler once more.
 */
#include "kube/client.h"
#include "worker/run-state.h"

/*
 * Sends it. subresource: NULL for the object itself. The body carries uid and resourceVersion. is_made_anew: after a
 * conflict; else it is only for what was read before. After ten conflicts in a row, or when the object is being deleted
 * now, there is no further attempt.
 *
 * 0: *ret is the answer, whatever it says; -EAGAIN: the patch is to be made again from the object as it is now; another
 * negative: it cannot be sent, or the run has ended.
 */
_warn_unused_ int patch_send(struct run *run, const char *subresource, const struct text *body,
                             bool is_made_anew, struct kube_answer *ret) _suspends_;
