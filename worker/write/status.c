/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See status.h. Each write carries the resourceVersion that was read: for the status of a custom resource
 * the API server checks no UID, so nothing else protects an object that has taken the name meanwhile. A
 * merge patch replaces the whole list of conditions, and conditions of others must not be undone: after a
 * conflict the patch is made again from what is there then (patch.h).
 */
#include "worker/write/status.h"

#include <assert.h>
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
#include "json/json.h"

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

/* *ret: the object's conditions, with the handler's and `ready` merged in. -E2BIG: the object has too many values there; -ENOMEM. */
static int merge_conditions(const struct run *run, const struct condition *ready, bool with_answer,
                            cJSON **ret)
{
        _cleanup_json_ cJSON *list = NULL;
        int64_t generation = generation_of(run);
        bool answers_ready = false;
        const cJSON *answered = with_answer ? run->answer.conditions : NULL, *item;
        char now[32];
        int r = conditions_of(object_json(run), &list);

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
                *ret = TAKE_PTR(list);
        return r;
}

/* *ret: a merge patch of the status. Appends the conditions to the handler's own text: a tree would change large numbers on the
 * way, and be many times as large while the server answers. with_answer: the handler's status is in it. */
static int make_status(const struct run *run, const cJSON *conditions, bool with_answer, char **ret)
{
        struct span handlers = with_answer ? run->answer.status_text : (struct span){0};
        _cleanup_text_ struct text text = TEXT_EMPTY;
        _cleanup_free_ char *list = conditions ? cJSON_PrintUnformatted(conditions) : NULL;

        if (conditions && !list)
                return -ENOMEM;
        if (handlers.start)
                text_append(&text, handlers.start, handlers.size - 1);
        else
                text_append_string(&text, "{");
        if (list)
                text_printf(&text, "%s\"conditions\":%s",
                            handlers.start && !scan_is_empty(handlers) ? "," : "", list);
        text_append_string(&text, "}");
        if (text.failed)
                return -ENOMEM;
        free(*ret);
        *ret = text_take(&text);
        return *ret ? 0 : -ENOMEM;
}

static struct span whole(const char *status)
{
        assert(status);
        return (struct span){status, strlen(status)};
}

static bool changes_something(const struct run *run, const char *status)
{
        return merge_effect_on(object_json(run), "status", whole(status)) != MERGE_SAME;
}

/* Why the answer's conditions cannot be merged; NULL: they can. */
static const char *obstacle(const struct run *run)
{
        if (run->answer.status_has_conditions)
                return "status.conditions: use the answer's own key `conditions`, where others' are kept";
        if (fingerprint_is_partial(run->object.json, run->object.json_size))
                return "conditions: the watch has metadataOnly, so the object's own are not known";
        return NULL;
}

/* 1: it would change something; 0: it would not; negative: the run has ended. */
static int prepare(struct run *run, char **ret)
{
        _cleanup_json_ cJSON *list = NULL;
        const char *type = run->watch->config->ready_condition;
        bool tells_ready = wants_ready(run) && run->action == ACTION_RECONCILE;
        struct condition told = {type, "True", "Reconciled", NULL};
        char waiting[512];
        int r = 0;

        if (!run->answer.status_text.start && !run->answer.conditions && !tells_ready)
                return 0;
        if (run->answer.conditions || tells_ready) {
                if (obstacle(run))
                        return run_finish(run, RESULT_PERMANENT, "the handler's answer: %s", obstacle(run));
                told.message = run->answer.message;
                if (dependents_waiting(run)) {
                        snprintf(waiting, sizeof(waiting), "waiting for ");
                        confidential_hide_operator(run->worker, dependents_waiting(run),
                                                   waiting + strlen(waiting),
                                                   sizeof(waiting) - strlen(waiting));
                        told = (struct condition){type, "False", "Waiting", waiting};
                }
                r = merge_conditions(run, tells_ready ? &told : NULL, true, &list);
        }
        if (r == -E2BIG)
                return run_finish(
                        run, RESULT_PERMANENT,
                        "the object's conditions have more than %d values; delete what is in the way",
                        JSON_BOUNDED_MAX);
        if (r >= 0)
                r = make_status(run, list, true, ret);
        if (r < 0)
                return run_finish(run, RESULT_RETRY, "no memory for the object's status");
        return changes_something(run, *ret);
}

