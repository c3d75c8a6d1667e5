/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See phases.h. One request at a time; each phase goes through its dependents, and starts over harmlessly.
 * This file decides which phase follows, and so calls all the others; none of them calls it.
 */
#include "worker/dependents/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "worker/confine.h"
#include "worker/dependents/apply.h"
#include "worker/dependents/dependents.h"
#include "worker/dependents/notes.h"
#include "worker/dependents/parked/former.h"
#include "worker/dependents/parked/park.h"
#include "worker/dependents/parked/rollback.h"
#include "worker/dependents/parked/wait.h"
#include "worker/dependents/present.h"
#include "worker/dependents/prune.h"
#include "worker/dependents/recall.h"
#include "worker/dependents/remember.h"
#include "worker/run/related.h"
#include "worker/write/object.h"
#include "worker/write/refusal.h"
#include "worker/write/step.h"

/* ---- failures */

static void finish_failed(struct dependents *dependents)
{
        struct run *run = dependents->run;
        _cleanup_free_ char *trouble = text_take(&dependents->failed.text), *cause = NULL;

        for (char *c = trouble; c && *c; c++)
                if (*c == '\n')
                        *c = ' ';
        if (dependents->undo && !dependents->wait) {
                rollback_finish(dependents, trouble);
                return;
        }
        if (asprintf(&cause, "%u of its children: %s", dependents->failed.count,
                     trouble ? trouble : "no memory for the reason") < 0)
                cause = NULL;
        if (!run->watch->config->rollback || !rollback_begin(dependents, cause))
                run_finish(run, dependents_result(dependents), "%s", cause ? cause : "some of its children");
}

/* While kinds are resolved this is no failure: another dependent may define the kind. */
static void note_no_kind(struct dependents *dependents, struct dependent *dependent, const char *why)
{
        if (dependents->phase == DEPENDENTS_APPLY && !wait_for_kind(dependents, dependent))
                dependents_fail(dependents, dependent, "cannot be applied", why);
        else if (dependents->phase == DEPENDENTS_RESTORE)
                dependents_fail(dependents, dependent, "cannot be restored", why);
        else if (dependents->phase == DEPENDENTS_LOOK)
                dependents_note_unready(dependents, dependent, why);
        else if (dependents->phase == DEPENDENTS_RECALL && !dependents_is_believed(dependents))
                dependents_fail(dependents, dependent, "cannot be looked for", why);
}

/* ---- the whole */

static const struct {
        /* Returns 1: a request is in flight, or the run was ended; 0: the phase is over. */
        int (*next)(struct dependents *dependents);
        bool of_apply, of_cleanup, of_undo, of_wait, of_drop, of_present;
} phase_table[DEPENDENTS_PHASE_COUNT] = {
        [DEPENDENTS_PRESENT] = {present_next, .of_present = true},
        [DEPENDENTS_RECALL] = {recall_next, .of_apply = true, .of_cleanup = true},
        [DEPENDENTS_RESOLVE] = {apply_resolve_next, .of_apply = true},
        [DEPENDENTS_REMEMBER] = {remember_next, .of_apply = true},
        [DEPENDENTS_APPLY] = {apply_next, .of_apply = true},
        [DEPENDENTS_LOOK] = {wait_next, .of_wait = true},
        [DEPENDENTS_RESTORE] = {rollback_next, .of_undo = true},
        [DEPENDENTS_PRUNE] = {prune_next, .of_apply = true, .of_cleanup = true, .of_undo = true,
                              .of_drop = true},
        [DEPENDENTS_FORGET] = {remember_forget_next, .of_apply = true},
};

static void all_done(struct dependents *dependents)
{
        struct run *run = dependents->run;

        if (dependents->wait) {
                wait_finish(dependents);
                return;
        }
        if (dependents->drop && dependents->failed.count == 0) {
                wait_succeed(dependents);
                return;
        }
        if (dependents->present && dependents->failed.count == 0) {
                dependents_free(TAKE_PTR(run->dependents));
                run_go_on(run, RUN_STAGE_HANDLER);
                return;
        }
        if (dependents->failed.count > 0 || dependents->undo) {
                finish_failed(dependents);
                return;
        }
        if (dependents->awaited > 0) {
                wait_begin_for_kinds(dependents);
                return;
        }
        if (run->parked.resumed && !dependents_waiting(run))
                former_drop(run, &dependents->wanted);
        run->answer.not_done =
                run->answer.not_done || (run->action == ACTION_FINALIZE && dependents->prune.left > 0);
        step_done(run);
}

static bool is_due(const struct dependents *dependents, enum dependents_phase phase)
{
        if (dependents->present)
                return phase_table[phase].of_present;
        if (dependents->wait)
                return phase_table[phase].of_wait;
        if (dependents->drop)
                return phase_table[phase].of_drop;
        if (dependents->undo)
                return phase_table[phase].of_undo;
        return dependents->cleanup ? phase_table[phase].of_cleanup : phase_table[phase].of_apply;
}

static void advance(struct dependents *dependents)
{
        struct run *run = dependents->run;

        while (dependents->phase < DEPENDENTS_PHASE_COUNT) {
                int r = 0;

                if (run->cancelled) {
                        run_finish(run, RESULT_CANCELLED,
                                   "the operator stops before all children were made");
                        return;
                }
                if (is_due(dependents, dependents->phase))
                        r = phase_table[dependents->phase].next(dependents);
                if (r < 0)
                        run_finish(run, RESULT_RETRY, "its children cannot be processed: %s", strerror(-r));
                if (r != 0)
                        return;
                dependents->phase++;
                dependents->position = 0;
                dependents->remembered = false;
        }
        all_done(dependents);
}

