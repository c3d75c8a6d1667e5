/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See status.h. Each write carries the resourceVersion that was read: for the status of a custom resource
 * the API server checks no UID, so nothing else protects an object that has taken the name meanwhile. A
 * merge patch replaces the whole list of conditions, and conditions of others must not be undone: after a
 * conflict the patch is made anew from what is there then (patch.h).
 */
#include "worker/write/status.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "object/fingerprint.h"
#include "worker/confidential.h"
#include "worker/dependents/dependents.h"
#include "worker/write/condition.h"
#include "worker/write/merge.h"
#include "worker/write/object.h"
#include "worker/write/patch.h"
#include "worker/write/refusal.h"
#include "worker/write/step.h"

/* ---- making it */

static bool wants_ready(const struct run *run)
{
        return run->watch->config->ready_condition[0] && !run_is_of_deletion(run) &&
               run->action != ACTION_UNSELECTED && run->action != ACTION_RELEASE &&
               run->action != ACTION_FINALIZER;
}

static int64_t generation_of(const struct run *run)
{
        struct scan_object object;

        if (scan_object(run->json, strlen(run->json), &object) < 0 || !object.generation.start)
                return 0;
        return strtoll(object.generation.start, NULL, 10);
}

static void format_now(char *buffer, size_t size)
{
        time_t now = time(NULL);
        struct tm tm;

        strftime(buffer, size, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
}

static bool answers_not_ready(const struct run *run)
{
        const cJSON *answered = answer_condition(&run->answer, run->watch->config->ready_condition);

        return answered && strcmp(condition_read(answered).status, "True") != 0;
}

/* The object's conditions, with the handler's and `ready` merged in; owned by the caller. */
static cJSON *merge_conditions(const struct run *run, const struct condition *ready, bool with_answer)
{
        cJSON *list = conditions_of(object_json(run));
        int64_t generation = generation_of(run);
        bool answers_ready = false;
        const cJSON *answered = with_answer ? run->answer.conditions : NULL, *item;
        char now[32];
        int r = list ? 0 : -ENOMEM;

        format_now(now, sizeof(now));
        cJSON_ArrayForEach(item, answered)
        {
                struct condition condition = condition_read(item);

                bool is_ready = ready && strcmp(condition.type, ready->type) == 0;

                /* Waiting for dependents takes precedence. */
                if (is_ready && dependents_waiting(run) && !answers_not_ready(run))
                        continue;
                if (r >= 0)
                        r = condition_set(list, &condition, generation, now);
                answers_ready = answers_ready || is_ready;
        }
        /* The handler's own condition Ready takes precedence. */
        if (r >= 0 && ready && !answers_ready)
                r = condition_set(list, ready, generation, now);
        if (r >= 0)
                return list;
        cJSON_Delete(list);
        return NULL;
}

/* Appends the conditions to the handler's own text: a tree would change large numbers on the way. */
static int make_text(struct run *run, struct span handlers, const cJSON *conditions)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        _cleanup_free_ char *list = conditions ? cJSON_PrintUnformatted(conditions) : NULL;

        if (conditions && !list)
                return -ENOMEM;
        if (!handlers.start)
                text_append_string(&text, "{");
        else
                text_append(&text, handlers.start, handlers.size - (list ? 1 : 0));
        if (list)
                text_printf(&text, "%s\"conditions\":%s}",
                            handlers.start && run->answer.status->child ? "," : "", list);
        if (text.failed)
                return -ENOMEM;
        free(run->status.text);
        run->status.text = text_take(&text);
        return run->status.text ? 0 : -ENOMEM;
}

/* Takes the list. with_answer: together with the handler's status. */
static int make_status(struct run *run, cJSON *conditions, bool with_answer)
{
        const cJSON *handlers = with_answer ? run->answer.status : NULL;
        cJSON *status = handlers ? cJSON_Duplicate(handlers, true) : cJSON_CreateObject();
        int r = make_text(run, handlers ? run->answer.status_text : (struct span){0}, conditions);

        if (!status || (conditions && !cJSON_AddItemToObject(status, "conditions", conditions))) {
                cJSON_Delete(status);
                cJSON_Delete(conditions);
                return -ENOMEM;
        }
        cJSON_Delete(run->status.patch);
        run->status.patch = status;
        return r;
}

