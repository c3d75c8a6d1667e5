/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying an answer out: `patch`, then `status`. What would change nothing is not sent. `patch` carries the
 * resourceVersion that was read, so its result is exactly what was read plus our change, and may be claimed
 * as known; a status write changes no essence, and claims nothing unless it was locked the same way.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "store/fingerprint.h"
#include "worker/merge.h"
#include "worker/worker.h"

#define WRITE_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define MERGE_PATCH        "application/merge-patch+json"

static void write_next(struct run *run);
static void write_done(struct run *run);
static void discover(struct run *run);

/* ---- errors */

static void ask_refresh(struct run *run, const struct kube_response *response)
{
        struct worker *worker = run->worker;

        if (response->http_status != 401 || worker->refresh_serial == response->credential_serial)
                return;
        worker->refresh_serial = response->credential_serial;
        (void)child_send(worker->child, MESSAGE_REFRESH,
                         &(struct message_refresh){response->credential_serial});
}

static void pass_throttle(struct run *run, const struct kube_error *error)
{
        struct message_throttle throttle = {.reason = error->message};

        if (error->retry_after_sec <= 0 || (error->http_status != 429 && error->http_status < 500))
                return;
        throttle.until_boottime = clock_boottime_usec() + (uint64_t)error->retry_after_sec * USEC_PER_SEC;
        kube_client_throttle(run->worker->client, throttle.until_boottime);
        (void)child_send(run->worker->child, MESSAGE_THROTTLE, &throttle);
}

/* What the person who reads a refusal can do about it. */
static const char *advice(int http_status)
{
        switch (http_status) {
        case 401:
                return "; the credential is being renewed";
        case 403:
                return "; give the operator's user the right to patch it (RBAC), or its webhook is in the "
                       "way";
        case 400:
        case 413:
        case 415:
        case 422:
                return "; mend what the handler answers: it does not fit the resource";
        default:
                return "";
        }
}

static void write_refused(struct run *run, const char *what, const struct kube_error *error)
{
        if (error->http_status == 409)
                run_finish(run, RESULT_CONFLICT, "the object changed while the handler ran");
        else if (error->http_status == 404)
                run_finish(run, RESULT_STALE, "the object is gone");
        else if (error->http_status > 0)
                run_finish(run, RESULT_RETRY, "the API server refused the handler's %s (HTTP %d): %s%s",
                           what, error->http_status, error->message, advice(error->http_status));
        else
                run_finish(run, RESULT_RETRY, "the handler's %s could not be written: %s", what,
                           error->message);
}

/* Not found: the object, or its kind or status have moved since discovery: that is asked, once a run. */
static void write_failed(struct run *run, const char *what, const struct kube_response *response)
{
        ask_refresh(run, response);
        pass_throttle(run, &response->error);
        if (response->error.http_status == 404 && !run->discovered)
                discover(run);
        else
                write_refused(run, what, &response->error);
}

/* ---- after a write */

static int take_result(struct run *run, const struct kube_response *response, bool locked)
{
        const struct worker *worker = run->worker;
        enum trigger trigger = (enum trigger)run->watch->config->trigger;
        struct scan_object object;
        char *version = NULL, *copy;
        int r = scan_object(response->body, response->body_size, &object);

        if (r >= 0)
                r = scan_string(object.resource_version, &version);
        if (r >= 0 && locked) /* as the watcher will: of what it will see of our write */
                r = (fingerprint_is_partial(run->object.json, run->object.json_size)
                             ? fingerprint_metadata
                             : fingerprint_object)(trigger, worker->config->finalizer, response->body,
                                                   response->body_size, &run->own_fingerprint);
        copy = strndup(response->body, response->body_size);
        if (r < 0 || !copy) {
                free(version);
                free(copy);
                return r < 0 ? r : -ENOMEM;
        }
        free(run->own_version);
        run->own_version = version;
        free(run->current);
        run->current = copy;
        free(run->current_version);
        run->current_version = strdup(version);
        return run->current_version ? 0 : -ENOMEM;
}

static void on_patched(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct run *run = userdata;

        run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE)
                write_failed(run, "patch", response);
        else if (take_result(run, response, true) < 0)
                run_finish(run, RESULT_RETRY, "the API server's answer to the patch cannot be understood");
        else
                write_done(run);
}

static bool status_is_locked(const struct run *run)
{
        return run->watch->config->trigger == TRIGGER_ANY;
}

/* A status that is sent to the resource itself is dropped there once it has a subresource for it. And
 * fields that the CRD's schema lacks are dropped anywhere: that puzzles people, so it is said, once. */
