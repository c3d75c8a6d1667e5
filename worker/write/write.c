/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See write.h. A step that would change nothing sends nothing. Each write carries the resourceVersion that
 * was read, so its result is exactly what was read plus our change, and may be claimed as known, unless what
 * was read holds changes of others that the handler has not seen (patch.h). This file decides which step
 * follows, and so calls all of them; none of them calls it.
 */
#include "worker/write/write.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "object/fingerprint.h"
#include "worker/confine.h"
#include "worker/dependents/dependents.h"
#include "worker/dependents/parked/wait.h"
#include "worker/dependents/patched/patches.h"
#include "worker/dependents/phases.h"
#include "worker/write/finalizer.h"
#include "worker/write/leaving.h"
#include "worker/write/merge.h"
#include "worker/write/object.h"
#include "worker/write/patch.h"
#include "worker/write/refusal.h"
#include "worker/write/status.h"
#include "worker/write/step.h"

static void write_next(struct run *run);
static void write_done(struct run *run);

static void on_patched(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct run *run = userdata;

        run->request.transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE)
                step_failed(run, "handler's patch", response);
        else if (object_take_result(run, response) < 0)
                run_finish(run, RESULT_RETRY, "the API server's answer to the patch cannot be understood");
        else
                write_done(run);
}

/* ---- writing */

/* The handler's own patch is for the object that the handler has seen, and for no other. */
static int send_object(struct run *run)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r;

        if (run->now.rebased) {
                run_finish(run, RESULT_CONFLICT, "the object changed while the handler ran");
                return 0;
        }
        r = merge_body(NULL, run->answer.patch_text, run->order->uid, object_version(run), &body);
        return r < 0 ? r : patch_send(run, NULL, &body, on_patched, NULL);
}

/* ---- step by step */

static int has_object(struct run *run)
{
        return run->answer.patch && merge_effect_on(object_json(run), NULL, run->answer.patch) != MERGE_SAME;
}

static int has_dependents(struct run *run)
{
        return run->action != ACTION_RELEASE && dependents_are_due(run);
}

static const struct {
        bool carrying_out;              /* after the handler, or before it */
        int (*is_due)(struct run *run); /* 1, 0; negative: the run was ended */
        int (*send)(struct run *run);
} steps[] = {
        {false, notes_are_former, notes_rename},   {false, finalizer_is_wrong, finalizer_send},
        {false, orphan_is_unnoted, orphan_send},   {true, patches_are_due_first, patches_send},
        {true, has_dependents, dependents_send},   {true, patches_are_due, patches_send},
        {true, has_object, send_object},           {true, status_prepare, status_send},
        {true, finalizer_must_go, finalizer_send},
};

static void write_done(struct run *run)
{
        run->step.index++;
        write_next(run);
}

static void on_step_end(struct run *run, enum step_end end)
{
        switch (end) {
        case STEP_DONE:
                write_done(run);
                return;
        case STEP_AGAIN:
                write_next(run);
                return;
        }
}

static void all_written(struct run *run)
{
        if (run->action == ACTION_FINALIZE && !run->answer.not_done)
                run->answer.requeue_after_usec = 0; /* the object is released: no reason to come back */
        if (wait_is_for_cleanup(run))
                wait_for_cleanup(run);
        else if (run->action == ACTION_FINALIZE && run->answer.not_done &&
                 run->answer.requeue_after_usec == 0)
                run_finish(run, RESULT_RETRY, "the cleanup is not done yet%s%s",
                           run->answer.message ? ": " : "", run->answer.message ? run->answer.message : "");
        else if (run->action == ACTION_RECONCILE && dependents_waiting(run))
                wait_begin(run);
        else if (leaving_waits(run))
                leaving_park(run);
        else
                run_finish(run, RESULT_SUCCESS, "%s", run->answer.message ? run->answer.message : "");
}

/* An object that is being deleted while our finalizer holds it is cleaned up, selected or not. If the watch has
 * not wanted the finalizer any more since the object left, its handler hears of the end as it would without
 * one. Also if the object is gone already: a run that was cut off may have released it, and one that has waited
 * for another watch owes the end to its handler. */
static void begin_unselected(struct run *run)
{
        const struct record_watch *config = run->watch->config;
        int there = config->finalizer && object_is_deleting(run) ? finalizer_is_there(run) : 0;
        bool is_to_be_told = config->unselected && !leaving_is_told(run);

        if (there < 0)
                return;
        if (there)
                run->action = ACTION_FINALIZE;
        else if (!config->finalizer && !is_to_be_told && (run->released || !run->object.json))
                run->action = ACTION_DELETED;
        if (run->action != ACTION_UNSELECTED || is_to_be_told)
                run_go_on(run, RUN_STAGE_HANDLER);
        else
                write_start(run); /* only our finalizer is taken off */
}

/* An object that is being deleted is finalized while our finalizer holds it, or if it had lost the
 * finalizer before; else it does not concern us. */
static void begin_deleting(struct run *run)
{
        int there = finalizer_is_there(run);

        if (there > 0 && wait_was_for_cleanup(run))
                write_start(run); /* its handler has finalized it already */
        else if (there > 0 || (there == 0 && !run->object.held && run->order->handed_out))
                run_go_on(run, RUN_STAGE_HANDLER);
        else if (there == 0)
                run_finish(run, RESULT_SUCCESS, "it is being deleted, and our finalizer is not on it");
}

