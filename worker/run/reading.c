/* SPDX-License-Identifier: Apache-2.0 */
/* See reading.h. */
#include "worker/run/reading.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "kube/path.h"
#include "object/bookkeeping.h"
#include "os/file.h"
#include "store/meta.h"
#include "store/reader.h"
#include "store/record.h"
#include "worker/dependents/notes.h"
#include "worker/run/related.h"
#include "worker/run/request.h"
#include "worker/write/leaving.h"
#include "worker/write/object.h"
#include "worker/write/write.h"

#define RECORDED_MAX ((size_t)64 * 1024 * 1024)

/* ---- the object */

static int read_reconcile(struct run *run)
{
        const struct message_run *order = run->order;
        int r = store_read(run->watch->reader, order->generation, order->key, &run->object);

        if (r == -EBADMSG)
                return run_store_damaged(run, run->watch->config);
        if (r < 0)
                return r;
        if (strcmp(run->object.uid, order->uid) != 0)
                return -ENOENT;
        if (resource_version_less(run->object.resource_version, order->at_least_version) ||
            resource_version_less(run->object.resource_version, run->server_version))
                return -EAGAIN;
        /* A store that does not catch up is not waited for any longer: present.c asks the server. */
        if (order->behind < BEHIND_MAX && run->action == ACTION_RECONCILE && child_versions_are_behind(run))
                return -EAGAIN;
        run->fingerprint = run->object.fingerprint;
        return 0;
}

/* If the last state is lost, the identity is all we have. */
static int read_deleted(struct run *run)
{
        const struct message_run *order = run->order;
        int r = store_read_tombstone(run->watch->reader, order->generation, order->key, order->uid,
                                     &run->object);

        if (r == -ENOENT || r == -EBADMSG) {
                run->object = (struct store_object){.resource_version = strdup("")};
                r = run->object.resource_version ? 0 : -ENOMEM;
        }
        return r;
}

static int read_object(struct run *run)
{
        int r = run->order->action == ACTION_DELETED ? read_deleted(run) : read_reconcile(run);

        if (r >= 0)
                r = request_complete_object(run, &run->json);
        return r;
}

/* Whether a parked attempt goes on. For an object that is being deleted it does not: its dependents go
 * too. */
static bool order_is_settling(const struct run *run)
{
        struct scan_object object;

        return run->order->settling[0] && !leaving_is_told(run) && run->action == ACTION_RECONCILE &&
               scan_object(run->json, strlen(run->json), &object) >= 0 && !object.deletion_timestamp.start;
}

static int read_recorded(struct run *run)
{
        const char *folder = run->worker->config->replay_folder;
        _cleanup_free_ char *path = NULL;
        size_t size;
        int r;

        if (asprintf(&path, "%s/%" PRIu64, folder, run->order->sequence) < 0) {
                path = NULL;
                return run_finish(run, RESULT_RETRY, "the recorded request cannot be read: %s",
                                  strerror(ENOMEM));
        }
        r = file_read(path, RECORDED_MAX, &run->recorded, &size);
        return r < 0 ? run_finish(run, RESULT_RETRY, "the recorded request cannot be read: %s", strerror(-r))
                     : RUN_ASKS;
}

/* Else its handler would run for an answer that cannot be written, and the worker would wait for that. 0; negative: the
 * run has ended. */
static int check_throttle(struct run *run)
{
        const char *api_version = run->watch->config->api_version;
        _cleanup_free_ char *path =
                run->watch->discovered
                        ? kube_path(&run->watch->resource, NULL, NULL, NULL)
                        : format_string("%s/%s", strchr(api_version, '/') ? "/apis" : "/api", api_version);
        uint64_t until = kube_client_throttled_until(run->worker->client, path ? path : "");

        if (until <= clock_boottime_usec() + RUN_PATIENCE_USEC)
                return 0;
        run->request.held_until = until;
        return run_finish(run, RESULT_UNAVAILABLE, "the API server asks us to wait for %s (Retry-After)",
                          run->watch->discovered ? run->watch->resource.plural : api_version);
}

/* The operator was killed during the last run, and the store may be older than what that run wrote. */
static int ask_for_version(struct run *run) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        struct identity identity;
        int r = object_fetch(run, &answer);

        if (r < 0 || answer.response.error.failure != KUBE_FAILURE_NONE)
                return r;
        if (identity_read(answer.response.body, answer.response.body_size, false, &identity) >= 0 &&
            strcmp(identity.uid, run->order->uid) == 0)
                memcpy(run->server_version, identity.resource_version, sizeof(run->server_version));
        return 0;
}

/* The names of two operators and their schedules may make the same name: a.b-c with d, and a.b with c-d. */
static int refuse_other_operators(struct run *run)
{
        const char *own = run->worker->config->operator_name;
        _cleanup_free_ char *named = run->watch->config->own_action[0] && run->action == ACTION_RECONCILE
                                             ? notes_find(run->json, false, INSTANCE_KEY)
                                             : NULL;

        if (!named || strcmp(named, own) == 0)
                return 0;
        return run_finish(
                run, RESULT_PERMANENT,
                "the ConfigMap %s is for a %s of the operator %s (its annotation " INSTANCE_KEY
                "), and this is %s: rename the %s, or give one of the operators another `namespace`",
                run->order->key, run->watch->config->own_action, named, own, run->watch->config->own_action);
}

