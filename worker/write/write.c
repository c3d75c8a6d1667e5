/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying an answer out: `children`, then `patch`, then `status`. What would change nothing is not sent.
 * Each write carries the resourceVersion that was read, so its result is exactly what was read plus our
 * change, and may be claimed as known, unless what was read holds others' changes that the handler has not
 * seen (conflict.c).
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "object/fingerprint.h"
#include "worker/confidential.h"
#include "worker/dependents/dependents.h"
#include "worker/write/finalizer.h"
#include "worker/write/merge.h"
#include "worker/write/sibling.h"
#include "worker/write/status.h"

#define WRITE_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define MERGE_PATCH        "application/merge-patch+json"
#define PARTIAL            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

static void write_next(struct run *run);
static void write_done(struct run *run);

/* ---- errors */

void worker_ask_refresh(struct worker *worker, const struct kube_response *response)
{
        if (response->http_status != 401 || worker->refresh_serial == response->credential_serial)
                return;
        worker->refresh_serial = response->credential_serial;
        (void)child_send(worker->child, MESSAGE_REFRESH,
                         &(struct message_refresh){response->credential_serial});
}

static void pass_throttle(struct run *run, const struct kube_error *error)
{
        struct message_throttle throttle = {.resource = error->resource, .reason = error->message};

        if (error->retry_after_sec <= 0 || (error->http_status != 429 && error->http_status < 500))
                return;
        throttle.until_boottime = clock_boottime_usec() + (uint64_t)error->retry_after_sec * USEC_PER_SEC;
        kube_client_throttle(run->worker->client, error->resource ? error->resource : "",
                             throttle.until_boottime);
        (void)child_send(run->worker->child, MESSAGE_THROTTLE, &throttle);
}

/* What the person who reads a refusal can do about it. */
static const char *advice(const struct kube_error *error)
{
        if (error->http_status == 403 && kube_error_blame(error) != KUBE_BLAME_RIGHTS)
                return "; its admission is in the way, not our rights";
        switch (error->http_status) {
        case 401:
                return "; the credential is being renewed";
        case 403:
                return "; give the operator's user the right to do so (RBAC)";
        case 404:
                return "; it does not serve this kind, or not yet";
        case 400:
        case 413:
        case 415:
        case 422:
                return "; mend what the handler answers: it does not fit the resource";
        default:
                return "";
        }
}

enum run_result write_result_of(const struct kube_error *error)
{
        switch (kube_error_blame(error)) {
        case KUBE_BLAME_SERVER:
                return RESULT_UNAVAILABLE;
        case KUBE_BLAME_RIGHTS:
                return RESULT_FORBIDDEN;
        default:
                return RESULT_RETRY;
        }
}

enum run_result write_result_not_started(int status)
{
        return status == -ENOKEY ? RESULT_UNAVAILABLE : RESULT_RETRY; /* no credential yet */
}

static void write_refused(struct run *run, const char *what, const struct kube_error *error)
{
        char buffer[WORDS_SIZE];
        const char *words =
                confidential_words(run->watch->config->confidential, error, buffer, sizeof(buffer));

        if (error->other_uid)
                run_finish(run, RESULT_STALE, "the object is gone, and another one has its name");
        else if (error->http_status == 409)
                run_finish(run, RESULT_CONFLICT, "the object changed while the handler ran");
        else if (kube_error_is_not_found(error))
                run_finish(run, RESULT_STALE, "the object is gone");
        else if (error->http_status > 0)
                run_finish(run,
                           kube_error_blame(error) == KUBE_BLAME_REQUEST ? RESULT_UNRECOVERABLE
                                                                         : write_result_of(error),
                           "the API server refused the handler's %s (HTTP %d): %s%s", what,
                           error->http_status, words, advice(error));
        else
                run_finish(run, write_result_of(error), "the handler's %s could not be written: %s", what,
                           words);
}

/* A run that came again before that would be told the same. */
static void note_held(struct run *run, const struct kube_error *error)
{
        uint64_t until;

        if (error->retry_after_sec <= 0 || kube_error_blame(error) != KUBE_BLAME_SERVER)
                return;
        until = clock_boottime_usec() + (uint64_t)error->retry_after_sec * USEC_PER_SEC;
        if (until > run->held_until)
                run->held_until = until;
}

void write_note_failure(struct run *run, const struct kube_response *response)
{
        run->http_status = response->error.http_status;
        note_held(run, &response->error);
        worker_ask_refresh(run->worker, response);
        pass_throttle(run, &response->error);
}