static bool changes_something(const struct run *run)
{
        return merge_effect_on(object_json(run), "status", run->status.patch) != MERGE_SAME;
}

/* Why the answer's conditions cannot be merged; NULL: they can. */
static const char *obstacle(const struct run *run)
{
        if (run->answer.status && cJSON_GetObjectItemCaseSensitive(run->answer.status, "conditions"))
                return "status.conditions: use the answer's own key `conditions`, where others' are kept";
        if (fingerprint_is_partial(run->object.json, run->object.json_size))
                return "conditions: the watch has metadataOnly, so the object's own are not known";
        return NULL;
}

int status_prepare(struct run *run)
{
        const char *type = run->watch->config->ready_condition;
        bool tells_ready = wants_ready(run) && run->action == ACTION_RECONCILE;
        struct condition told = {type, "True", "Reconciled", NULL};
        char waiting[512];
        cJSON *list = NULL;

        if (!run->answer.status && !run->answer.conditions && !tells_ready)
                return 0;
        if (run->answer.conditions || tells_ready) {
                if (obstacle(run)) {
                        run_finish(run, RESULT_PERMANENT, "the handler's answer: %s", obstacle(run));
                        return -EINVAL;
                }
                told.message = run->answer.message;
                if (dependents_waiting(run)) {
                        snprintf(waiting, sizeof(waiting), "waiting for ");
                        confidential_hide_operator(run->worker, dependents_waiting(run),
                                                   waiting + strlen(waiting),
                                                   sizeof(waiting) - strlen(waiting));
                        told = (struct condition){type, "False", "Waiting", waiting};
                }
                list = merge_conditions(run, tells_ready ? &told : NULL, true);
                if (!list) {
                        run_finish(run, RESULT_RETRY, "no memory for the object's conditions");
                        return -ENOMEM;
                }
        }
        if (make_status(run, list, true) < 0) {
                run_finish(run, RESULT_RETRY, "no memory for the object's status");
                return -ENOMEM;
        }
        return changes_something(run);
}

/* ---- writing it */

static int send(struct run *run,
                void (*on_done)(struct kube_transfer *, const struct kube_response *, void *),
                void (*again)(struct run *))
{
        struct span patch = {run->status.text, strlen(run->status.text)};
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = merge_body("status", patch, run->order->uid, object_version(run), &body);

        return r < 0 ? r
                     : patch_send(run, run->watch->resource.status_subresource ? "status" : NULL, &body,
                                  on_done, again);
}

/* A status that is sent to the resource itself is dropped once the resource has a subresource for it.
 * Fields that the CRD's schema lacks are always dropped: people wonder about that, so it is logged, once. */
static void check_kept(struct run *run)
{
        struct worker_watch *watch = run->watch;

        if (merge_effect_on(run->now.json, "status", run->status.patch) != MERGE_CHANGES) {
                step_done(run);
                return;
        }
        if (!watch->resource.status_subresource && !run->request.rediscovered) {
                object_discover(run, step_again);
                return;
        }
        if (!watch->told_status_dropped)
                log_warning(
                        "watch %s, %s: the API server did not keep the status as the handler gave it; are "
                        "all its fields in the CRD's schema? (said once)",
                        run->order->watch, run->order->key);
        watch->told_status_dropped = true;
        step_done(run);
}

static void on_written(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct run *run = userdata;

        run->request.transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE)
                step_failed(run,
                            run->answer.status || run->answer.conditions ? "handler's status"
                                                                         : "operator's condition",
                            response);
        else if (object_take_result(run, response) < 0)
                run_finish(run, RESULT_RETRY, "the API server's answer to the status cannot be understood");
        else
                check_kept(run);
}

int status_send(struct run *run)
{
        return send(run, on_written, step_again);
}

/* ---- a failure */

