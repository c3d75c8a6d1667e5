/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `onFailure: rollback`: an attempt that has failed in its dependents is undone before it counts as over. The
 * run ends with a plan (settle.h), which the ledger keeps; the key waits without a worker, and each time
 * that it comes again the machine of children.c goes through what the plan says.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "object/fingerprint.h"
#include "worker/confidential.h"
#include "worker/dependents/internal.h"

#define UNDO_AGAIN_USEC (500 * USEC_PER_MSEC)

/* Ends the run: it goes on without a worker, until all is undone or the time for it is over. */
void park_run(struct run *run, const struct park_plan *plan, uint64_t after_usec, const char *text)
{
        _cleanup_text_ struct text written = TEXT_EMPTY;
        int r = park_plan_write(plan, &written);

        if (r == -E2BIG)
                log_warning("watch %s, %s: what its children were before is too much to keep; they are not "
                            "restored",
                            run->order->watch, run->order->key);
        if ((r < 0 && r != -E2BIG) || written.size > PARK_PLAN_MAX) {
                run_finish(run, RESULT_RETRY, "%s; what was done cannot be undone: %s", plan->cause,
                           strerror(-r));
                return;
        }
        run->settling = text_take(&written);
        run->settle_after_usec = after_usec;
        run_finish(run, RESULT_SETTLING, "%s", text);
}

uint64_t park_now(const struct run *run)
{
        return clock_boottime_usec() + run->worker->config->clock_offset;
}

/* false: there is nothing to undo. The list is borrowed for the moment of writing. */
bool rollback_begin(struct dependents *dependents, char *cause)
{
        struct run *run = dependents->run;
        struct park_plan plan = {
                .cause = cause,
                .deadline = park_now(run) + run->watch->config->settle_usec,
                .answered = park_now(run),
                .fingerprint = run->own_fingerprint ? run->own_fingerprint : run->fingerprint,
                .essence = run->foreign_essence ? 0 : object_essence(run),
                .result = (uint64_t)dependents_result(dependents),
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

        dependents->run->transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE) {
                dependent->settled = true;
                dependents->position++;
        } else if (!dependents_take_failure(dependents, "cannot be restored", response)) {
                return;
        }
        dependents_advance(dependents);
}

/* Requests from now on are for the object with this UID. */
static int take_uid(struct dependent *dependent, struct span uid)
{
        free(dependent->uid);
        dependent->uid = NULL;
        return scan_string(uid, &dependent->uid);
}

/* What somebody has deleted meanwhile, and perhaps made anew, is none of ours any more. */
static void on_still_there(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                           void *userdata)
{
        struct dependents *dependents = userdata;
        struct dependent *dependent = dependents_current(dependents);
        struct scan_object object = {0};

        dependents->run->transfer = NULL;
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
        } else if (take_uid(dependent, object.uid) < 0) {
                run_finish(dependents->run, RESULT_RETRY, "a child of it cannot be read");
                return;
        }
        dependents_advance(dependents);
}

/* By force: what others have set meanwhile gives way to what was there before us. */
int rollback_next(struct dependents *dependents)
{
        struct dependent *dependent;

        while ((dependent = dependents_current(dependents))) {
                struct text body = {.data = dependent->previous};
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
                return dependent->looked
                               ? dependents_send_body(dependents, dependent, &body, on_restored)
                               : dependents_request(dependents, dependent, "GET", NULL, on_still_there);
        }
        return 0;
}

uint64_t object_essence(const struct run *run)
{
        const char *json = write_current_json(run);
        bool partial = fingerprint_is_partial(run->object.json, run->object.json_size);
        uint64_t essence = 0;

        const struct bookkeeping ours = {run->watch->config->finalizer_key, run->watch->config->shared,
                                         run->watch->config->conditions};

        (void)(partial ? fingerprint_metadata : fingerprint_object)(TRIGGER_ESSENCE, &ours, json,
                                                                    strlen(json), &essence);
        return essence;
}

