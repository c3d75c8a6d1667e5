/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/status-document.h"

#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "controller/due/assigned.h"
#include "controller/due/push.h"
#include "controller/order/uninstall.h"
#include "controller/run/assign.h"
#include "controller/run/failure.h"
#include "ipc/log.h"
#include "queue/look.h"
#include "queue/rate.h"
#include "supervisor/control/configured.h"
#include "supervisor/control/run-history.h"
#include "supervisor/folders/leftover-finalizers.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/handlers/stamp.h"
#include "supervisor/supervisor.h"

static const char *phase_name(enum supervisor_phase phase)
{
        static const char *const name[] = {"following", "starting", "running",
                                           "stopping",  "stopping", "ending"};

        return name[phase];
}

static void write_failing_counts(const struct supervisor *supervisor, const struct watch *watch,
                                 struct text *json)
{
        struct ledger_failing failing = {0};

        (void)ledger_count_failing(supervisor->controller.ledger, watch->config->name, &failing);
        json_uint64(json, "failing", failing.failing);
        json_uint64(json, "permanent", failing.permanent);
        json_uint64(json, "throttled", failing.throttled);
}

static uint64_t metrics_dropped(const struct watch *watch)
{
        uint64_t sum = 0;

        for (enum metric_drop drop = 0; drop < METRIC_DROP_COUNT; drop++)
                sum += watch_place_of(watch)->metrics_dropped[drop];
        return sum;
}

static void write_rate(const struct watch *watch, struct text *json)
{
        const struct queue *queue = watch->controller->queue;
        struct queue_rate rate = queue_rate(queue, watch_number(watch));
        bool waits = rate.next > clock_boottime_usec();

        if (watch->config->handler.rate_milli == 0)
                return;
        json_uint64(json, "rateWaiting", waits ? queue_count(queue, watch_number(watch)).queued : 0);
        json_uint64(json, "rateWaited", rate.waited_runs);
        json_uint64(json, "rateWaitedFor", rate.waited_usec);
}

static void write_watch_uninstall(const struct watch *watch, struct text *json)
{
        if (!watch->controller->uninstall.active || !uninstall_concerns(watch))
                return;
        json_string(json, "unseen", watch->uninstall.unseen ? watch->uninstall.unseen : "");
        json_bool(json, "searched", watch->health == WATCH_ABSENT || uninstall_is_searched(watch));
}

static void write_place(const struct watch_place *place, struct text *json)
{
        json_string(json, "limitsWeakened", place->limits_weakened);
        json_string(json, "missingNamespaces", place->missing_namespaces ? place->missing_namespaces : "");
        json_string(json, "refusedNamespaces", place->refused_namespaces ? place->refused_namespaces : "");
}

static const char *watch_state_name(const struct supervisor *supervisor, const struct watch *watch)
{
        if (supervisor->phase == PHASE_FOLLOWING)
                return "following";
        if (watch->health != WATCH_HEALTHY)
                return watch_health_name(watch->health);
        return watch->synced ? "in-sync" : "syncing";
}