const char *status_failure_reason(const struct run *run, enum run_result result)
{
        if (run->action == ACTION_FINALIZE)
                return "CleanupFailed";
        switch (result) {
        case RESULT_PERMANENT:
                return "PermanentFailure";
        case RESULT_UNRECOVERABLE:
                return "WriteRefused";
        default:
                return "ReconcileFailed";
        }
}

bool status_is_failure(enum run_result result)
{
        return result == RESULT_RETRY || result == RESULT_PERMANENT || result == RESULT_UNRECOVERABLE ||
               result == RESULT_STOP || result == RESULT_UNAVAILABLE || result == RESULT_FORBIDDEN;
}

void status_describe_failure(const struct run *run, const char *text, char *message, size_t size)
{
        const char *first = run->order->first_error;

        _cleanup_free_ char *both = NULL;

        /* The text about a rollback begins with the cause itself. */
        if (first[0] && strncmp(first, text, strlen(first)) != 0)
                both = format_string("%s; last: %s", first, text);
        confidential_hide_operator(run->worker, both ? both : text, message, size);
        utf8_clean(message);
}

/* Whether the handler's answer is an error that says more about the object than its text. */
static bool carries_more(const struct run *run)
{
        return run->answer.error && (run->answer.status || run->answer.conditions) &&
               !run_is_of_deletion(run) && run->action != ACTION_UNSELECTED;
}

/* Returns false: there is nothing to show, or it cannot be shown. */
static bool prepare_failure(struct run *run, enum run_result result, const char *text)
{
        struct condition ready = {run->watch->config->ready_condition, "False",
                                  status_failure_reason(run, result), NULL};
        bool waits = result == RESULT_SETTLING && strncmp(text, "waiting for ", 12) == 0;
        char message[STATUS_MESSAGE_MAX];
        cJSON *list;

        if (waits && answers_not_ready(run))
                return false; /* the handler's own text stands there already */
        if (waits)            /* waiting is no failure */
                ready.reason = "Waiting";
        status_describe_failure(run, text, message, sizeof(message));
        ready.message = message;
        if (carries_more(run) && obstacle(run)) {
                log_warning(
                        "watch %s, %s: status and conditions beside the handler's error are not written: %s",
                        run->order->watch, run->order->key, obstacle(run));
                return false;
        }
        list = merge_conditions(run, wants_ready(run) ? &ready : NULL, carries_more(run));
        return list && make_status(run, list, carries_more(run)) >= 0 && changes_something(run);
}

static void send_failure(struct run *run);

/* Others have written in between. Ready is a condition of our own, so it is merged with what is there
 * now. */
static void tell_again(struct run *run)
{
        if (!run->cancelled && prepare_failure(run, run->status.told_result, run->status.told))
                send_failure(run);
        else
                run_finish(run, run->status.told_result, "%s", run->status.told);
}

static void on_told(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                    void *userdata)
{
        struct run *run = userdata;

        run->request.transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE) {
                refusal_note(run, response);
                if (response->error.http_status != 404 && response->error.http_status != 409)
                        log_debug("watch %s, %s: its condition Ready cannot be written: %s",
                                  run->order->watch, run->order->key, response->error.message);
        } else {
                (void)object_take_result(run, response); /* a result that cannot be read claims nothing */
        }
        run_finish(run, run->status.told_result, "%s", run->status.told);
}

static void send_failure(struct run *run)
{
        if (send(run, on_told, tell_again) < 0)
                run_finish(run, run->status.told_result, "%s", run->status.told);
}

bool status_tell_failure(struct run *run, enum run_result result, const char *text)
{
        if (run_is_replay(run) || (!status_is_failure(result) && result != RESULT_SETTLING) ||
            (!wants_ready(run) && !carries_more(run)) || !run->json || run->cancelled ||
            run->request.transfer || run->request.discovery ||
            fingerprint_is_partial(run->object.json, run->object.json_size))
                return false;
        if (!prepare_failure(run, result, text))
                return false;
        run->status.told = strdup(text);
        run->status.told_result = result;
        if (!run->status.told)
                return false;
        if (run->watch->discovered)
                send_failure(run);
        else
                object_discover(run, send_failure);
        return true;
}