/* Not found: the object, or its kind or status have moved since discovery: that is asked, once a run. */
void write_failed(struct run *run, const char *what, const struct kube_response *response)
{
        write_note_failure(run, response);
        if (response->error.http_status == 404 && !run->discovered)
                write_discover(run);
        else
                write_refused(run, what, &response->error);
}

/* ---- after a write */

int write_fingerprint(const struct run *run, const char *json, size_t size, uint64_t *ret)
{
        struct trigger_basis basis = {
                .trigger = (enum trigger)run->watch->config->trigger,
                .ours = {run->watch->config->finalizer_key, run->watch->config->shared,
                         run->watch->config->conditions},
                .program = run->watch->trigger_program,
                .partial = fingerprint_is_partial(run->object.json, run->object.json_size),
        };

        if (run->order->doubtful && basis.trigger == TRIGGER_JQ)
                basis.trigger = TRIGGER_ESSENCE; /* as the watcher does */
        return trigger_fingerprint(&basis, json, size, ret, NULL);
}

int write_take_result(struct run *run, const struct kube_response *response)
{
        struct scan_object object;
        char *version = NULL, *copy;
        int r = scan_object(response->body, response->body_size, &object);

        if (r >= 0)
                r = scan_string(object.resource_version, &version);
        if (r >= 0 && !run->foreign)
                r = write_fingerprint(run, response->body, response->body_size, &run->own_fingerprint);
        /* The object alone: servers end their answers with a line break. */
        copy = r >= 0 ? strndup(object.whole.start, object.whole.size) : NULL;
        if (r < 0 || !copy) {
                free(version);
                free(copy);
                return r < 0 ? r : -ENOMEM;
        }
        if (!run->foreign && strlen(version) < 19)
                run->known_version = strtoull(version, NULL, 10);
        free(run->own_version);
        run->own_version = version;
        free(run->current);
        run->current = copy;
        free(run->current_version);
        run->current_version = strdup(version);
        run->conflicts = 0;
        return run->current_version ? 0 : -ENOMEM;
}

static void on_patched(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct run *run = userdata;

        run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE)
                write_failed(run, "patch", response);
        else if (write_take_result(run, response) < 0)
                run_finish(run, RESULT_RETRY, "the API server's answer to the patch cannot be understood");
        else
                write_done(run);
}

/* ---- writing */

const char *write_current_json(const struct run *run)
{
        return run->current ? run->current : run->json;
}

const char *write_current_version(const struct run *run)
{
        return run->current_version ? run->current_version : run->object.resource_version;
}

static char *write_path(const struct run *run, const char *subresource)
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL, *base = NULL;
        _cleanup_text_ struct text path = TEXT_EMPTY;

        if (kube_key_split(run->order->key, &namespace_name, &name) < 0)
                return NULL;
        base = kube_path(&run->watch->resource, namespace_name, name, subresource);
        if (!base)
                return NULL;
        text_append_string(&path, base);
        kube_path_add(&path, "fieldManager", run->worker->config->operator_name);
        return text_take(&path);
}

int write_patch(struct run *run, const char *subresource, const struct text *body,
                void (*on_done)(struct kube_transfer *, const struct kube_response *, void *),
                void (*again)(struct run *))
{
        _cleanup_free_ char *path = write_path(run, subresource);
        struct kube_request request = {
                .method = "PATCH",
                .path = path,
                .content_type = MERGE_PATCH,
                .body = body->data,
                .body_size = body->size,
                .timeout_usec = WRITE_TIMEOUT_USEC,
                .on_done = again ? conflict_on_patched : on_done,
                .userdata = run,
        };

        run->on_written = on_done;
        run->again = again;
        return path ? kube_client_start(run->worker->client, &request, &run->transfer) : -ENOMEM;
}

int write_get(struct run *run, void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL, *path = NULL;
        struct kube_request request = {
                .method = "GET",
                .accept = run->watch->config->metadata_only ? PARTIAL : NULL,
                .timeout_usec = WRITE_TIMEOUT_USEC,
                .on_done = on_done,
                .userdata = run,
        };
        int r = kube_key_split(run->order->key, &namespace_name, &name);

        if (r < 0)
                return r;
        path = kube_path(&run->watch->resource, namespace_name, name, NULL);
        request.path = path;
        return path ? kube_client_start(run->worker->client, &request, &run->transfer) : -ENOMEM;
}