void status_write_watch(const struct supervisor *supervisor, size_t index, struct text *json)
{
        static const struct {
                const char *member, *name;
        } counter[] = {
                {"events", "watch_events"},
                {"lists", "lists"},
                {"relists", "relists"},
                {"reconnects", "reconnects"},
                {"resumed", "resumed"},
                {"watchLists", "watch_lists"},
                {"bookmarks", "bookmarks"},
                {"undecodable", "undecodable"},
                {"ownersIgnored", "owners_ignored"},
                {"contentsDropped", "contents_dropped"},
                {"unannounced", "dirty"},
                {"listShown", "list_shown"},
                {"listExpected", "list_expected"},
        };
        const struct watch *watch = &supervisor->controller.watch[index];
        const char *waits_for = owned_awaited(watch);
        const struct access_state *access = access_of(watch);
        struct queue_counts counts = assign_count(&supervisor->controller, watch);

        text_append_string(json, "{");
        json_string(json, "name", watch->config->name);
        json_string(json, "owner", watch->config->owner);
        json_string(json, "apiVersion", watch->config->api_version);
        json_string(json, "kind", watch->config->kind);
        json_string(json, "state", watch_state_name(supervisor, watch));
        json_string(json, "reason",
                    watch->health != WATCH_HEALTHY ? watch_place_of(watch)->degraded_reason : "");
        json_string(json, "waitsFor", waits_for ? waits_for : "");
        json_bool(json, "startupAwaited", startup_awaited(watch) != NULL);
        json_bool(json, "accessAwaited", access_awaited(watch));
        json_string(json, "accessTrouble", access && access->failing ? access->trouble.reason : "");
        json_uint64(json, "accessExpires", access ? access->expires_realtime : 0);
        json_bool(json, "unsure", watch->unsure);
        json_uint64(json, "behindSince", watch->behind_realtime);
        json_uint64(json, "pausedSince", watch->paused_realtime);
        json_uint64(json, "pausedBy", watch->paused_by);
        json_string(json, "pauseReason", watch->pause_reason);
        json_uint64(json, "degradedSince",
                    watch->health != WATCH_HEALTHY ? watch_place_of(watch)->degraded_realtime : 0);
        json_bool(json, "confidential", watch->config->confidential);
        json_bool(json, "otherCluster", watch->other_cluster);
        json_bool(json, "handlerStale", handler_is_stale(watch));
        json_uint64(json, "metricsDropped", metrics_dropped(watch));
        json_uint64(json, "previousNotKept", watch->not_kept);
        write_place(watch_place_of(watch), json);
        json_string(json, "resourceVersion", watch->resource_version);
        json_uint64(json, "syncedSince", watch->synced_realtime);
        json_uint64(json, "objects", watch->objects);
        json_uint64(json, "queued", counts.queued);
        json_uint64(json, "running", counts.running);
        write_rate(watch, json);
        json_uint64(json, "writing", counts.answered);
        json_uint64(json, "waiting", counts.delayed);
        json_uint64(json, "settling", counts.settling);
        if (watch->config->finalizer)
                json_uint64(json, "held",
                            (uint64_t)ledger_count(supervisor->controller.ledger, watch->config->name));
        write_watch_uninstall(watch, json);
        json_uint64(json, "finalizersWritten", watch->finalizers_written);
        json_uint64(json, "finalizersFailed", watch->finalizers_failed);
        write_failing_counts(supervisor, watch, json);
        json_uint64(json, "runs", watch->metrics.work.count);
        json_uint64(json, "runTime", watch->metrics.work.sum_usec);
        json_uint64(json, "succeeded", watch->successes);
        json_uint64(json, "failed", watch->failures_total);
        for (size_t i = 0; i < ELEMENTS(counter); i++)
                json_uint64(json, counter[i].member,
                            counters_get(&child_of(watch)->counters, counter[i].name));
        json_uint64(json, "pid", (uint64_t)child_of(watch)->process.pid);
        json_close(json, "},");
}

/* The runs that have a handler together with others, or wait for company: `parallel`, `batch`. The first; NULL. */
static const struct assignment *find_shared(const struct worker *worker, size_t *ret_count)
{
        const struct assignment *found = NULL;

        *ret_count = 0;
        for (size_t i = 0; i < worker->given_count; i++) {
                const struct assignment *given = &worker->given[i];
                const struct config_handler *handler =
                        &worker->controller->watch[given->run.watch].config->handler;

                if (!given->aside || given->answered || (handler->parallel <= 1 && handler->batch_max == 0))
                        continue;
                found = found ? found : given;
                ++*ret_count;
        }
        return found;
}

void status_write_worker(const struct supervisor *supervisor, size_t index, const struct assignment *given,
                         struct text *json)
{
        const struct worker *worker = &supervisor->controller.worker[index];
        size_t shared;
        const struct assignment *first = find_shared(worker, &shared);
        const struct queue_run *run;
        uint64_t since;

