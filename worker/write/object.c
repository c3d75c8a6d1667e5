/* SPDX-License-Identifier: Apache-2.0 */
/* See object.h. */
#include "worker/write/object.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "kube/discovery.h"
#include "kube/path.h"
#include "object/fingerprint.h"
#include "worker/write/refusal.h"

#define GET_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define PARTIAL          "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

/* ---- as it is now */

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
        return object_finalizer(run).deleting;
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

int object_get(struct run *run,
               void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL, *path = NULL;
        struct kube_request request = {
                .method = "GET",
                .accept = run->watch->config->metadata_only ? PARTIAL : NULL,
                .timeout_usec = GET_TIMEOUT_USEC,
                .on_done = on_done,
                .userdata = run,
        };
        int r = kube_key_split(run->order->key, &namespace_name, &name);

        if (r < 0)
                return r;
        path = kube_path(&run->watch->resource, namespace_name, name, NULL);
        request.path = path;
        return path ? kube_client_start(run->worker->client, &request, &run->request.transfer) : -ENOMEM;
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
        run->patch.conflicts = 0;
        return run->now.version ? 0 : -ENOMEM;
}

/* ---- discovery, kept for the watch */

static void on_discovered(struct kube_resource *resource, const struct kube_error *error,
                          const struct kube_response *response, void *userdata)
{
        struct run *run = userdata;

        run->request.discovery = NULL;
        if (!resource) {
                refusal_note(run, response);
                run_finish(run, refusal_result(error), "the handler's answer could not be written: %s%s",
                           error->message, error->http_status == 401 ? refusal_advice(error) : "");
                return;
        }
        kube_resource_done(&run->watch->resource);
        run->watch->resource = *resource;
        run->watch->discovered = true;
        run->request.on_discovered(run);
}

void object_discover(struct run *run, void (*go_on)(struct run *))
{
        const struct record_watch *config = run->watch->config;
        int r;

        run->watch->discovered = false;
        run->request.rediscovered = true;
        run->request.on_discovered = go_on;
        r = kube_discovery_start(run->worker->client, config->api_version, config->kind, on_discovered, run,
                                 &run->request.discovery);
        if (r < 0)
                run_finish(run, refusal_result_not_started(r), "the answer cannot be written: %s",
                           strerror(-r));
}
