/* SPDX-License-Identifier: Apache-2.0 */
/* See rollback.h. */
#include "worker/dependents/parked/rollback.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "object/fingerprint.h"
#include "worker/dependents/parked/former.h"
#include "worker/dependents/parked/park.h"
#include "worker/write/object.h"

#define UNDO_AGAIN_USEC (500 * USEC_PER_MSEC)

/* The list of the plan is borrowed while it is written. */
bool rollback_begin(struct dependents *dependents, char *cause)
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
                return false;
        former_keep(dependents);
        plan.undo.item = touched;
        for (size_t i = 0; i < dependents->wanted.count; i++)
                if (dependents->wanted.item[i].touched)
                        touched[plan.undo.count++] = dependents->wanted.item[i];
        if (plan.undo.count == 0)
                return false;
        park_run(run, &plan, 0, cause);
        return true;
}

static enum run_result result_of(const struct park_plan *plan)
{
        return plan->result > RESULT_SUCCESS && plan->result < RESULT_COUNT ? (enum run_result)plan->result
                                                                            : RESULT_RETRY;
}

void rollback_finish(struct dependents *dependents, const char *trouble)
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
                run_finish(run, result_of(&plan), "%s", plan.cause);
                return;
        }
        snprintf(text, sizeof(text), "%.1200s; cleanup of %s %s%s%.400s", plan.cause,
                 dependent_describe(&left[0], name, sizeof(name)),
                 goes_on ? "still running" : "has not ended within its time",
                 trouble && trouble[0] ? ": " : "", trouble ? trouble : "");
        if (goes_on)
                park_run(run, &plan, plan.silent ? park_silence_delay(dependents) : UNDO_AGAIN_USEC, text);
        else {
                former_drop(run, &dependents->known);
                run_finish(run, result_of(&plan), "%s", text);
        }
}

static void on_restored(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                        void *userdata)
{
        struct dependents *dependents = userdata;
        struct dependent *dependent = dependents_current(dependents);

        dependents->run->request.transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE) {
                dependents_tell(dependents, dependent, CHILD_CHANGED,
                                "back to what it was before this attempt");
                dependent->settled = true;
                dependents->position++;
        } else if (!dependents_take_failure(dependents, "cannot be restored", response)) {
                return;
        }
        dependents_advance(dependents);
}

/* A dependent that was deleted meanwhile, and perhaps made anew, is not ours any more. */
static void on_still_there(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                           void *userdata)
{
        struct dependents *dependents = userdata;
        struct dependent *dependent = dependents_current(dependents);
        struct scan_object object = {0};

        dependents->run->request.transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(&response->error)) {
                if (dependents_take_failure(dependents, "cannot be looked at", response))
                        dependents_advance(dependents);
                return;
        }
        dependent->looked = true;
        if (response->error.failure != KUBE_FAILURE_NONE ||
            scan_object(response->body, response->body_size, &object) < 0 ||
            object.deletion_timestamp.start ||
            (dependent->uid && dependent->uid[0] && !scan_string_equals(object.uid, dependent->uid))) {
                dependent->settled = true;
                dependents->position++;
        } else if (dependent_set_uid(dependent, object.uid) < 0) {
                run_finish(dependents->run, RESULT_RETRY, "one of its children cannot be read");
                return;
        }
        dependents_advance(dependents);
}

/* Applied by force: fields that others have set meanwhile give way to what was there before us. */
int rollback_next(struct dependents *dependents)
{
        struct dependent *dependent;

        while ((dependent = dependents_current(dependents))) {
                struct text body = {.data = dependent->previous};
                _cleanup_text_ struct text bound = TEXT_EMPTY;
                int r;

                if (dependent->lost && !dependent->settled)
                        former_leave_lost(dependents, dependent);
                if (!dependent->previous) {
                        dependents->position++;
                        continue;
                }
                body.size = strlen(dependent->previous);
                r = dependents_resolve(dependents, dependent);
                if (r != 0)
                        return r;
                if (!dependent->looked)
                        return dependents_request(dependents, dependent, DEPENDENTS_GET, NULL,
                                                  on_still_there);
                r = dependent_body_for(&body, dependent->uid, NULL, &bound);
                return r < 0 ? r
                             : dependents_request(dependents, dependent, DEPENDENTS_APPLIES, &bound,
                                                  on_restored);
        }
        return 0;
}

/* ---- what was there before */