        given = given || worker_run(worker) ? given : first;
        run = given ? &given->run : worker_run(worker);
        since = given && given->aside ? given->since : worker->started_boottime;
        text_append_string(json, "{");
        json_uint64(json, "index", index);
        json_uint64(json, "pid", (uint64_t)worker_child(worker)->process.pid);
        json_string(json, "state", !run ? "idle" : given && given->answered ? "writing" : "running");
        json_uint64(json, "together", shared);
        json_uint64(json, "writing", worker->aside_count - shared);
        if (run) {
                json_string(json, "watch", supervisor->controller.watch[run->watch].config->name);
                json_string(json, "key", run->key);
                json_uint64(json, "runningFor", clock_boottime_usec() - since);
        }
        json_close(json, "},");
}

#define QUARANTINED_MAX 1000 /* are listed */
#define FAILING_MAX     100  /* likewise; each has its error texts */

/* Part of the answer. */
struct page {
        const struct supervisor *supervisor;
        struct text *json;
};

static int write_quarantined(const char *watch, const struct ledger_row *row, void *userdata)
{
        const struct page *page = userdata;
        const struct supervisor *supervisor = page->supervisor;
        struct text *json = page->json;

        text_append_string(json, "{");
        json_string(json, "watch", watch);
        json_string(json, "key", row->key);
        json_string(json, "uid", row->uid);
        json_uint64(json, "crashes", row->crashes);
        json_uint64(json, "lastCrash", ledger_to_realtime(supervisor, row->crashed_realtime));
        json_uint64(json, "until", ledger_to_realtime(supervisor, row->quarantined_until));
        json_string(json, "error", row->first_error);
        json_close(json, "},");
        return 0;
}

void status_write_row(const struct supervisor *supervisor, const char *watch, const struct ledger_row *row,
                      struct text *json)
{
        text_append_string(json, "{");
        json_string(json, "watch", watch);
        json_string(json, "key", row->key);
        json_string(json, "uid", row->uid);
        json_uint64(json, "attempts", ending_attempts(row));
        json_uint64(json, "refused", row->refused);
        json_bool(json, "permanent", row->permanent);
        json_uint64(json, "throttled", row->throttled);
        json_bool(json, "deleting", row->deleting);
        json_uint64(json, "next", ledger_to_realtime(supervisor, row->next_realtime));
        json_string(json, "nextReason", row->next_realtime > 0 ? run_reason_name(row->next_reason) : "");
        json_uint64(json, "crashes", row->crashes);
        json_uint64(json, "quarantinedUntil", ledger_to_realtime(supervisor, row->quarantined_until));
        history_write_wait(supervisor, watch, row, json);
        json_string(json, "firstError", row->first_error);
        json_string(json, "lastError", row->last_error);
        json_close(json, "},");
}

static int write_failing(const char *watch, const struct ledger_row *row, void *userdata)
{
        const struct page *page = userdata;

        status_write_row(page->supervisor, watch, row, page->json);
        return 0;
}

/* Kept by CLOCK_BOOTTIME; shown by CLOCK_REALTIME. */
static void write_slowest(struct supervisor *supervisor, struct text *json)
{
        uint64_t now = clock_boottime_usec(), realtime = clock_realtime_usec();

        slowest_forget(&supervisor->slowest, now);
        FOREACH_ARRAY(run, supervisor->slowest.run, supervisor->slowest.count) {
                text_append_string(json, "{");
                json_string(json, "watch", supervisor->controller.watch[run->watch].config->name);
                json_string(json, "key", run->key);
                json_uint64(json, "took", run->took_usec);
                json_uint64(json, "endedAt", realtime - (now - run->ended));
                json_string(json, "result", run->result);
                json_close(json, "},");
        }
}

#define SHARES_MAX 20

static bool is_of_share(const struct queue_run *run, const struct queue_share *share)
{
        size_t length = strlen(share->namespace);

        return run->watch == share->watch && strncmp(run->key, share->namespace, length) == 0 &&
               (length == 0 || run->key[length] == '/');
}

/* Counts as people do (assign_count()): a run that a worker has not begun still waits. */
static size_t begun_of(const struct controller *controller, const struct queue_share *share)
{
        size_t begun = 0;

        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                for (size_t j = 0; j < worker->given_count; j++)
                        begun += assignment_has_begun(worker, &worker->given[j]) &&
                                 is_of_share(&worker->given[j].run, share);
        return begun;
}

