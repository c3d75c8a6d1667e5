/* SPDX-License-Identifier: Apache-2.0 */
/* The whole state as one JSON document, for reconciledctl. Members are documented in reconciledctl(1). */
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "supervisor/supervisor.h"

static const char *phase_name(enum supervisor_phase phase)
{
        static const char *const name[] = {"starting", "running", "stopping", "stopping", "ending"};

        return name[phase];
}

static void member(struct text *json, const char *name, const char *value)
{
        text_printf(json, "\"%s\":", name);
        text_json_string(json, value ? value : "");
        text_append(json, ",", 1);
}

static void number(struct text *json, const char *name, uint64_t value)
{
        text_printf(json, "\"%s\":%" PRIu64 ",", name, value);
}

/* Each object is written with a comma behind every member; the last one is taken back. */
static void close_with(struct text *json, const char *bracket)
{
        if (json->size > 0 && json->data[json->size - 1] == ',')
                json->size--;
        text_append_string(json, bracket);
}

static void write_watch(const struct supervisor *supervisor, size_t index, struct text *json)
{
        static const struct {
                const char *member, *name;
        } counter[] = {
                {"events", "watch_events"}, {"lists", "lists"},
                {"relists", "relists"},     {"reconnects", "reconnects"},
                {"resumed", "resumed"},     {"watchLists", "watch_lists"},
                {"bookmarks", "bookmarks"}, {"undecodable", "undecodable"},
                {"unannounced", "dirty"},
        };
        const struct watch *watch = &supervisor->watch[index];
        struct queue_counts counts = queue_count(supervisor->queue, (unsigned)index);

        text_append_string(json, "{");
        member(json, "name", watch->config->name);
        member(json, "apiVersion", watch->config->api_version);
        member(json, "kind", watch->config->kind);
        member(json, "state",
               watch->health != WATCH_HEALTHY ? watch_health_name(watch->health)
               : watch->synced                ? "in-sync"
                                              : "syncing");
        member(json, "reason", watch->health != WATCH_HEALTHY ? watch->degraded_reason : "");
        number(json, "degradedSince", watch->health != WATCH_HEALTHY ? watch->degraded_realtime : 0);
        member(json, "resourceVersion", watch->resource_version);
        number(json, "syncedSince", watch->synced_realtime);
        number(json, "objects", watch->objects);
        number(json, "queued", counts.queued);
        number(json, "running", counts.running);
        number(json, "waiting", counts.delayed);
        number(json, "settling", counts.settling);
        if (watch->config->finalizer)
                number(json, "held", (uint64_t)ledger_count(supervisor->ledger, watch->config->name));
        number(json, "succeeded", watch->successes);
        number(json, "failed", watch->failures_total);
        for (size_t i = 0; i < ELEMENTS(counter); i++)
                number(json, counter[i].member, counters_get(&watch->child->counters, counter[i].name));
        number(json, "pid", (uint64_t)watch->child->pid);
        close_with(json, "},");
}

static void write_worker(const struct supervisor *supervisor, size_t index, struct text *json)
{
        const struct worker *worker = &supervisor->worker[index];

        text_append_string(json, "{");
        number(json, "index", index);
        number(json, "pid", (uint64_t)worker->child->pid);
        member(json, "state", worker->busy ? "running" : "idle");
        if (worker->busy) {
                member(json, "watch", supervisor->watch[worker->run.watch].config->name);
                member(json, "key", worker->run.key);
                number(json, "runningFor", clock_boottime_usec() - worker->started_boottime);
        }
        close_with(json, "},");
}

#define QUARANTINED_MAX 1000 /* are listed */

static int write_quarantined(const char *watch, const struct ledger_row *row, void *userdata)
{
        struct text *json = userdata;

        text_append_string(json, "{");
        member(json, "watch", watch);
        member(json, "key", row->key);
        member(json, "uid", row->uid);
        number(json, "crashes", row->crashes);
        number(json, "lastCrash", row->crashed_realtime);
        number(json, "until", row->quarantined_until);
        member(json, "error", row->first_error);
        close_with(json, "},");
        return 0;
}

static int write_doubt(const struct ledger_doubt *doubt, void *userdata)
{
        struct text *json = userdata;

        text_append_string(json, "{");
        member(json, "watch", doubt->watch);
        member(json, "key", doubt->key);
        member(json, "uid", doubt->uid);
        number(json, "crashes", doubt->crashes);
        number(json, "lastCrash", doubt->crashed_realtime);
        number(json, "until", doubt->until_realtime);
        text_printf(json, "\"unread\":%s,", doubt->unread ? "true" : "false");
        member(json, "error", doubt->error);
        close_with(json, "},");
        return 0;
}

int status_write(const struct supervisor *supervisor, struct text *json)
{
        uint64_t dropped = log_dropped();

        for (size_t i = 0; i < supervisor->child_count; i++)
                dropped += supervisor->child[i].log_dropped;
        text_append_string(json, "{");
        member(json, "operator", supervisor->config->operator_name);
        member(json, "version", RECONCILED_VERSION);
        member(json, "phase", phase_name(supervisor->phase));
        number(json, "pid", (uint64_t)getpid());
        number(json, "startedAt", supervisor->started_realtime);
        number(json, "restarts", supervisor->starts - 1);
        member(json, "server", supervisor->credential ? supervisor->credential->credential.server : "");
        member(json, "identity", supervisor->credential ? supervisor->credential->credential.identity : "");
        number(json, "logLinesDropped", dropped);
        text_append_string(json, "\"events\":{");
        number(json, "written", workers_sum(supervisor, "events_written"));
        number(json, "dropped", workers_sum(supervisor, "events_dropped"));
        close_with(json, "},");
        text_append_string(json, "\"quarantine\":[");
        if (ledger_visit_quarantined(supervisor->ledger, QUARANTINED_MAX, write_quarantined, json) < 0)
                return -1;
        close_with(json, "],");
        text_append_string(json, "\"doubtful\":[");
        if (ledger_visit_doubts(supervisor->ledger, NULL, clock_realtime_usec(), QUARANTINED_MAX,
                                write_doubt, json) < 0)
                return -1;
        close_with(json, "],");
        text_append_string(json, "\"watches\":[");
        for (size_t i = 0; i < supervisor->watch_count; i++)
                write_watch(supervisor, i, json);
        close_with(json, "],\"workers\":[");
        for (size_t i = 0; i < supervisor->worker_count; i++)
                write_worker(supervisor, i, json);
        close_with(json, "]}");
        return json->failed ? -1 : 0;
}