/* What it was then needs not become ready any more. Why something cannot be read is told by the new attempt.
 */
static bool waits_in_vain(struct run *run, const struct park_plan *plan)
{
        _cleanup_error_ struct error error = ERROR_NONE;

        return plan->wait.count > 0 &&
               (object_essence(run) != plan->essence || related_collect(run, &error) < 0 ||
                run->related_fingerprint != plan->related);
}

void dependents_go_on(struct run *run)
{
        struct dependents *dependents = calloc(1, sizeof(*dependents));
        int r = -ENOMEM;

        if (dependents) {
                run->dependents = dependents;
                dependents->run = run;
                dependents->undo = true;
                dependents->asked = park_now(run);
                r = dependent_owner_init(&dependents->owner, run->watch->config->api_version,
                                         run->watch->config->kind, run->order->uid, run->order->key);
                dependents->owner.operator_name = run->worker->config->operator_name;
                dependents->owner.id = run->watch->config->id;
        }
        if (r >= 0)
                r = park_plan_read(run->order->settling, &dependents->plan);
        if (r >= 0)
                former_find(dependents);
        if (r < 0) {
                run_finish(run, RESULT_RETRY, "what is to be undone cannot be read: %s", strerror(-r));
                return;
        }
        if (waits_in_vain(run, &dependents->plan)) {
                former_drop(run, &dependents->plan.undo);
                dependents_free(TAKE_PTR(run->dependents));
                run_attempt(run);
                return;
        }
        /* The attempt was about what the object was then; what it is now has not failed yet. */
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

/* ---- what was there before */

/* NULL: it cannot be read. Owned by the caller. */
static char *version_of(const struct kube_response *response)
{
        struct scan_object object;
        char *version = NULL;

        if (scan_object(response->body, response->body_size, &object) >= 0)
                (void)scan_string(object.resource_version, &version);
        return version;
}

static bool is_anothers(const struct dependents *dependents, const struct kube_response *response)
{
        _cleanup_free_ char *set = notes_find(response->body, true, PART_OF_KEY);

        return !dependents->run->watch->config->children_force && set &&
               strcmp(set, dependents->owner.set) != 0;
}

/* What it was before is kept for the case that it has to be again. */
static void on_looked(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct dependents *dependents = userdata;
        struct run *run = dependents->run;
        struct dependent *dependent = dependents_current(dependents);
        struct scan_object object;

        run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(&response->error)) {
                if (dependents_take_failure(dependents, "cannot be looked at", response))
                        dependents_advance(dependents);
                return;
        }
        dependent->looked = true;
        if (response->error.failure == KUBE_FAILURE_NONE && is_anothers(dependents, response)) {
                dependents_fail(dependents, dependent, "is not applied",
                                "its label " PART_OF_KEY
                                " says that it is another object's child; give it another "
                                "name, or let that one go without it first (or see children.force)");
                dependents->position++;
        } else if (response->error.failure == KUBE_FAILURE_NONE) {
                dependent->previous =
                        managed_fields_body(response->body, run->worker->config->operator_name);
                dependent->version = version_of(response);
                if (!dependent->previous || !dependent->version ||
                    scan_object(response->body, response->body_size, &object) < 0 ||
                    take_uid(dependent, object.uid) < 0) {
                        run_finish(run, RESULT_RETRY, "a child of it cannot be read");
                        return;
                }
        }
        dependents_advance(dependents);
}

void previous_note_touched(struct dependent *dependent, const struct kube_response *response)
{
        _cleanup_free_ char *version = version_of(response);
        struct scan_object object;

        if (!dependent->looked || scan_object(response->body, response->body_size, &object) < 0)
                return;
        dependent->touched = !dependent->version || !version || strcmp(dependent->version, version) != 0;
        (void)take_uid(dependent, object.uid);
}

int previous_look(struct dependents *dependents, const struct dependent *dependent)
{
        return dependents_request(dependents, dependent, "GET", NULL, on_looked);
}