static void write_shares(const struct controller *controller, struct text *json)
{
        struct queue_share share[SHARES_MAX];
        size_t count = queue_shares(controller->queue, share, ELEMENTS(share));
        uint64_t now = clock_boottime_usec();

        for (size_t i = 0; i < count; i++) {
                size_t begun = begun_of(controller, &share[i]);

                text_append_string(json, "{");
                json_string(json, "watch", controller->watch[share[i].watch].config->name);
                json_string(json, "namespace", share[i].namespace);
                json_uint64(json, "queued", share[i].queued + share[i].running - begun);
                json_uint64(json, "running", begun);
                json_uint64(json, "waitingFor", share[i].since > 0 ? now - share[i].since : 0);
                json_close(json, "},");
        }
}

void status_write_doubt(const struct supervisor *supervisor, const struct ledger_doubt *doubt,
                        struct text *json)
{
        text_append_string(json, "{");
        json_string(json, "watch", doubt->watch);
        json_string(json, "key", doubt->key);
        json_string(json, "uid", doubt->uid);
        json_uint64(json, "crashes", doubt->crashes);
        json_uint64(json, "lastCrash", ledger_to_realtime(supervisor, doubt->crashed_realtime));
        json_uint64(json, "until", ledger_to_realtime(supervisor, doubt->until_realtime));
        json_bool(json, "unread", doubt->unread);
        json_string(json, "error", doubt->error);
        json_close(json, "},");
}

static int write_doubt_of_watch(const struct ledger_doubt *doubt, void *userdata)
{
        const struct page *page = userdata;

        if (watch_find(&page->supervisor->controller, doubt->watch))
                status_write_doubt(page->supervisor, doubt, page->json);
        return 0;
}

/* Writes what the server's Retry-After holds back. */
static void write_held_back(const struct throttles *throttles, struct text *json)
{
        uint64_t now = clock_boottime_usec();

        for (size_t i = 0; i < THROTTLES_MAX; i++) {
                if (throttles->entry[i].until <= now)
                        continue;
                text_append_string(json, "{");
                json_string(json, "resource", throttles->entry[i].resource);
                json_uint64(json, "until", clock_realtime_usec() + (throttles->entry[i].until - now));
                json_close(json, "},");
        }
}

static void write_turn(struct text *json, const char *name, const struct turn *turn)
{
        text_printf(json, "\"%s\":{", name);
        json_uint64(json, "took", turn->wall_usec);
        json_uint64(json, "processor", turn->processor_usec);
        json_string(json, "what", turn->what ? turn->what : "");
        json_uint64(json, "endedAt", turn->ended_realtime);
        json_close(json, "},");
}

static void write_turn_status(const struct supervisor *supervisor, struct text *json)
{
        const struct turns *turns = &supervisor->turns;

        text_append_string(json, "\"turns\":{");
        json_uint64(json, "count", turns->processor.count);
        json_uint64(json, "slow", turns->slow);
        write_turn(json, "longest", &turns->longest);
        write_turn(json, "longestProcessor", &turns->longest_processor);
        json_close(json, "},");
}

static void write_uninstall(const struct supervisor *supervisor, struct text *json)
{
        const struct controller *controller = &supervisor->controller;

        json_uint64(json, "uninstallingSince",
                    controller->uninstall.active ? controller->uninstall.realtime : 0);
        json_uint64(json, "uninstallingBy", controller->uninstall.by);
        json_bool(json, "uninstalled", uninstall_is_done(controller));
}

static void write_lead(const struct supervisor_lead *lead, struct text *json)
{
        uint64_t now = clock_boottime_usec();

        if (!lead->child)
                return;
        text_append_string(json, "\"replica\":{");
        json_string(json, "member", lead->member);
        json_string(json, "state", lead_state_name(lead->state));
        json_string(json, "leader", lead->leader);
        json_uint64(json, "epoch", lead->epoch);
        json_uint64(json, "left",
                    lead->state == LEAD_LEADING && lead->stop_boottime > now ? lead->stop_boottime - now
                                                                             : 0);
        json_string(json, "trouble", lead->trouble);
        json_close(json, "},");
}

