/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `onFailure: rollback`: an attempt that has failed in its children is undone before it counts as over. The
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
void children_settle(struct run *run, const struct settle_plan *plan, uint64_t after_usec, const char *text)
{
        _cleanup_text_ struct text written = TEXT_EMPTY;
        int r = settle_plan_write(plan, &written);

        if (r == -E2BIG)
                log_warning("watch %s, %s: what its children were before is too much to keep; they are not "
                            "restored",
                            run->order->watch, run->order->key);
        if ((r < 0 && r != -E2BIG) || written.size > SETTLE_PLAN_MAX) {
                run_finish(run, RESULT_RETRY, "%s; what was done cannot be undone: %s", plan->cause,
                           strerror(-r));
                return;
        }
        run->settling = text_take(&written);
        run->settle_after_usec = after_usec;
        run_finish(run, RESULT_SETTLING, "%s", text);
}

uint64_t children_now(const struct run *run)
{
        return clock_boottime_usec() + run->worker->config->clock_offset;
}

/* false: there is nothing to undo. The list is borrowed for the moment of writing. */
bool children_begin_undo(struct children *children, char *cause)
{
        struct run *run = children->run;
        struct settle_plan plan = {
                .cause = cause,
                .deadline = children_now(run) + run->watch->config->settle_usec,
                .answered = children_now(run),
                .fingerprint = run->own_fingerprint ? run->own_fingerprint : run->fingerprint,
                .essence = run->foreign_essence ? 0 : children_essence(run),
                .result = (uint64_t)children_result(children),
        };
        _cleanup_free_ struct child_object *touched = calloc(children->wanted.count + 1, sizeof(*touched));

        if (!touched || !cause)
                return false;
        children_keep_former(children);
        plan.undo.child = touched;
        for (size_t i = 0; i < children->wanted.count; i++)
                if (children->wanted.child[i].touched)
                        touched[plan.undo.count++] = children->wanted.child[i];
        if (plan.undo.count == 0)
                return false;
        children_settle(run, &plan, 0, cause);
        return true;
}

static enum run_result result_of(const struct settle_plan *plan)
{
        return plan->result > RESULT_SUCCESS && plan->result < RESULT_COUNT ? (enum run_result)plan->result
                                                                            : RESULT_RETRY;
}

void children_finish_undo(struct children *children, const char *trouble)
{
        _cleanup_free_ struct child_object *left = calloc(children->known.count + 1, sizeof(*left));
        struct settle_plan plan;
        struct run *run = children->run;
        char name[600], text[2048];
        bool goes_on;

        children_count_time(children);
        plan = children->plan;
        goes_on = plan.silent || children_now(run) < plan.deadline;
        plan.undo = (struct child_list){.child = left};
        for (size_t i = 0; left && i < children->known.count; i++)
                if (!children->known.child[i].settled)
                        left[plan.undo.count++] = children->known.child[i];
        if (plan.undo.count == 0) {
                children_drop_former(run, &children->known);
                run_finish(run, result_of(&plan), "%s", plan.cause);
                return;
        }
        snprintf(text, sizeof(text), "%.1200s; cleanup of %s %s%s%.400s", plan.cause,
                 child_describe(&left[0], name, sizeof(name)),
                 goes_on ? "still running" : "has not ended within its time",
                 trouble && trouble[0] ? ": " : "", trouble ? trouble : "");
        if (goes_on)
                children_settle(run, &plan, plan.silent ? children_silence_delay(children) : UNDO_AGAIN_USEC,
                                text);
        else {
                children_drop_former(run, &children->known);
                run_finish(run, result_of(&plan), "%s", text);
        }
}

static void on_restored(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                        void *userdata)
{
        struct children *children = userdata;
        struct child_object *child = children_current_child(children);

        children->run->transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE) {
                child->settled = true;
                children->position++;
        } else if (!children_take_failure(children, "cannot be restored", response)) {
                return;
        }
        children_advance(children);
}

/* Requests from now on are for the object with this UID. */
static int take_uid(struct child_object *child, struct span uid)
{
        free(child->uid);
        child->uid = NULL;
        return scan_string(uid, &child->uid);
}

/* What somebody has deleted meanwhile, and perhaps made anew, is none of ours any more. */
static void on_still_there(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                           void *userdata)
{
        struct children *children = userdata;
        struct child_object *child = children_current_child(children);
        struct scan_object object = {0};

        children->run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(&response->error)) {
                if (children_take_failure(children, "cannot be looked at", response))
                        children_advance(children);
                return;
        }
        child->looked = true;
        if (response->error.failure != KUBE_FAILURE_NONE ||
            scan_object(response->body, response->body_size, &object) < 0 ||
            object.deletion_timestamp.start ||
            (child->uid && child->uid[0] && !scan_string_equals(object.uid, child->uid))) {
                child->settled = true;
                children->position++;
        } else if (take_uid(child, object.uid) < 0) {
                run_finish(children->run, RESULT_RETRY, "a child of it cannot be read");
                return;
        }
        children_advance(children);
}