/* The handler's own patch is for what the handler has seen, and nothing else. */
static int send_object(struct run *run)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r;

        if (run->rebased) {
                run_finish(run, RESULT_CONFLICT, "the object changed while the handler ran");
                return 0;
        }
        r = merge_body(NULL, run->answer.patch_text, run->order->uid, write_current_version(run), &body);
        return r < 0 ? r : write_patch(run, NULL, &body, on_patched, NULL);
}

/* ---- step by step */

static int has_object(struct run *run)
{
        return run->answer.patch &&
               merge_effect_on(write_current_json(run), NULL, run->answer.patch) != MERGE_SAME;
}

static int has_dependents(struct run *run)
{
        return run->action != ACTION_UNSELECTED && run->action != ACTION_RELEASE && dependents_are_due(run);
}

static const struct {
        bool carrying_out;              /* behind the handler, or before it */
        int (*is_due)(struct run *run); /* 1, 0; negative: the run was ended */
        int (*send)(struct run *run);
} steps[] = {
        {false, sibling_is_due, sibling_send},     {false, finalizer_is_wrong, finalizer_send},
        {true, sibling_is_due, sibling_send},      {true, has_dependents, dependents_send},
        {true, has_object, send_object},           {true, status_prepare, status_send},
        {true, finalizer_must_go, finalizer_send},
};

static void write_done(struct run *run)
{
        run->write_step++;
        write_next(run);
}

void write_step_done(struct run *run)
{
        write_done(run);
}

void write_step_again(struct run *run)
{
        write_next(run);
}

/* Others have written meanwhile: the object may belong to another watch by now. */
void write_siblings_again(struct run *run)
{
        if (run->action == ACTION_UNSELECTED || !run->carrying_out ||
            steps[run->write_step].send == dependents_send) {
                sibling_forget(run);
                while (run->write_step > 0 && steps[run->write_step].send != sibling_send)
                        run->write_step--;
        }
        write_next(run);
}

static void all_written(struct run *run)
{
        if (run->action == ACTION_FINALIZE && !run->answer.not_done)
                run->answer.requeue_after_usec =
                        0; /* the object is released: there is nothing to come back for */
        if (run->action == ACTION_FINALIZE && run->answer.not_done && run->answer.requeue_after_usec == 0)
                run_finish(run, RESULT_RETRY, "the cleanup is not done yet%s%s",
                           run->answer.message ? ": " : "", run->answer.message ? run->answer.message : "");
        else if (run->action == ACTION_RECONCILE && dependents_waiting(run))
                wait_begin(run);
        else
                run_finish(run, RESULT_SUCCESS, "%s", run->answer.message ? run->answer.message : "");
}

/* What our finalizer holds while it is being deleted is cleaned up, selected or not. */
static void begin_unselected(struct run *run)
{
        int there =
                run->watch->config->finalizer && finalizer_is_deleting(run) ? finalizer_is_there(run) : 0;

        if (there < 0)
                return;
        if (there)
                run->action = ACTION_FINALIZE;
        if (run->action == ACTION_FINALIZE || run->watch->config->unselected)
                run_handler(run);
        else
                write_start(run); /* only our finalizer is taken off */
}

/* An object that is being deleted is finalized while our finalizer holds it, or if it had lost the finalizer
 * before; else it is no concern of ours. */
static void begin_deleting(struct run *run)
{
        int there = finalizer_is_there(run);

        if (there > 0 || (there == 0 && !run->object.held && run->order->handed_out))
                run_handler(run);
        else if (there == 0)
                run_finish(run, RESULT_SUCCESS, "it is being deleted, and nothing of ours holds it");
}

/* All is known and written that comes before the handler. */
static void begin(struct run *run)
{
        if (run->action == ACTION_UNSELECTED)
                begin_unselected(run);
        else if (run->action == ACTION_FINALIZE)
                begin_deleting(run);
        else
                run_handler(run);
}

static void write_next(struct run *run)
{
        int r;

        while (run->write_step < ELEMENTS(steps) &&
               steps[run->write_step].carrying_out == run->carrying_out) {
                r = steps[run->write_step].is_due(run);
                if (r < 0)
                        return;
                if (r > 0)
                        break;
                run->write_step++;
        }
        if (run->write_step == ELEMENTS(steps)) {
                all_written(run);
                return;
        }
        if (steps[run->write_step].carrying_out != run->carrying_out) {
                if (run->action == ACTION_FINALIZER)
                        run_finish(run, run->own_version ? RESULT_SUCCESS : RESULT_UNNEEDED, "%s", "");
                else
                        begin(run);
                return;
        }
        if (run->cancelled) {
                run_finish(run, RESULT_CANCELLED, "the operator stops before the answer was written");
                return;
        }
        if (!run->watch->discovered) {
                write_discover(run);
                return;
        }
        r = steps[run->write_step].send(run);
        if (r < 0)
                run_finish(run, write_result_not_started(r), "a write cannot be started: %s", strerror(-r));
}