/* All writes that come before the handler are done. */
static void begin(struct run *run)
{
        if (run->action == ACTION_UNSELECTED)
                begin_unselected(run);
        else if (run->action == ACTION_FINALIZE)
                begin_deleting(run);
        else
                run_go_on(run, RUN_STAGE_HANDLER);
}

static void write_next(struct run *run)
{
        int r;

        while (run->step.index < ELEMENTS(steps) &&
               steps[run->step.index].carrying_out == run->carrying_out) {
                r = steps[run->step.index].is_due(run);
                if (r < 0)
                        return;
                if (r > 0)
                        break;
                run->step.index++;
        }
        if (run->step.index == ELEMENTS(steps)) {
                all_written(run);
                return;
        }
        if (steps[run->step.index].carrying_out != run->carrying_out) {
                if (run->action == ACTION_FINALIZER)
                        run_finish(run, run->own.version ? RESULT_SUCCESS : RESULT_UNNEEDED, "%s", "");
                else
                        begin(run);
                return;
        }
        if (run->cancelled) {
                run_finish(run, RESULT_CANCELLED, "the operator stops before the answer was written");
                return;
        }
        if (!run->watch->discovered) {
                object_discover(run, write_next);
                return;
        }
        r = steps[run->step.index].send(run);
        if (r < 0)
                run_finish(run, refusal_result_not_started(r), "a write cannot be started: %s",
                           strerror(-r));
}

/* Releases an object that cannot be cleaned up, by hand; or each object, because the operator is
 * uninstalled. */
static void prepare_release(struct run *run)
{
        if (object_is_deleting(run) || !run->watch->config->finalizer ||
            run->order->reason == RUN_UNINSTALL) {
                write_start(run);
                return;
        }
        log_warning(
                "watch %s, %s: our finalizer stays, because the object is not being deleted: the next run "
                "would add it again",
                run->order->watch, run->order->key);
        run_finish(run, RESULT_STALE, "it is not being deleted");
}

/* The object is gone although the watch wants finalizers. It had lost ours before it was deleted, or had
 * not got it yet, or the watch did not want it then, or the server deleted the object at the moment when
 * the finalizer was added (kubernetes#77988). A handler has had the object, so it is finalized all the
 * same. But if somebody took our finalizer off while the object was being deleted, that was intended, and
 * nothing runs. */
static void prepare_gone(struct run *run)
{
        run->action = ACTION_FINALIZE;
        if (run->object.held)
                run_finish(run, RESULT_STALE, "somebody else took our finalizer away");
        else
                run_go_on(run, RUN_STAGE_HANDLER);
}

/* An object that is being deleted is not reconciled: it may have been finalized before the watch stopped
 * wanting finalizers, and its handler would make again what it had cleaned up. The handler hears of the
 * end. */
static void prepare_going(struct run *run)
{
        if (!finalizer_is_wrong(run)) {
                run_finish(run, RESULT_STALE,
                           "it is being deleted; the handler hears of that when it is gone");
                return;
        }
        run->action = ACTION_FINALIZER; /* our finalizer is left over on it */
        write_next(run);
}

void write_unneeded(struct run *run)
{
        run->step.on_end = on_step_end;
        run->action = ACTION_FINALIZER;
        write_next(run);
}

void write_prepare(struct run *run)
{
        run->step.on_end = on_step_end;
        if (run->action == ACTION_RELEASE) {
                prepare_release(run);
                return;
        }
        if (run->action == ACTION_UNSELECTED) {
                write_next(run);
                return;
        }
        if (run->watch->config->finalizer && run->action == ACTION_DELETED) {
                prepare_gone(run);
                return;
        }
        if (run->action != ACTION_RECONCILE && run->action != ACTION_FINALIZER) {
                run_go_on(run, RUN_STAGE_HANDLER);
                return;
        }
        if (run->watch->config->finalizer && run->action == ACTION_RECONCILE && object_is_deleting(run)) {
                run->action = ACTION_FINALIZE;
                write_next(run);
                return;
        }
        if (!run->watch->config->finalizer && object_is_deleting(run))
                prepare_going(run);
        else
                write_next(run);
}

void write_start(struct run *run)
{
        if (!confine_answer(run))
                return;
        if (run_is_replay(run)) {
                run_finish(run, RESULT_SUCCESS, "%s", run->answer.message ? run->answer.message : "");
                return;
        }
        run->step.on_end = on_step_end;
        run->carrying_out = true;
        while (run->step.index < ELEMENTS(steps) && !steps[run->step.index].carrying_out)
                run->step.index++;
        if (run->action != ACTION_RECONCILE && run->action != ACTION_UNSELECTED && run->answer.dependents)
                log_warning(
                        "watch %s, %s: children in the answer to `%s` are ignored: they go with the object",
                        run->order->watch, run->order->key, run_action_name(run->action));
        if (run->action != ACTION_RECONCILE && run->answer.patches)
                log_warning("watch %s, %s: patches in the answer to `%s` are ignored: they are given up",
                            run->order->watch, run->order->key, run_action_name(run->action));
        if ((run_is_of_deletion(run) || !run->object.json) &&
            (run->answer.patch || run->answer.status || run->answer.conditions)) {
                log_warning(
                        "watch %s, %s: patch, status and conditions in the answer to `%s` are ignored: the "
                        "object is gone",
                        run->order->watch, run->order->key, run_action_name(run->action));
                run->answer.patch = run->answer.status = run->answer.conditions = NULL;
        }
        write_next(run);
}
