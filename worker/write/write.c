/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See write.h. A step that would change nothing sends nothing. Each write carries the resourceVersion that
 * was read, so its result is exactly what was read plus our change, and may be claimed as known, unless what
 * was read holds changes of others that the handler has not seen (patch.h).
 */
#include "worker/write/write.h"

#include <errno.h>
#include <string.h>

#include "worker/confine.h"
#include "worker/dependents/children.h"
#include "worker/dependents/dependents.h"
#include "worker/dependents/parked/wait.h"
#include "worker/dependents/patched/patches.h"
#include "worker/tenure.h"
#include "worker/write/finalizer.h"
#include "worker/write/leaving.h"
#include "worker/write/merge.h"
#include "worker/write/object.h"
#include "worker/write/patch.h"
#include "worker/write/refusal.h"
#include "worker/write/status.h"

/* ---- the handler's own patch */

static int has_patch(struct run *run)
{
        return run->answer.patch_text.start &&
               merge_effect_on(object_json(run), NULL, run->answer.patch_text) != MERGE_SAME;
}

/* The patch carries the resourceVersion that the handler has seen: it fits no other state of the object. */
static int send_patch(struct run *run) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r;

        if (run->now.rebased)
                return run_finish(run, RESULT_CONFLICT, "the object changed while the handler ran");
        r = merge_body(NULL, run->answer.patch_text, run->order->uid, object_version(run), &body);
        if (r >= 0)
                r = patch_send(run, NULL, &body, false, &answer);
        if (r < 0)
                return r;
        if (answer.response.error.failure != KUBE_FAILURE_NONE)
                return object_refused(run, "handler's patch", &answer.response);
        if (object_take_result(run, &answer.response) < 0)
                return run_finish(run, RESULT_RETRY,
                                  "the API server's answer to the patch cannot be understood");
        return 0;
}

/* ---- a step */

/* Sends what is due, and again where others have written in between: what is due then is asked again. is_due: NULL if
 * `send` knows. */
static int step(struct run *run, int (*is_due)(struct run *run), int (*send)(struct run *run)) _suspends_
{
        int r;

        do {
                r = is_due ? is_due(run) : 1;
                if (r > 0 && is_due)
                        r = object_may_write(run);
                if (r > 0)
                        r = send(run);
        } while (r == -EAGAIN);
        return r < 0 ? run_finish(run, refusal_result_not_started(r), "a write cannot be started: %s",
                                  strerror(-r))
                     : 0;
}

static int has_children(struct run *run)
{
        return run->action != ACTION_RELEASE && children_are_due(run);
}

/* ---- before the handler */

static int write_first(struct run *run) _suspends_
{
        int r = step(run, tenure_is_unmarked, tenure_mark);

        if (r >= 0)
                r = step(run, notes_are_former, notes_rename);
        if (r >= 0)
                r = step(run, finalizer_is_wrong, finalizer_send);
        return r < 0 ? r : step(run, orphan_is_unnoted, orphan_send);
}

/* An object that is being deleted while our finalizer holds it is cleaned up, selected or not. If the watch has
 * not wanted the finalizer any more since the object left, its handler hears of the end as it would without
 * one. Also if the object is gone already: a run that was cut off may have released it, and one that has waited
 * for another watch owes the end to its handler. */
static int begin_unselected(struct run *run)
{
        const struct record_watch *config = run->watch->config;
        int there = config->finalizer && object_is_deleting(run) ? finalizer_is_there(run) : 0;
        bool is_to_be_told = config->unselected && !leaving_is_told(run);

        if (there < 0)
                return there;
        if (there)
                run->action = ACTION_FINALIZE;
        else if (!config->finalizer && !is_to_be_told && (run->released || !run->object.json))
                run->action = ACTION_DELETED;
        /* Else only our finalizer is taken off. */
        return run->action != ACTION_UNSELECTED || is_to_be_told ? RUN_ASKS : RUN_WRITES;
}

/* An object that is being deleted is finalized while our finalizer holds it, or if it had lost the
 * finalizer before; else it does not concern us. */
static int begin_deleting(struct run *run)
{
        int there = finalizer_is_there(run);

        if (there < 0)
                return there;
        if (there > 0 && wait_was_for_cleanup(run))
                return RUN_WRITES; /* its handler has finalized it already */
        if (there > 0 || (!run->object.held && run->order->handed_out))
                return RUN_ASKS;
        return run_finish(run, RESULT_SUCCESS, "it is being deleted, and our finalizer is not on it");
}

/* All writes before the handler are done. */
static int write_first_and_begin(struct run *run) _suspends_
{
        int r = write_first(run);

        if (r < 0)
                return r;
        switch (run->action) {
        case ACTION_FINALIZER:
                return run_finish(run, run->own.version ? RESULT_SUCCESS : RESULT_UNNEEDED, "%s", "");
        case ACTION_UNSELECTED:
                return begin_unselected(run);
        case ACTION_FINALIZE:
                return begin_deleting(run);
        default:
                return RUN_ASKS;
        }
}

/* Releases an object that cannot be cleaned up, by hand; or each object, because the operator is
 * uninstalled. */