/* ---- discovery, kept for the watch */

static void on_discovered(struct kube_resource *resource, const struct kube_error *error,
                          const struct kube_response *response, void *userdata)
{
        struct run *run = userdata;

        run->discovery = NULL;
        if (!resource) {
                write_note_failure(run, response);
                run_finish(run, write_result_of(error), "the handler's answer could not be written: %s%s",
                           error->message, error->http_status == 401 ? advice(error) : "");
                return;
        }
        kube_resource_done(&run->watch->resource);
        run->watch->resource = *resource;
        run->watch->discovered = true;
        if (run->fetching)
                unselected_fetch(run);
        else if (run->told)
                status_send_failure(run);
        else
                write_next(run);
}

void write_discover(struct run *run)
{
        const struct record_watch *config = run->watch->config;
        int r;

        run->watch->discovered = false;
        run->discovered = true;
        r = kube_discovery_start(run->worker->client, config->api_version, config->kind, on_discovered, run,
                                 &run->discovery);
        if (r < 0)
                run_finish(run, write_result_not_started(r), "the answer cannot be written: %s",
                           strerror(-r));
}

/* By hand, of one that cannot be cleaned up; or of all, because the operator goes. */
static void prepare_release(struct run *run)
{
        if (finalizer_is_deleting(run) || !run->watch->config->finalizer ||
            strcmp(run->order->reason, "uninstall") == 0) {
                write_start(run);
                return;
        }
        log_warning(
                "watch %s, %s: our finalizer stays, because the object is not being deleted: the next run "
                "would add it again",
                run->order->watch, run->order->key);
        run_finish(run, RESULT_STALE, "it is not being deleted");
}

/* The object is gone although the watch wants finalizers: the object had lost ours before it was deleted,
 * had not got it yet, the watch did not want it then, or the server deleted the object at the moment when
 * the finalizer was added (kubernetes#77988). A handler has had the object, so it is finalized all the same.
 * But if somebody took our finalizer off while the object was being deleted, that was intended: nothing
 * runs. */
static void prepare_gone(struct run *run)
{
        run->action = ACTION_FINALIZE;
        if (run->object.held)
                run_finish(run, RESULT_STALE, "somebody else took our finalizer away");
        else
                run_handler(run);
}

/* Nothing is reconciled that is being deleted: it may have been finalized before the watch stopped wanting
 * finalizers, and its handler would make again what it had cleaned up. The handler hears of the end. */
static void prepare_going(struct run *run)
{
        if (!finalizer_is_wrong(run)) {
                run_finish(run, RESULT_STALE, "it is being deleted; its deletion is told when it is gone");
                return;
        }
        run->action = ACTION_FINALIZER; /* ours is left over on it */
        write_next(run);
}

void write_unneeded(struct run *run)
{
        run->action = ACTION_FINALIZER;
        write_next(run);
}

void write_prepare(struct run *run)
{
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
                run_handler(run);
                return;
        }
        if (run->watch->config->finalizer && run->action == ACTION_RECONCILE && finalizer_is_deleting(run)) {
                run->action = ACTION_FINALIZE;
                write_next(run);
                return;
        }
        if (!run->watch->config->finalizer && finalizer_is_deleting(run))
                prepare_going(run);
        else
                write_next(run);
}

void write_start(struct run *run)
{
        if (run_is_replay(run)) {
                run_finish(run, RESULT_SUCCESS, "%s", run->answer.message ? run->answer.message : "");
                return;
        }
        run->carrying_out = true;
        while (run->write_step < ELEMENTS(steps) && !steps[run->write_step].carrying_out)
                run->write_step++;
        if (run->action != ACTION_RECONCILE && run->answer.dependents)
                log_warning(
                        "watch %s, %s: children in the answer to `%s` are ignored: they go with the object",
                        run->order->watch, run->order->key, run_action_name(run->action));
        if ((run->order->action == ACTION_DELETED || !run->object.json) &&
            (run->answer.patch || run->answer.status || run->answer.conditions)) {
                log_warning(
                        "watch %s, %s: patch, status and conditions in the answer to `%s` are ignored: the "
                        "object is gone",
                        run->order->watch, run->order->key, run_action_name(run->action));
                run->answer.patch = run->answer.status = run->answer.conditions = NULL;
        }
        write_next(run);
}
