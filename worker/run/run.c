/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: read the object, prepare, run the handler, carry its answer out, say DONE. This file decides the order, and so
 * calls all the others; none of them calls it.
 */
#include "worker/run/run.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "kube/discovery.h"
#include "kube/path.h"
#include "os/file.h"
#include "store/meta.h"
#include "store/reader.h"
#include "store/record.h"
#include "worker/arguments.h"
#include "worker/dependents/children.h"
#include "worker/dependents/parked/park.h"
#include "worker/dependents/recall.h"
#include "worker/recording.h"
#include "worker/run/handler.h"
#include "worker/run/related.h"
#include "worker/run/request.h"
#include "worker/run/unselected.h"
#include "worker/write/event.h"
#include "worker/write/leaving.h"
#include "worker/write/object.h"
#include "worker/write/refusal.h"
#include "worker/write/status.h"
#include "worker/write/write.h"

#define RECORDED_MAX ((size_t)64 * 1024 * 1024)

/* ---- the end */

static void run_done(struct run *run)
{
        process_free(run->handler.process);
        dependents_free(run->dependents);
        park_forget_resumed(run);
        answer_done(&run->answer);
        store_object_done(&run->object);
        sd_event_source_disable_unref(run->cancel_timer);
        free(run->json);
        free(run->recorded);
        free(run->related.json);
        shown_done(&run->shown);
        child_versions_done(&run->versions);
        free(run->excess);
        free(run->handler.output);
        free(run->now.json);
        free(run->now.version);
        free(run->own.version);
        free(run->end.text);
        free(run->parked.plan);
        run_forget_writes(run);
}

/* When the operator stops, a success still counts, and a plan that was begun stays on record. */
static bool is_kept(enum run_result result)
{
        return result == RESULT_SUCCESS || result == RESULT_SETTLING;
}

static int report_end(struct run *run)
{
        enum run_result result = run->end.result;
        const char *text = run->end.text ? run->end.text : "no memory for its message";
        struct worker *worker = run->worker;
        _cleanup_text_ struct text kinds = TEXT_EMPTY;
        uint64_t now = clock_boottime_usec();
        bool kinds_known = recall_kinds(run, &kinds) >= 0;
        struct message_done done = {
                .sequence = run->order->sequence,
                .action = run->action,
                .watch = run->order->watch,
                .key = run->order->key,
                .uid = run->order->uid,
                .result = (run->cancelled && !is_kept(result) ? RESULT_CANCELLED : result),
                .fingerprint = run->fingerprint,
                .resource_version = run->object.resource_version,
                .own_fingerprint = run->changed ? 0 : run->own.fingerprint,
                .changed = run->changed,
                .own_resource_version = run->own.version,
                .known_version = run->own.known_version,
                .related = run->related.fingerprint,
                .kinds = kinds.data,
                .kinds_known = kinds_known,
                .settling = run->parked.plan,
                .settle_after_usec = run->parked.after_usec,
                .held_usec = run->request.held_until > now ? run->request.held_until - now : 0,
                .requeue_after_usec = result == RESULT_SUCCESS ? run->answer.requeue_after_usec
                                      : result == RESULT_RETRY ? run->answer.retry_after_usec
                                                               : 0,
                .message = text,
                .duration_usec = now - run->started,
                .handler_cpu_usec = run->handler.usage.cpu_usec,
                .handler_memory_peak = run->handler.usage.memory_peak,
                .handler_out_of_memory = run->handler.out_of_memory,
                .wait_status = (uint64_t)(unsigned)run->handler.wait_status,
                .http_status = (uint64_t)run->request.http_status,
                .handler_ran = run->handler.ran,
                .not_started = run->handler.not_started,
                .write = run->writes.item,
                .write_count = run->writes.count,
                .writes_left_out = run->writes.left_out,
        };

        recorder_run_ended(worker->recorder, run, result, text);
        recording_end(run, done.result, text);
        return child_send(worker->child, MESSAGE_DONE, &done);
}

/* ---- reading */

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
 * its objects for missing. NULL: there is none. */