/* What follows; negative: the run has ended. */
static int read_from_store(struct run *run)
{
        int r = read_object(run);

        if (r == -ENOENT)
                return run_finish(run, RESULT_STALE, "the object is gone, or was deleted and created again");
        if (r == -EAGAIN)
                return run_finish(run, RESULT_BEHIND, "the store does not show our own last write yet");
        if (r < 0)
                return run_finish(run, RESULT_RETRY, "the object cannot be read from the store: %s",
                                  strerror(-r));
        r = refuse_other_operators(run);
        if (r < 0)
                return r;
        if (run->action == ACTION_FINALIZER)
                return RUN_PREPARES;
        return order_is_settling(run) ? RUN_RESUMES : RUN_ATTEMPTS;
}

static int take_unselected(struct run *run, const struct kube_response *response)
{
        struct scan_object object;
        int r = scan_object(response->body, response->body_size, &object);

        if (r < 0 || !scan_string_equals(object.uid, run->order->uid))
                return r; /* another object has this name: ours is gone */
        free(run->object.resource_version);
        run->object.resource_version = NULL;
        r = scan_string(object.resource_version, &run->object.resource_version);
        if (r >= 0 && !(run->object.json = strndup(response->body, response->body_size)))
                r = -ENOMEM;
        run->object.json_size = response->body_size;
        return r;
}

/* Asks the server for an object that is not selected any more: the store has forgotten it, but it exists, and the handler is to
 * see it as it is. If it is gone meanwhile, the handler is shown its identity alone. */
static int fetch_unselected(struct run *run) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r = object_fetch(run, &answer);

        if (r < 0)
                return r;
        if (answer.response.error.failure == KUBE_FAILURE_NONE)
                r = take_unselected(run, &answer.response);
        if (r >= 0)
                r = request_complete_object(run, &run->json);
        return r < 0 ? run_finish(run, RESULT_RETRY, "the API server's answer cannot be understood: %s",
                                  strerror(-r))
                     : RUN_PREPARES;
}

int reading_begin(struct run *run)
{
        int r;

        if (run_is_replay(run))
                return read_recorded(run);
        r = check_throttle(run);
        if (r < 0)
                return r;
        /* A person may be faster than the watch: "delete it, and then let it go". */
        if (run->action == ACTION_UNSELECTED || run->action == ACTION_RELEASE)
                return fetch_unselected(run);
        if (run->action == ACTION_RECONCILE && child_kinds_are_unknown(run->order->kinds))
                r = ask_for_version(run);
        return r < 0 ? r : read_from_store(run);
}

/* ---- what it relates to */

/* An object that goes, or is gone, needs no more than itself: its cleanup is never given up. That of an object
 * that is being deleted is still an ordinary run here (write_prepare()). */
static bool is_leaving(const struct run *run)
{
        return run->action != ACTION_RECONCILE || object_is_deleting(run);
}

/* When a related object changes, all objects that might depend on it get a run; this one need not run if
 * nothing differs from its last success. A parked attempt is no success yet. */
static bool is_unneeded(const struct run *run)
{
        const struct message_run *order = run->order;

        return run->action == ACTION_RECONCILE && !order->settling[0] &&
               order->reason == RUN_RELATED_CHANGED && order->known_fingerprint != 0 &&
               order->known_fingerprint == run->fingerprint &&
               order->known_related == run->related.fingerprint && !is_leaving(run);
}

/* The kind, owned or related, that was never listed in the object's namespace: its watcher may not. A handler would take
 * its objects for missing. NULL if there is none. */
static const struct record_watch *find_unlisted(const struct run *run)
{
        const char *key = run->order->key,
                   *slash = run->watch->config->own_action[0] ? NULL : strchr(key, '/');
        _cleanup_free_ char *namespace_name = strndup(key, slash ? (size_t)(slash - key) : 0);
        struct store_progress progress;

        for (size_t i = 0; i < run->worker->watch_count && namespace_name; i++) {
                const struct worker_watch *watch = &run->worker->watch[i];

                if (strcmp(watch->config->owner, run->watch->config->name) == 0 &&
                    store_read_progress(watch->reader, namespace_name, &progress) >= 0 &&
                    progress.version == 0)
                        return watch->config;
        }
        return NULL;
}

int reading_related(struct run *run)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        const struct record_watch *unlisted = is_leaving(run) ? NULL : find_unlisted(run);
        int r;

        if (unlisted)
                return run_finish(
                        run, RESULT_UNAVAILABLE,
                        "the objects of kind %s are unknown in its namespace, as watch %s cannot list them "
                        "there; `reconciledctl status` shows why",
                        unlisted->kind, unlisted->name);
        r = related_collect(run, &error);
        if ((r == -EBADMSG || r == -E2BIG) && is_leaving(run))
                r = 0;
        if (r == -E2BIG) /* by others' objects: no change of its own would end that */
                return run_finish(run, RESULT_UNAVAILABLE, "%s", error_message(&error));
        if (r == -EBADMSG)
                return run_finish(run, RESULT_PERMANENT, "%s", error_message(&error));
        if (r < 0)
                return run_finish(run, RESULT_RETRY, "related objects cannot be read from their store: %s",
                                  strerror(-r));
        return is_unneeded(run) ? write_unneeded(run) : RUN_PREPARES;
}
