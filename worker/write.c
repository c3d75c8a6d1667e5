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
#include "worker/worker.h"

#define WRITE_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define MERGE_PATCH        "application/merge-patch+json"

static void write_next(struct run *run);

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

static void write_failed(struct run *run, const char *what, const struct kube_response *response)
{
        const struct kube_error *error = &response->error;

        ask_refresh(run, response);
        pass_throttle(run, error);
        /* The object, or its kind: the next write asks again which resource it is. */
        if (error->http_status == 404)
                run->watch->discovered = false;
        if (error->http_status == 409)
                run_finish(run, RESULT_CONFLICT, "the object changed while the handler ran");
        else if (error->http_status == 404 && run->watch->resource.plural)
                run_finish(run, RESULT_STALE, "the object is gone");
        else if (error->http_status > 0)
                run_finish(run, RESULT_RETRY, "the API server refused the handler's %s (HTTP %d): %s", what,
                           error->http_status, error->message);
        else
                run_finish(run, RESULT_RETRY, "the handler's %s could not be written: %s", what,
                           error->message);
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
        if (r >= 0 && locked)
                r = fingerprint_object(trigger, worker->config->finalizer, response->body,
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
                write_next(run);
}

static bool status_is_locked(const struct run *run)
{
        return run->watch->config->trigger == TRIGGER_ANY;
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
                run_finish(run, RESULT_SUCCESS, "%s", run->answer.message ? run->answer.message : "");
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

/* Would the merge change anything? `part`: NULL for the whole object, else the member that is merged into.
 */
static bool changes_something(const struct run *run, const char *part, const cJSON *patch)
{
        cJSON *object = cJSON_Parse(current_json(run)), *before, *after;
        bool changes = true;

        before = part ? cJSON_GetObjectItemCaseSensitive(object, part) : object;
        after = merge_patch(cJSON_Duplicate(before, true), patch);
        if (after)
                changes = before ? !cJSON_Compare(before, after, true) : cJSON_GetArraySize(after) > 0;
        cJSON_Delete(after);
        cJSON_Delete(object);
        return changes;
}

static int lock_version(cJSON *body, const char *version)
{
        cJSON *metadata = cJSON_GetObjectItemCaseSensitive(body, "metadata");

        if (!metadata)
                metadata = cJSON_AddObjectToObject(body, "metadata");
        return metadata && cJSON_AddStringToObject(metadata, "resourceVersion", version) ? 0 : -ENOMEM;
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

/* `body` is taken over. */
static int send_patch(struct run *run, const char *subresource, cJSON *body, bool locked,
                      void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        _cleanup_free_ char *path = write_path(run, subresource), *text = NULL;
        struct kube_request request = {
                .method = "PATCH",
                .content_type = MERGE_PATCH,
                .timeout_usec = WRITE_TIMEOUT_USEC,
                .on_done = on_done,
                .userdata = run,
        };
        int r = body && path ? 0 : -ENOMEM;

        if (r >= 0 && locked)
                r = lock_version(body, current_version(run));
        if (r >= 0)
                text = cJSON_PrintUnformatted(body);
        cJSON_Delete(body);
        if (r >= 0 && !text)
                r = -ENOMEM;
        if (r < 0)
                return r;
        request.path = path;
        request.body = text;
        request.body_size = strlen(text);
        return kube_client_start(run->worker->client, &request, &run->transfer);
}

static int send_status(struct run *run)
{
        cJSON *body = cJSON_CreateObject(), *status = cJSON_Duplicate(run->answer.status, true);

        if (!body || !status || !cJSON_AddItemToObject(body, "status", status)) {
                cJSON_Delete(body);
                cJSON_Delete(status);
                return -ENOMEM;
        }
        return send_patch(run, run->watch->resource.status_subresource ? "status" : NULL, body,
                          status_is_locked(run), on_status_written);
}

static void write_next(struct run *run)
{
        int r = 0;

        if (run->cancelled && (run->answer.patch || run->answer.status)) {
                run_finish(run, RESULT_CANCELLED, "the operator stops before the answer was written");
                return;
        }
        if (run->answer.patch && !run->patch_done) {
                run->patch_done = true;
                if (changes_something(run, NULL, run->answer.patch))
                        r = send_patch(run, NULL, cJSON_Duplicate(run->answer.patch, true), true,
                                       on_patched);
                else
                        write_next(run);
        } else if (run->answer.status && changes_something(run, "status", run->answer.status)) {
                r = send_status(run);
        } else {
                run_finish(run, RESULT_SUCCESS, "%s", run->answer.message ? run->answer.message : "");
        }
        if (r < 0)
                run_finish(run, RESULT_RETRY, "a write cannot be started: %s", strerror(-r));
}

static void on_discovered(struct kube_resource *resource, const struct kube_error *error _unused_,
                          const struct kube_response *response, void *userdata)
{
        struct run *run = userdata;

        run->discovery = NULL;
        if (!resource) {
                write_failed(run, "answer", response);
                return;
        }
        kube_resource_done(&run->watch->resource);
        run->watch->resource = *resource;
        run->watch->discovered = true;
        write_next(run);
}

void write_start(struct run *run)
{
        const struct record_watch *config = run->watch->config;
        int r;

        if (run->order->action == ACTION_DELETED && (run->answer.patch || run->answer.status)) {
                log_warning("watch %s, %s: patch and status in the answer to `deleted` are ignored: the "
                            "object is gone",
                            run->order->watch, run->order->key);
                run->answer.patch = run->answer.status = NULL;
        }
        if ((!run->answer.patch && !run->answer.status) || run->watch->discovered) {
                write_next(run);
                return;
        }
        r = kube_discovery_start(run->worker->client, config->api_version, config->kind, on_discovered, run,
                                 &run->discovery);
        if (r < 0)
                run_finish(run, RESULT_RETRY, "the answer cannot be written: %s", strerror(-r));
}