static void check_status_kept(struct run *run)
{
        struct worker_watch *watch = run->watch;

        if (merge_effect_on(run->current, "status", run->answer.status) != MERGE_CHANGES) {
                write_done(run);
                return;
        }
        if (!watch->resource.status_subresource && !run->discovered) {
                discover(run);
                return;
        }
        if (!watch->told_status_dropped)
                log_warning(
                        "watch %s, %s: the API server did not keep the status as the handler gave it; are "
                        "all its fields in the CRD's schema? (said once)",
                        run->order->watch, run->order->key);
        watch->told_status_dropped = true;
        write_done(run);
}

static void on_status_written(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                              void *userdata)
{
        struct run *run = userdata;

        run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE)
                write_failed(run, "status", response);
        else if (take_result(run, response, status_is_locked(run)) < 0)
                run_finish(run, RESULT_RETRY, "the API server's answer to the status cannot be understood");
        else
                check_status_kept(run);
}

/* ---- writing */

static const char *current_json(const struct run *run)
{
        return run->current ? run->current : run->json;
}

static const char *current_version(const struct run *run)
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

static int send_patch(struct run *run, const char *subresource, const struct text *body,
                      void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        _cleanup_free_ char *path = write_path(run, subresource);
        struct kube_request request = {
                .method = "PATCH",
                .path = path,
                .content_type = MERGE_PATCH,
                .body = body->data,
                .body_size = body->size,
                .timeout_usec = WRITE_TIMEOUT_USEC,
                .on_done = on_done,
                .userdata = run,
        };

        return path ? kube_client_start(run->worker->client, &request, &run->transfer) : -ENOMEM;
}

static int send_object(struct run *run)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = merge_body(NULL, run->answer.patch_text, current_version(run), &body);

        return r < 0 ? r : send_patch(run, NULL, &body, on_patched);
}

static int send_status(struct run *run)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        const char *version = status_is_locked(run) ? current_version(run) : NULL;
        int r = merge_body("status", run->answer.status_text, version, &body);

        if (r < 0)
                return r;
        return send_patch(run, run->watch->resource.status_subresource ? "status" : NULL, &body,
                          on_status_written);
}

/* ---- step by step */

static bool has_object(const struct run *run)
{
        return run->answer.patch &&
               merge_effect_on(current_json(run), NULL, run->answer.patch) != MERGE_SAME;
}

static bool has_status(const struct run *run)
{
        return run->answer.status &&
               merge_effect_on(current_json(run), "status", run->answer.status) != MERGE_SAME;
}

static const struct {
        bool (*is_due)(const struct run *run);
        int (*send)(struct run *run);
} steps[] = {{has_object, send_object}, {has_status, send_status}};

static void write_done(struct run *run)
{
        run->write_step++;
        write_next(run);
}

static void write_next(struct run *run)
{
        int r;

        while (run->write_step < ELEMENTS(steps) && !steps[run->write_step].is_due(run))
                run->write_step++;
        if (run->write_step == ELEMENTS(steps)) {
                run_finish(run, RESULT_SUCCESS, "%s", run->answer.message ? run->answer.message : "");
                return;
        }
        if (run->cancelled) {
                run_finish(run, RESULT_CANCELLED, "the operator stops before the answer was written");
                return;
        }
        if (!run->watch->discovered) {
                discover(run);
                return;
        }
        r = steps[run->write_step].send(run);
        if (r < 0)
                run_finish(run, RESULT_RETRY, "a write cannot be started: %s", strerror(-r));
}

/* ---- discovery, kept for the watch */

static void on_discovered(struct kube_resource *resource, const struct kube_error *error,
                          const struct kube_response *response, void *userdata)
{
        struct run *run = userdata;

        run->discovery = NULL;
        if (!resource) {
                ask_refresh(run, response);
                pass_throttle(run, &response->error);
                run_finish(run, RESULT_RETRY, "the handler's answer could not be written: %s%s",
                           error->message, advice(error->http_status == 401 ? 401 : 0));
                return;
        }
        kube_resource_done(&run->watch->resource);
        run->watch->resource = *resource;
        run->watch->discovered = true;
        write_next(run);
}

static void discover(struct run *run)
{
        const struct record_watch *config = run->watch->config;
        int r;

        run->watch->discovered = false;
        run->discovered = true;
        r = kube_discovery_start(run->worker->client, config->api_version, config->kind, on_discovered, run,
                                 &run->discovery);
        if (r < 0)
                run_finish(run, RESULT_RETRY, "the answer cannot be written: %s", strerror(-r));
}

void write_start(struct run *run)
{
        if (run->order->action == ACTION_DELETED && (run->answer.patch || run->answer.status)) {
                log_warning("watch %s, %s: patch and status in the answer to `deleted` are ignored: the "
                            "object is gone",
                            run->order->watch, run->order->key);
                run->answer.patch = run->answer.status = NULL;
        }
        write_next(run);
}