static void write_startup(const struct controller *controller, struct text *json)
{
        bool awaited = startup_pending(controller) != NULL;

        json_bool(json, "startupAwaited", awaited);
        json_string(json, "startupError",
                    awaited && controller->startup_error ? controller->startup_error : "");
}

int status_write(struct supervisor *supervisor, struct text *json)
{
        struct page page = {supervisor, json};
        uint64_t dropped = log_dropped();

        for (size_t i = 0; i < supervisor->child_count; i++)
                dropped += supervisor->child[i].log_dropped;
        text_append_string(json, "{");
        json_string(json, "operator", supervisor->config->operator_name);
        json_string(json, "version", RECONCILED_VERSION);
        json_string(json, "phase", phase_name(supervisor->phase));
        json_uint64(json, "pid", (uint64_t)getpid());
        json_uint64(json, "startedAt", supervisor->life.started_realtime);
        json_uint64(json, "restarts", supervisor->life.starts - 1);
        json_string(json, "server", supervisor->credential ? supervisor->credential->credential.server : "");
        json_string(json, "identity",
                    supervisor->credential ? supervisor->credential->credential.identity : "");
        json_string(json, "log", log_target_name(LOG_TARGET_AUTO)); /* as it was resolved */
        json_uint64(json, "logLinesDropped", dropped);
        json_string(json, "notReloaded", supervisor->reload.refused);
        json_uint64(json, "reloadPause", supervisor->reload.pause_usec);
        write_lead(&supervisor->lead, json);
        write_startup(&supervisor->controller, json);
        write_uninstall(supervisor, json);
        write_turn_status(supervisor, json);
        text_append_string(json, "\"events\":{");
        json_uint64(json, "written", workers_sum(supervisor, "events_written"));
        json_uint64(json, "dropped", workers_sum(supervisor, "events_dropped"));
        json_close(json, "},");
        text_append_string(json, "\"gateway\":{");
        json_uint64(json, "certificateExpires", gateway_count(supervisor, "certificate_expires"));
        json_bool(json, "certificateStale", gateway_count(supervisor, "certificate_stale") > 0);
        json_bool(json, "certificateExpired", gateway_count(supervisor, "certificate_expired") > 0);
        json_close(json, "},");
        text_append_string(json, "\"secrets\":{");
        json_string(json, "folder", supervisor->secrets.folder);
        json_bool(json, "onDisk", supervisor->secrets.on_disk);
        json_close(json, "},");
        text_append_string(json, "\"heldBack\":[");
        write_held_back(&supervisor->throttles, json);
        json_close(json, "],");
        text_append_string(json, "\"finalizersLeft\":[");
        leftover_finalizers_write_status(supervisor, json);
        json_close(json, "],");
        text_append_string(json, "\"removedWatches\":[");
        configured_write_removed(supervisor, json);
        json_close(json, "],");
        text_append_string(json, "\"quarantine\":[");
        if (configured_visit_quarantined(supervisor, QUARANTINED_MAX, write_quarantined, &page) < 0)
                return -1;
        json_close(json, "],");
        text_append_string(json, "\"failing\":[");
        if (configured_visit_worst(supervisor, FAILING_MAX, write_failing, &page) < 0)
                return -1;
        json_close(json, "],");
        text_append_string(json, "\"doubtful\":[");
        if (ledger_visit_doubts(supervisor->controller.ledger, NULL, ledger_now(supervisor), QUARANTINED_MAX,
                                write_doubt_of_watch, &page) < 0)
                return -1;
        json_close(json, "],");
        text_append_string(json, "\"slowest\":[");
        write_slowest(supervisor, json);
        json_close(json, "],");
        text_append_string(json, "\"namespaces\":[");
        write_shares(&supervisor->controller, json);
        json_close(json, "],");
        text_append_string(json, "\"watches\":[");
        FOREACH_WATCH(watch, &supervisor->controller)
                status_write_watch(supervisor, watch_number(watch), json);
        json_close(json, "],\"workers\":[");
        for (size_t i = 0; i < supervisor->controller.worker_count; i++)
                status_write_worker(supervisor, i, NULL, json);
        json_close(json, "]}");
        return json->failed ? -1 : 0;
}