/* ---- writing it */

static int send(struct run *run, const char *status, struct kube_answer *ret) _suspends_
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = merge_body("status", whole(status), run->order->uid, object_version(run), &body);

        return r < 0 ? r
                     : patch_send(run, run->watch->resource.status_subresource ? "status" : NULL, &body,
                                  true, ret);
}

/* A status that is sent to the resource itself is dropped once the resource has a subresource for it.
 * Fields that the CRD's schema lacks are always dropped: people wonder about that, so it is logged, once. */
static int check_kept(struct run *run, const char *status) _suspends_
{
        struct worker_watch *watch = run->watch;

        if (merge_effect_on(run->now.json, "status", whole(status)) != MERGE_CHANGES)
                return 0;
        if (!watch->resource.status_subresource) {
                int r = object_rediscover(run);

                if (r < 0)
                        return r;
        }
        if (!watch->told_status_dropped)
                log_warning(
                        "watch %s, %s: the API server did not keep the status as the handler gave it; are "
                        "all its fields in the CRD's schema? (said once)",
                        run->order->watch, run->order->key);
        watch->told_status_dropped = true;
        return 0;
}

static int write_once(struct run *run, const char *status) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r = send(run, status, &answer);

        if (r < 0)
                return r;
        if (answer.response.error.failure != KUBE_FAILURE_NONE)
                return object_refused(run,
                                      run->answer.status_text.start || run->answer.conditions
                                              ? "handler's status"
                                              : "operator's condition",
                                      &answer.response);
        if (object_take_result(run, &answer.response) < 0)
                return run_finish(run, RESULT_RETRY,
                                  "the API server's answer to the status cannot be understood");
        return check_kept(run, status);
}

int status_send(struct run *run)
{
        _cleanup_free_ char *status = NULL;
        int r = prepare(run, &status);

        if (r > 0)
                r = object_may_write(run);
        return r > 0 ? write_once(run, status) : r;
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
        return run->answer.error && (run->answer.status_text.start || run->answer.conditions) &&
               !run_is_of_deletion(run) && run->action != ACTION_UNSELECTED;
}

/* Returns false: there is nothing to show, or it cannot be shown. */
static bool prepare_failure(const struct run *run, char **ret)
{
        _cleanup_json_ cJSON *list = NULL;
        enum run_result result = run->end.result;
        const char *text = run->end.text;
        struct condition ready = {run->watch->config->ready_condition, "False",
                                  status_failure_reason(run, result), NULL};
        bool waits = result == RESULT_SETTLING && strncmp(text, "waiting for ", 12) == 0;
        char message[STATUS_MESSAGE_MAX];

        if (waits && answers_not_ready(run))
                return false; /* the handler's own text is there already */
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
        return merge_conditions(run, wants_ready(run) ? &ready : NULL, carries_more(run), &list) >= 0 &&
               make_status(run, list, carries_more(run), ret) >= 0 && changes_something(run, *ret);
}

static bool is_to_be_told(const struct run *run)
{
        return !run_is_replay(run) && !run->is_crowded_out &&
               (status_is_failure(run->end.result) || run->end.result == RESULT_SETTLING) &&
               (wants_ready(run) || carries_more(run)) && run->json && run->end.text && !run->cancelled &&
               !fingerprint_is_partial(run->object.json, run->object.json_size);
}

void status_tell_failure(struct run *run)
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_free_ char *status = NULL;
        char words[CONFIDENTIAL_WORDS_MAX];
        int r;

        if (!is_to_be_told(run) || !prepare_failure(run, &status) || object_discover(run) < 0)
                return;
        /* Ready is a condition of our own, so it is merged with what others have written in between. */
        while ((r = send(run, status, &answer)) == -EAGAIN)
                if (run->cancelled || !prepare_failure(run, &status))
                        return;
        if (r < 0)
                return;
        if (answer.response.error.failure == KUBE_FAILURE_NONE) {
                (void)object_take_result(run, &answer.response); /* an unreadable one claims nothing */
                return;
        }
        refusal_note(run, &answer.response);
        if (answer.response.error.http_status != 404 && answer.response.error.http_status != 409)
                log_debug("watch %s, %s: its condition Ready cannot be written: %s", run->order->watch,
                          run->order->key,
                          confidential_words(run->watch->config->confidential, &answer.response.error, words,
                                             sizeof(words)));
}