/* The kind of the current dependent could not be looked up. */
static void no_kind(struct dependents *dependents, const struct kube_error *error,
                    const struct kube_response *response)
{
        struct dependent *dependent = dependents_current(dependents);

        if (error->http_status == 404 && dependents->phase == DEPENDENTS_PRUNE) {
                prune_search_kind(dependents, dependent);
        } else if (error->http_status == 404) {
                note_no_kind(dependents, dependent, error->message);
                dependents->position++;
                dependents_advance(dependents);
        } else if (dependents->wait) {
                refusal_note(dependents->run, response);
                dependents_note_refused(dependents, dependent, error);
                wait_finish(dependents);
        } else if (dependents_take_refusal(dependents, "cannot be looked up", error, response)) {
                dependents_advance(dependents);
        }
}

static const struct dependents_driver driver = {
        .advance = advance,
        .finish_failed = finish_failed,
        .no_kind = no_kind,
};

static int dependents_new(struct run *run, bool is_present, struct dependents **ret)
{
        struct dependents *dependents = calloc(1, sizeof(*dependents));
        int r = -ENOMEM;

        if (!dependents)
                return r;
        dependents->cleanup = run->action != ACTION_RECONCILE && run->action != ACTION_UNSELECTED;
        r = dependents_init(dependents, run, &driver);
        if (r >= 0)
                r = remember_read(dependents);
        if (r >= 0 && !is_present)
                confine_list_and_tell(run, "children", &dependents->known);
        dependents->present = is_present;
        if (r >= 0)
                r = is_present ? recall_doubt(dependents) : recall_begin(dependents);
        if (r >= 0 && !dependents->cleanup && !is_present)
                r = dependent_list_from_answer(run->answer.dependents_text, &dependents->wanted);
        if (r < 0) {
                dependents_free(dependents);
                return r;
        }
        *ret = dependents;
        return 0;
}

bool dependents_are_due(struct run *run)
{
        _cleanup_free_ char *record = NULL;

        /* When an object leaves the selection, its children stay unless the handler answers with others. */
        if (run->action == ACTION_RECONCILE || run->action == ACTION_UNSELECTED)
                return run->answer.dependents && run->object.json;
        if (run->answer.not_done)
                return false;
        record = notes_find_record(run, object_json(run));
        return (record && record[0]) || !child_kinds_are_none(run->order->kinds) ||
               notes_have_left_records(run);
}

/* Another tool has an ApplySet on the same object: neither may delete the other's members. */
static bool is_of_others(const struct run *run)
{
        _cleanup_free_ char *tooling = notes_find(object_json(run), false, TOOLING_KEY);

        return tooling && strncmp(tooling, NOTES_TOOLING, strlen("reconciled/")) != 0;
}

int dependents_send(struct run *run)
{
        int r;

        if (run->action == ACTION_RECONCILE && is_of_others(run)) {
                run_finish(run, RESULT_PERMANENT,
                           "the object is the parent of another tool's ApplySet (annotation " TOOLING_KEY
                           "); its children are not touched");
                return 0;
        }
        r = run->dependents ? remember_join(run->dependents) : dependents_new(run, false, &run->dependents);
        if (r < 0)
                return r;
        dependents_advance(run->dependents);
        return 0;
}

bool dependents_look(struct run *run)
{
        int r;

        bool is_due = present_is_due(run);

        run->presented = true; /* or there is nothing to look for */
        if (!is_due)
                return false;
        r = dependents_new(run, true, &run->dependents);
        if (r < 0)
                run_finish(run, RESULT_RETRY, "its children cannot be looked at: %s", strerror(-r));
        else
                dependents_advance(run->dependents);
        return true;
}

/* ---- an attempt that was parked */

/* Whether the object, or what it relates to, has changed since the attempt was parked: then the former
 * dependents need not become ready. Where something cannot be read, the new attempt reports it. */
static bool waits_in_vain(struct run *run, const struct park_plan *plan)
{
        _cleanup_error_ struct error error = ERROR_NONE;

        return plan->wait.count > 0 &&
               (object_essence(run) != plan->essence || related_collect(run, &error) < 0 ||
                run->related.fingerprint != plan->related);
}

void dependents_go_on(struct run *run)
{
        struct dependents *dependents = calloc(1, sizeof(*dependents));
        int r = -ENOMEM;

        if (dependents) {
                run->dependents = dependents;
                dependents->undo = true;
                dependents->server.asked = park_now(run);
                r = dependents_init(dependents, run, &driver);
        }
        if (r >= 0)
                r = park_plan_read(run->order->settling, &dependents->plan);
        if (r >= 0)
                former_find(dependents);
        if (r < 0) {
                run_finish(run, RESULT_RETRY, "the state of the attempt cannot be read: %s", strerror(-r));
                return;
        }
        if (waits_in_vain(run, &dependents->plan)) {
                former_drop(run, &dependents->plan.undo);
                dependents_free(TAKE_PTR(run->dependents));
                run_go_on(run, RUN_STAGE_ATTEMPT);
                return;
        }
        /* The attempt was about the object as it was then; the object as it is now has not failed yet. */
        run->changed = object_essence(run) != dependents->plan.essence;
        run->fingerprint = dependents->plan.fingerprint;
        dependents->wait = dependents->plan.wait.count > 0;
        if (dependents->wait && wait_take_ready(run, &dependents->plan) < 0) {
                run_finish(run, RESULT_RETRY, "no memory to wait for its children");
                return;
        }
        dependents->known = dependents->wait ? dependents->plan.wait : dependents->plan.undo;
        if (dependents->wait)
                dependents->plan.wait = (struct dependent_list){0};
        else
                dependents->plan.undo = (struct dependent_list){0};
        dependents_advance(dependents);
}