static int prepare_release(struct run *run)
{
        if (object_is_deleting(run) || !run->watch->config->finalizer || run->order->reason == RUN_UNINSTALL)
                return RUN_WRITES;
        log_warning(
                "watch %s, %s: our finalizer stays, because the object is not being deleted: the next run "
                "would add it again",
                run->order->watch, run->order->key);
        return run_finish(run, RESULT_STALE, "it is not being deleted");
}

/* The object is gone although the watch wants finalizers. It had lost ours before it was deleted, or had
 * not got it yet, or the watch did not want it then, or the server deleted the object at the moment when
 * the finalizer was added (kubernetes#77988). A handler has had the object, so it is finalized all the
 * same. But if somebody took our finalizer off while the object was being deleted, that was intended, and
 * nothing runs. */
static int prepare_gone(struct run *run)
{
        run->action = ACTION_FINALIZE;
        if (run->object.held)
                return run_finish(run, RESULT_STALE, "somebody else took our finalizer away");
        return RUN_ASKS;
}

/* An object that is being deleted is not reconciled: it may have been finalized before the watch stopped
 * wanting finalizers, and its handler would make again what it had cleaned up. The handler hears of the
 * end. */
static int prepare_going(struct run *run) _suspends_
{
        if (!finalizer_is_wrong(run))
                return run_finish(run, RESULT_STALE,
                                  "it is being deleted; the handler hears of that when it is gone");
        run->action = ACTION_FINALIZER; /* our finalizer is left over on it */
        return write_first_and_begin(run);
}

int write_unneeded(struct run *run)
{
        run->action = ACTION_FINALIZER;
        return write_first_and_begin(run);
}

int write_prepare(struct run *run)
{
        bool wanted = run->watch->config->finalizer;

        switch (run->action) {
        case ACTION_RELEASE:
                return prepare_release(run);
        case ACTION_UNSELECTED:
                return write_first_and_begin(run);
        case ACTION_DELETED:
                return wanted ? prepare_gone(run) : RUN_ASKS;
        case ACTION_RECONCILE:
        case ACTION_FINALIZER:
                break;
        default:
                return RUN_ASKS;
        }
        if (!wanted && object_is_deleting(run))
                return prepare_going(run);
        if (wanted && run->action == ACTION_RECONCILE && object_is_deleting(run))
                run->action = ACTION_FINALIZE;
        return write_first_and_begin(run);
}

/* ---- the answer */

static int all_written(struct run *run)
{
        const char *message = run->answer.message ? run->answer.message : "";

        if (run->action == ACTION_FINALIZE && !run->answer.not_done)
                run->answer.requeue_after_usec = run->answer.requeue_at_usec =
                        0; /* the object is released */
        if (wait_is_for_cleanup(run))
                return wait_for_cleanup(run);
        if (run->action == ACTION_FINALIZE && run->answer.not_done && run->answer.requeue_after_usec == 0 &&
            run->answer.requeue_at_usec == 0)
                return run_finish(run, RESULT_RETRY, "the cleanup is not done yet%s%s",
                                  run->answer.message ? ": " : "", message);
        if (run->action == ACTION_RECONCILE && dependents_waiting(run))
                return wait_begin(run);
        if (leaving_waits(run))
                return leaving_park(run);
        return run_finish(run, RESULT_SUCCESS, "%s", message);
}

static void drop_ignored(struct run *run)
{
        if (run->action != ACTION_RECONCILE && run->action != ACTION_UNSELECTED &&
            run->answer.dependents_text.start)
                log_warning(
                        "watch %s, %s: children in the answer to `%s` are ignored: they go with the object",
                        run->order->watch, run->order->key, run_action_name(run->action));
        if (run->action != ACTION_RECONCILE && run->answer.patches_text.start)
                log_warning("watch %s, %s: patches in the answer to `%s` are ignored: they are given up",
                            run->order->watch, run->order->key, run_action_name(run->action));
        if ((run_is_of_deletion(run) || !run->object.json) &&
            (run->answer.patch_text.start || run->answer.status_text.start || run->answer.conditions)) {
                log_warning(
                        "watch %s, %s: patch, status and conditions in the answer to `%s` are ignored: the "
                        "object is gone",
                        run->order->watch, run->order->key, run_action_name(run->action));
                run->answer.patch_text = run->answer.status_text = (struct span){0};
                run->answer.conditions = NULL;
        }
}

int write_answer(struct run *run)
{
        int r = confine_answer(run);

        if (r < 0)
                return r;
        if (run_is_replay(run))
                return run_finish(run, RESULT_SUCCESS, "%s", run->answer.message ? run->answer.message : "");
        run->answered = true;
        drop_ignored(run);
        r = step(run, patches_are_due_first, patches_send);
        if (r >= 0)
                r = step(run, has_children, children_apply);
        if (r >= 0)
                r = step(run, patches_are_due, patches_send);
        if (r >= 0)
                r = step(run, has_patch, send_patch);
        if (r >= 0)
                r = step(run, NULL, status_send);
        if (r >= 0)
                r = step(run, finalizer_must_go, finalizer_send);
        return r < 0 ? r : all_written(run);
}