static const struct record_watch *find_unlisted(const struct run *run)
{
        const char *key = run->order->key, *slash = strchr(key, '/');
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

/* RUN_PREPARES; negative: the run has ended. */
static int collect_related(struct run *run) _suspends_
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
        if (r == -EBADMSG || r == -E2BIG)
                return run_finish(run, RESULT_PERMANENT, "%s", error_message(&error));
        if (r < 0)
                return run_finish(run, RESULT_RETRY, "related objects cannot be read from their store: %s",
                                  strerror(-r));
        return is_unneeded(run) ? write_unneeded(run) : RUN_PREPARES;
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
        _cleanup_free_ char *path =
                run->watch->discovered ? kube_path(&run->watch->resource, NULL, NULL, NULL) : NULL;
        uint64_t until = kube_client_throttled_until(run->worker->client, path ? path : "");

        if (until <= clock_boottime_usec() + RUN_PATIENCE_USEC)
                return 0;
        run->request.held_until = until;
        return run_finish(run, RESULT_UNAVAILABLE, "the API server asks us to wait%s%s (Retry-After)",
                          path ? " for " : "", path ? run->watch->resource.plural : "");
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
        if (run->action == ACTION_FINALIZER)
                return RUN_PREPARES;
        return order_is_settling(run) ? RUN_RESUMES : RUN_ATTEMPTS;
}

static int read_all(struct run *run) _suspends_
{
        int r;

        if (run_is_replay(run))
                return read_recorded(run);
        r = check_throttle(run);
        if (r < 0)
                return r;
        /* A person may be faster than the watch: "delete it, and then let it go". */
        if (run->action == ACTION_UNSELECTED || run->action == ACTION_RELEASE)
                return unselected_fetch(run);
        if (run->action == ACTION_RECONCILE && child_kinds_are_unknown(run->order->kinds))
                r = ask_for_version(run);
        return r < 0 ? r : read_from_store(run);
}

/* ---- the order */

static int ask_handler(struct run *run) _suspends_
{
        int r = children_look(run);

        return r < 0 ? r : handler_run(run);
}

static void carry_out(struct run *run) _suspends_
{
        int next = read_all(run);

        if (next == RUN_RESUMES)
                next = children_resume(run);
        if (next == RUN_ATTEMPTS)
                next = collect_related(run);
        if (next == RUN_PREPARES)
                next = write_prepare(run);
        if (next == RUN_ASKS)
                next = ask_handler(run);
        if (next == RUN_WRITES)
                next = write_answer(run);
        assert(next < 0 && (run->end.is_set || run->dropped));
}

int run_carry_out(struct worker *worker, const struct message_run *order)
{
        _cleanup_(run_done) struct run run = {
                .worker = worker,
                .watch = worker_watch_find(worker, order->watch),
                .fiber = fiber_current(),
                .order = order,
                .action = order->action,
                .started = clock_boottime_usec(),
        };
        int r = -ECANCELED;

        assert(!worker->run);
        if (!run.watch)
                return -EPROTO;
        worker->run = &run;
        worker->runs++;
        carry_out(&run);
        if (!run.dropped)
                status_tell_failure(&run); /* in the object's status first */
        if (!run.dropped)
                r = report_end(&run);
        worker->run = NULL;
        return r;
}

void run_drop(struct run *run)
{
        run->dropped = true;
        fiber_cancel(run->fiber);
}

static int on_cancel_overdue(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct run *run = userdata;

        run_cut_off(run);
        fiber_cancel(run->fiber);
        return 0;
}

void run_cancel(struct run *run, uint64_t grace_usec)
{
        uint64_t at = clock_boottime_usec() + grace_usec;

        run->cancelled = true;
        fiber_ask_to_end(run->fiber);
        if (handler_end(run, grace_usec))
                return;
        /* A request in flight may still end; no other one, and no handler, is begun. */
        if (run->cancel_at > 0 && run->cancel_at <= at)
                return;
        run->cancel_at = at;
        run->cancel_timer = sd_event_source_disable_unref(run->cancel_timer);
        if (sd_event_add_time_relative(run->worker->child->event, &run->cancel_timer, CLOCK_MONOTONIC,
                                       grace_usec, 1, on_cancel_overdue, run) < 0)
                on_cancel_overdue(NULL, 0, run);
}