/* By force: what others have set meanwhile gives way to what was there before us. */
int children_restore_next(struct children *children)
{
        struct child_object *child;

        while ((child = children_current_child(children))) {
                struct text body = {.data = child->previous};
                int r;

                if (child->lost && !child->settled)
                        children_leave_lost(children, child);
                if (!child->previous) {
                        children->position++;
                        continue;
                }
                body.size = strlen(child->previous);
                r = children_resolve(children, child);
                if (r != 0)
                        return r;
                return child->looked ? children_send_body(children, child, &body, on_restored)
                                     : children_request(children, child, "GET", NULL, on_still_there);
        }
        return 0;
}

uint64_t children_essence(const struct run *run)
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
static bool waits_in_vain(struct run *run, const struct settle_plan *plan)
{
        _cleanup_error_ struct error error = ERROR_NONE;

        return plan->wait.count > 0 &&
               (children_essence(run) != plan->essence || related_collect(run, &error) < 0 ||
                run->related_fingerprint != plan->related);
}

void children_undo(struct run *run)
{
        struct children *children = calloc(1, sizeof(*children));
        int r = -ENOMEM;

        if (children) {
                run->children = children;
                children->run = run;
                children->undo = true;
                children->asked = children_now(run);
                r = child_owner_init(&children->owner, run->watch->config->api_version,
                                     run->watch->config->kind, run->order->uid, run->order->key);
                children->owner.operator_name = run->worker->config->operator_name;
                children->owner.id = run->watch->config->id;
        }
        if (r >= 0)
                r = settle_plan_read(run->order->settling, &children->plan);
        if (r >= 0)
                children_find_former(children);
        if (r < 0) {
                run_finish(run, RESULT_RETRY, "what is to be undone cannot be read: %s", strerror(-r));
                return;
        }
        if (waits_in_vain(run, &children->plan)) {
                children_drop_former(run, &children->plan.undo);
                children_free(TAKE_PTR(run->children));
                run_attempt(run);
                return;
        }
        /* The attempt was about what the object was then; what it is now has not failed yet. */
        run->changed = children_essence(run) != children->plan.essence;
        run->fingerprint = children->plan.fingerprint;
        children->wait = children->plan.wait.count > 0;
        if (children->wait && children_take_ready(run, &children->plan) < 0) {
                run_finish(run, RESULT_RETRY, "no memory to wait for its children");
                return;
        }
        children->known = children->wait ? children->plan.wait : children->plan.undo;
        if (children->wait)
                children->plan.wait = (struct child_list){0};
        else
                children->plan.undo = (struct child_list){0};
        children_advance(children);
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

static bool is_anothers(const struct children *children, const struct kube_response *response)
{
        _cleanup_free_ char *set = children_find_entry(response->body, true, PART_OF_KEY);

        return !children->run->watch->config->children_force && set && strcmp(set, children->owner.set) != 0;
}

/* What it was before is kept for the case that it has to be again. */
static void on_looked(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct children *children = userdata;
        struct run *run = children->run;
        struct child_object *child = children_current_child(children);
        struct scan_object object;

        run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(&response->error)) {
                if (children_take_failure(children, "cannot be looked at", response))
                        children_advance(children);
                return;
        }
        child->looked = true;
        if (response->error.failure == KUBE_FAILURE_NONE && is_anothers(children, response)) {
                children_fail(children, child, "is not applied",
                              "its label " PART_OF_KEY
                              " says that it is another object's child; give it another "
                              "name, or let that one go without it first (or see children.force)");
                children->position++;
        } else if (response->error.failure == KUBE_FAILURE_NONE) {
                child->previous = settle_applied_body(response->body, run->worker->config->operator_name);
                child->version = version_of(response);
                if (!child->previous || !child->version ||
                    scan_object(response->body, response->body_size, &object) < 0 ||
                    take_uid(child, object.uid) < 0) {
                        run_finish(run, RESULT_RETRY, "a child of it cannot be read");
                        return;
                }
        }
        children_advance(children);
}

void children_note_touched(struct child_object *child, const struct kube_response *response)
{
        _cleanup_free_ char *version = version_of(response);
        struct scan_object object;

        if (!child->looked || scan_object(response->body, response->body_size, &object) < 0)
                return;
        child->touched = !child->version || !version || strcmp(child->version, version) != 0;
        (void)take_uid(child, object.uid);
}

int children_look(struct children *children, const struct child_object *child)
{
        return children_request(children, child, "GET", NULL, on_looked);
}
