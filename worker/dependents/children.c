/* SPDX-License-Identifier: Apache-2.0 */
/* See children.h. One request at a time; each phase goes through its dependents, and starts over harmlessly. */
#include "worker/dependents/children.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/confine.h"
#include "worker/dependents/apply.h"
#include "worker/dependents/dependents.h"
#include "worker/dependents/notes.h"
#include "worker/dependents/parked/park.h"
#include "worker/dependents/parked/rollback.h"
#include "worker/dependents/parked/wait.h"
#include "worker/dependents/present.h"
#include "worker/dependents/prune.h"
#include "worker/dependents/recall.h"
#include "worker/dependents/remember.h"
#include "worker/run/related.h"
#include "worker/write/object.h"

/* ---- failures */

static int finish_failed(struct dependents *dependents)
{
        struct run *run = dependents->run;
        _cleanup_free_ char *trouble = text_take(&dependents->failed.text), *cause = NULL;
        int r;

        for (char *c = trouble; c && *c; c++)
                if (*c == '\n')
                        *c = ' ';
        if (dependents->undo && !dependents->wait)
                return rollback_finish(dependents, trouble);
        if (asprintf(&cause, "%u of its children: %s", dependents->failed.count,
                     trouble ? trouble : "no memory for the reason") < 0)
                cause = NULL;
        r = run->watch->config->rollback ? rollback_begin(dependents, cause) : 0;
        return r < 0 ? r
                     : run_finish(run, dependents_result(dependents), "%s",
                                  cause ? cause : "some of its children");
}

/* r: of the last phase. 0: all is done; negative: the run has ended. */
static int settle_children(struct dependents *dependents, int r)
{
        if (r >= 0)
                r = dependents_may_go_on(dependents);
        if (r == -EHOSTDOWN || (r >= 0 && dependents->failed.count > 0))
                return finish_failed(dependents);
        return r < 0 ? run_finish(dependents->run, RESULT_RETRY, "its children cannot be processed: %s",
                                  strerror(-r))
                     : 0;
}

/* ---- the whole */

static int dependents_new(struct run *run, bool is_present, struct dependents **ret)
{
        struct dependents *dependents = calloc(1, sizeof(*dependents));
        int r = -ENOMEM;

        if (!dependents)
                return r;
        dependents->cleanup = run->action != ACTION_RECONCILE && run->action != ACTION_UNSELECTED;
        r = dependents_init(dependents, run);
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

bool children_are_due(struct run *run)
{
        _cleanup_free_ char *record = NULL;

        /* When an object leaves the selection, its children stay unless the handler answers with others. */
        if (run->action == ACTION_RECONCILE || run->action == ACTION_UNSELECTED)
                return run->answer.dependents_text.start && run->object.json;
        if (run->answer.not_done)
                return false;
        record = notes_find_record(run, object_json(run));
        return (record && record[0]) || !child_kinds_are_none(run->order->kinds) ||
               notes_have_left_records(run);
}

/* An object that is being deleted gets no new children, and its list goes with it. */
static int clean_up(struct dependents *dependents) _suspends_
{
        int r = recall_lost(dependents);

        return r < 0 ? r : prune_left_out(dependents);
}

static int apply_all(struct dependents *dependents) _suspends_
{
        int r = recall_lost(dependents);

        if (r >= 0)
                r = apply_resolve(dependents);
        if (r >= 0)
                r = remember_wanted(dependents);
        if (r >= 0)
                r = apply_wanted(dependents);
        if (r >= 0)
                r = prune_left_out(dependents);
        return r < 0 ? r : remember_forget(dependents);
}

int children_apply(struct run *run)
{
        struct dependents *dependents;
        int r = remember_check_set(run);

        if (r < 0)
                return r;
        assert(!run->dependents);
        r = dependents_new(run, false, &run->dependents);
        if (r < 0)
                return r;
        dependents = run->dependents;
        r = settle_children(dependents, dependents->cleanup ? clean_up(dependents) : apply_all(dependents));
        if (r < 0)
                return r;
        if (dependents->awaited > 0)
                return wait_begin_for_kinds(dependents);
        if (run->parked.resumed && !dependents_waiting(run))
                former_drop(run, &dependents->wanted);
        run->answer.not_done =
                run->answer.not_done || (run->action == ACTION_FINALIZE && dependents->prune.left > 0);
        return 0;
}

int children_look(struct run *run)
{
        _cleanup_(dependents_free_pointer) struct dependents *dependents = NULL;
        bool is_due = present_is_due(run);
        int r;

        run->presented = true; /* or there is nothing to look for */
        if (!is_due)
                return 0;
        r = dependents_new(run, true, &dependents);
        return r < 0 ? run_finish(run, RESULT_RETRY, "its children cannot be looked at: %s", strerror(-r))
                     : settle_children(dependents, present_look(dependents));
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

static int read_plan(struct run *run)
{
        struct dependents *dependents = calloc(1, sizeof(*dependents));
        int r;

        if (!dependents)
                return -ENOMEM;
        run->dependents = dependents;
        dependents->undo = true;
        dependents->server.asked = park_now(run);
        r = dependents_init(dependents, run);
        if (r >= 0)
                r = park_plan_read(run->order->settling, &dependents->plan);
        if (r >= 0) {
                run->parked.given = TAKE_PTR(dependents->plan.given);
                former_find(dependents);
        }
        return r;
}

static int wait_further(struct dependents *dependents) _suspends_
{
        int r = wait_look(dependents);

        if (r >= 0)
                r = dependents_may_go_on(dependents);
        if (r < 0 && r != -EHOSTDOWN)
                return settle_children(dependents, r);
        r = wait_finish(dependents);
        if (r != RUN_WRITES || !dependents->drop)
                return r;
        r = settle_children(dependents, prune_left_out(dependents));
        return r < 0 ? r : wait_succeed(dependents);
}

static int undo(struct dependents *dependents) _suspends_
{
        int r = rollback_restore(dependents);

        if (r >= 0)
                r = prune_left_out(dependents);
        r = settle_children(dependents, r);
        return r < 0 ? r : finish_failed(dependents);
}

int children_resume(struct run *run)
{
        struct dependents *dependents;
        int r = read_plan(run);

        if (r < 0)
                return run_finish(run, RESULT_RETRY, "the state of the attempt cannot be read: %s",
                                  strerror(-r));
        dependents = run->dependents;
        if (waits_in_vain(run, &dependents->plan)) {
                former_drop(run, &dependents->plan.undo);
                dependents_free(TAKE_PTR(run->dependents));
                return RUN_ATTEMPTS;
        }
        /* The attempt was for the former content; the present content has not failed yet. */
        run->changed = object_essence(run) != dependents->plan.essence;
        run->fingerprint = dependents->plan.fingerprint;
        dependents->wait = dependents->plan.wait.count > 0;
        if (dependents->wait && wait_take_ready(run, &dependents->plan) < 0)
                return run_finish(run, RESULT_RETRY, "no memory to wait for its children");
        dependents->known = dependents->wait ? dependents->plan.wait : dependents->plan.undo;
        *(dependents->wait ? &dependents->plan.wait : &dependents->plan.undo) = (struct dependent_list){0};
        return dependents->wait ? wait_further(dependents) : undo(dependents);
}
