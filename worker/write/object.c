/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/write/object.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "kube/path.h"
#include "object/fingerprint.h"
#include "worker/waiting.h"
#include "worker/write/refusal.h"

#define GET_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define PARTIAL          "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

/* ---- the present object */

const char *object_json(const struct run *run)
{
        return run->now.json ? run->now.json : run->json;
}

const char *object_version(const struct run *run)
{
        return run->now.version ? run->now.version : run->object.resource_version;
}

struct finalizer_view object_finalizer(const struct run *run)
{
        struct finalizer_view view = {0};

        (void)finalizer_look(object_json(run), strlen(object_json(run)), run->watch->config->finalizers,
                             &view);
        return view;
}

bool object_is_deleting(const struct run *run)
{
        return !run->watch->config->own_action[0] && object_finalizer(run).deleting;
}

uint64_t object_essence(const struct run *run)
{
        const char *json = object_json(run);
        bool partial = fingerprint_is_partial(run->object.json, run->object.json_size);
        uint64_t essence = 0;

        const struct bookkeeping ours = {run->watch->config->finalizers, run->watch->config->shared,
                                         run->watch->config->conditions};

        (void)(partial ? fingerprint_metadata : fingerprint_object)(TRIGGER_ESSENCE, &ours, json,
                                                                    strlen(json), &essence);
        return essence;
}

int object_get(struct run *run, struct kube_answer *ret)
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL, *path = NULL;
        struct kube_request request = {
                .method = "GET",
                .accept = run->watch->config->metadata_only ? PARTIAL : NULL,
                .timeout_usec = GET_TIMEOUT_USEC,
                .confidential = run->watch->config->confidential,
        };
        int r = kube_key_split(run->order->key, &namespace_name, &name);

        if (r < 0)
                return r;
        path = kube_path(&run->watch->resource, namespace_name, name, NULL);
        request.path = path;
        return path ? run_request(run, &request, ret) : -ENOMEM;
}

/* ---- after a write */

int object_fingerprint(const struct run *run, const char *json, size_t size, uint64_t *ret)
{
        struct trigger_basis basis = {
                .trigger = run->watch->config->trigger,
                .ours = {run->watch->config->finalizers, run->watch->config->shared,
                         run->watch->config->conditions},
                .program = run->watch->trigger_program,
                .partial = fingerprint_is_partial(run->object.json, run->object.json_size),
        };

        if (run->order->doubtful && basis.trigger == TRIGGER_JQ)
                basis.trigger = TRIGGER_ESSENCE; /* the watcher does the same */
        return trigger_fingerprint(&basis, json, size, ret, NULL);
}

int object_take_result(struct run *run, const struct kube_response *response)
{
        struct scan_object object;
        char *version = NULL, *copy;
        int r = scan_object(response->body, response->body_size, &object);

        /* An answer about another object says nothing about this one, nor about its version. */
        if (r >= 0 && !scan_string_equals(object.uid, run->order->uid))
                r = -EBADMSG;
        if (r >= 0)
                r = scan_string(object.resource_version, &version);
        if (r >= 0 && !run->now.foreign)
                r = object_fingerprint(run, response->body, response->body_size, &run->own.fingerprint);
        /* Keeps the object alone: servers end their answers with a line break. */
        copy = r >= 0 ? strndup(object.whole.start, object.whole.size) : NULL;
        if (r < 0 || !copy) {
                free(version);
                free(copy);
                return r < 0 ? r : -ENOMEM;
        }
        if (!run->now.foreign && strlen(version) < 19)
                run->own.known_version = strtoull(version, NULL, 10);
        free(run->own.version);
        run->own.version = version;
        free(run->now.json);
        run->now.json = copy;
        free(run->now.version);
        run->now.version = strdup(version);
        run->now.conflicts = 0;
        return run->now.version ? 0 : -ENOMEM;
}

/* ---- discovery, kept for the watch */

static int look_resource_up(struct run *run) _suspends_
{
        const struct record_watch *config = run->watch->config;
        _cleanup_kube_finding_ struct kube_finding found = KUBE_FINDING_EMPTY;
        int r;

        run->watch->discovered = false;
        run->request.rediscovered = true;
        r = run_ask_kind(run, config->api_version, config->kind, &found);
        if (r == -ECANCELED)
                return run_cut_off(run);
        if (r < 0)
                return run_finish(run, refusal_result_not_started(r), "the answer cannot be written: %s",
                                  strerror(-r));
        if (!found.resource.plural) {
                refusal_note(run, &found.response);
                return run_finish(run, refusal_result(&found.error),
                                  "the handler's answer could not be written: %s%s", found.error.message,
                                  found.error.http_status == 401 ? refusal_advice(&found.error) : "");
        }
        kube_resource_done(&run->watch->resource);
        run->watch->resource = found.resource;
        found.resource = (struct kube_resource){0};
        run->watch->discovered = true;
        return 0;
}

int object_discover(struct run *run)
{
        return run->watch->discovered ? 0 : look_resource_up(run);
}

int object_may_write(struct run *run)
{
        int r;

        if (run->cancelled)
                return run_finish(run, RESULT_CANCELLED, "the operator stops before the answer was written");
        r = object_discover(run);
        return r < 0 ? r : 1;
}

int object_rediscover(struct run *run)
{
        int r;

        if (run->request.rediscovered)
                return 0;
        r = look_resource_up(run);
        return r < 0 ? r : -EAGAIN;
}

int object_fetch(struct run *run, struct kube_answer *ret)
{
        const struct kube_error *error = &ret->response.error;
        int r = object_discover(run);

        if (r < 0)
                return r;
        r = object_get(run, ret);
        if (r < 0)
                return run_finish(run, refusal_result_not_started(r),
                                  "the object cannot be read from the API server: %s", strerror(-r));
        if (error->failure == KUBE_FAILURE_NONE || kube_error_is_not_found(error))
                return 0;
        refusal_note(run, &ret->response);
        return run_finish(run, refusal_result(error), "the object cannot be read from the API server: %s",
                          error->message);
}

/* A 404 may mean that the kind, or its status, has moved since discovery. */
int object_refused(struct run *run, const char *what, const struct kube_response *response)
{
        refusal_note(run, response);
        if (response->error.http_status == 404) {
                int r = object_rediscover(run);

                if (r < 0)
                        return r;
        }
        return refusal_finish(run, what, &response->error);
}
