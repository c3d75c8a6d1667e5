/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/parked/rollback.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "worker/dependents/parked/park.h"
#include "worker/write/object.h"

#define UNDO_AGAIN_USEC (500 * USEC_PER_MSEC)

/* The list of the plan is borrowed while it is written. */
int rollback_begin(struct dependents *dependents, char *cause)
{
        struct run *run = dependents->run;
        struct park_plan plan = {
                .cause = cause,
                .deadline = park_now(run) + run->watch->config->settle_usec,
                .answered = park_now(run),
                .fingerprint = run->own.fingerprint ? run->own.fingerprint : run->fingerprint,
                .essence = run->now.foreign_essence ? 0 : object_essence(run),
                .result = dependents_result(dependents),
        };
        _cleanup_free_ struct dependent *touched = calloc(dependents->wanted.count + 1, sizeof(*touched));

        if (!touched || !cause)
                return 0;
        former_keep(dependents);
        plan.undo.item = touched;
        for (size_t i = 0; i < dependents->wanted.count; i++)
                if (dependents->wanted.item[i].touched)
                        touched[plan.undo.count++] = dependents->wanted.item[i];
        return plan.undo.count == 0 ? 0 : park_run(run, &plan, 0, cause);
}

static enum run_result result_of(const struct park_plan *plan)
{
        return plan->result > RESULT_SUCCESS && plan->result < RESULT_COUNT ? (enum run_result)plan->result
                                                                            : RESULT_RETRY;
}

int rollback_finish(struct dependents *dependents, const char *trouble)
{
        _cleanup_free_ struct dependent *left = calloc(dependents->known.count + 1, sizeof(*left));
        struct park_plan plan;
        struct run *run = dependents->run;
        char name[600], text[2048];
        bool goes_on;

        park_count_time(dependents);
        plan = dependents->plan;
        goes_on = plan.silent || park_now(run) < plan.deadline;
        plan.undo = (struct dependent_list){.item = left};
        for (size_t i = 0; left && i < dependents->known.count; i++)
                if (!dependents->known.item[i].settled)
                        left[plan.undo.count++] = dependents->known.item[i];
        if (plan.undo.count == 0) {
                former_drop(run, &dependents->known);
                return run_finish(run, result_of(&plan), "%s", plan.cause);
        }
        snprintf(text, sizeof(text), "%.1200s; cleanup of %s %s%s%.400s", plan.cause,
                 dependent_describe(&left[0], name, sizeof(name)),
                 goes_on ? "still running" : "has not ended within its time",
                 trouble && trouble[0] ? ": " : "", trouble ? trouble : "");
        if (goes_on)
                return park_run(run, &plan, plan.silent ? park_silence_delay(dependents) : UNDO_AGAIN_USEC,
                                text);
        former_drop(run, &dependents->known);
        return run_finish(run, result_of(&plan), "%s", text);
}

/* A dependent that was deleted meanwhile, and perhaps made again, is not ours any more: it is settled. */
static int look_before_restore(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        struct scan_object object = {0};
        int r = dependents_look(dependents, dependent, &answer);

        if (r <= 0)
                return r;
        dependent->looked = true;
        dependent->settled =
                answer.response.error.failure != KUBE_FAILURE_NONE ||
                scan_object(answer.response.body, answer.response.body_size, &object) < 0 ||
                object.deletion_timestamp.start ||
                (dependent->uid && dependent->uid[0] && !scan_string_equals(object.uid, dependent->uid));
        if (!dependent->settled && dependent_set_uid(dependent, object.uid) < 0)
                return run_finish(dependents->run, RESULT_RETRY, "one of its children cannot be read");
        return dependent->settled ? 0 : 1;
}

/* By force: fields that others have set meanwhile give way to what was there before us. */
static int apply_former(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct text body = {.data = dependent->previous, .size = strlen(dependent->previous)};
        _cleanup_text_ struct text bound = TEXT_EMPTY;
        int r = dependent_body_for(&body, dependent->uid, NULL, &bound);

        if (r >= 0)
                r = dependents_ask(dependents, dependent, DEPENDENTS_APPLIES, &bound, &answer);
        if (r < 0)
                return r;
        if (answer.response.error.failure != KUBE_FAILURE_NONE)
                return dependents_take_failure(dependents, dependent, "cannot be restored",
                                               &answer.response);
        dependents_tell(dependents, dependent, CHILD_CHANGED, "back to what it was before this attempt");
        dependent->settled = true;
        return 0;
}

static int restore_one(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r;

        if (dependent->lost && !dependent->settled)
                former_leave_lost(dependents, dependent);
        if (!dependent->previous)
                return 0;
        r = dependents_resolve(dependents, dependent);
        if (r == -ENXIO)
                dependents_fail(dependents, dependent, "cannot be restored", dependents->no_kind);
        if (r <= 0)
                return r == -ENXIO ? 0 : r;
        r = dependent->looked ? 1 : look_before_restore(dependents, dependent);
        return r <= 0 ? r : apply_former(dependents, dependent);
}

int rollback_restore(struct dependents *dependents)
{
        return dependents_each(dependents, &dependents->known, false, restore_one);
}
