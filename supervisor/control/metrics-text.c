/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of families, each with how to find its value. Names of watches need no escaping (lib/config/check/check.c
 * lets nothing else through).
 */
#include "supervisor/control/metrics-text.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "base/duration.h"
#include "controller/due/assigned.h"
#include "controller/due/push.h"
#include "controller/run/assign.h"
#include "ipc/child.h"
#include "ipc/log.h"
#include "queue/look.h"
#include "queue/rate.h"
#include "supervisor/control/configured.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/health.h"

enum type { COUNTER, GAUGE, HISTOGRAM };

static void head(struct text *text, const char *name, enum type type, const char *help)
{
        static const char *const type_name[] = {"counter", "gauge", "histogram"};

        text_printf(text, "# TYPE %s %s\n# HELP %s %s\n", name, type_name[type], name, help);
}

static void seconds(struct text *text, uint64_t usec)
{
        text_printf(text, "%" PRIu64 ".%06" PRIu64 "\n", usec / USEC_PER_SEC, usec % USEC_PER_SEC);
}

/* A family of one number. */
static void single(struct text *text, const char *name, enum type type, const char *help, uint64_t value)
{
        head(text, name, type, help);
        text_printf(text, "%s%s %" PRIu64 "\n", name, type == COUNTER ? "_total" : "", value);
}

static void single_time(struct text *text, const char *name, const char *help, uint64_t usec)
{
        head(text, name, GAUGE, help);
        text_printf(text, "%s ", name);
        seconds(text, usec);
}

/* ---- numbers of a watch */

struct watch_values {
        uint64_t depth, waiting, settling, running, writing, adds, retries, errors, concurrency;
        uint64_t unfinished_usec, longest_usec, lag_usec, behind_sec, objects, tried_again, missed;
        uint64_t synced, degraded, failed, absent, unsure, paused;
        uint64_t finalizers_written, finalizers_failed;
        uint64_t cpu_usec, memory_peak, memory_kills, limits_weakened, access_failing, not_kept;
        uint64_t rate_waiting, rate_waited, rate_waited_usec;
        struct ledger_failing failing;
};

static uint64_t count_errors(const struct watch_metrics *metrics)
{
        return metrics->result[RESULT_RETRY] + metrics->result[RESULT_PERMANENT] +
               metrics->result[RESULT_UNRECOVERABLE] + metrics->result[RESULT_STOP] +
               metrics->result[RESULT_UNAVAILABLE] + metrics->result[RESULT_FORBIDDEN];
}

static uint64_t concurrency_of(const struct watch *watch)
{
        unsigned limit = watch->config->concurrency;
        unsigned most = config_at_once(watch->controller->config, watch->config);

        return limit > 0 && limit < most ? limit : most;
}

/* The age of the runs that are in flight: of all together, and of the longest. */
static void add_ages(const struct watch *watch, struct watch_values *values)
{
        uint64_t now = clock_boottime_usec();

        FOREACH_ARRAY(worker, watch->controller->worker, watch->controller->worker_count) {
                FOREACH_ARRAY(given, worker->given, worker->given_count) {
                        uint64_t age = now - (given->aside ? given->since : worker->started_boottime);

                        if (given->run.watch != watch_number(watch) || !assignment_has_begun(worker, given))
                                continue;
                        values->unfinished_usec += age;
                        if (age > values->longest_usec)
                                values->longest_usec = age;
                }
        }
}

static struct watch_values values_of(const struct watch *watch)
{
        const struct watch_metrics *metrics = &watch->metrics;
        const struct watch_place *place = watch_place_of(watch);
        const struct access_state *access = access_of(watch);
        const struct queue_counts queued = queue_count(watch->controller->queue, watch_number(watch)),
                                  assigned = assign_count(watch->controller, watch);
        const struct queue_rate rate = queue_rate(watch->controller->queue, watch_number(watch));
        uint64_t now = clock_realtime_usec();
        struct watch_values values = {
                .depth = assigned.queued,
                .running = assigned.running,
                .waiting = queued.delayed,
                .settling = queued.settling,
                .writing = queued.answered,
                .adds = metrics->adds,
                .retries = metrics->retries,
                .errors = count_errors(metrics),
                .concurrency = concurrency_of(watch),
                .behind_sec = watch->behind_realtime == 0 || now < watch->behind_realtime
                                      ? 0
                                      : (now - watch->behind_realtime) / USEC_PER_SEC + 1,
                .objects = watch->objects,
                .tried_again = metrics->tried_again,
                .missed = metrics->missed,
                .synced = watch->synced,
                .degraded = watch_is_in_trouble(watch),
                .failed = watch->health == WATCH_FAILED,
                .absent = watch->health == WATCH_ABSENT,
                .unsure = watch->unsure,
                .paused = watch->paused_realtime > 0,
                .finalizers_written = watch->finalizers_written,
                .finalizers_failed = watch->finalizers_failed,
                .cpu_usec = metrics->handler_cpu_usec,
                .memory_peak = metrics->handler_memory_peak,
                .memory_kills = metrics->handler_memory_kills,
                .limits_weakened = place->limits_weakened[0] != '\0',
                .not_kept = watch->not_kept,
                .rate_waiting = rate.next > clock_boottime_usec() ? queued.queued : 0,
                .rate_waited = rate.waited_runs,
                .rate_waited_usec = rate.waited_usec,
                .access_failing = access && (access->failing || !access->usable),
        };

        if (values.degraded && now > place->degraded_realtime)
                values.lag_usec = now - place->degraded_realtime;
        add_ages(watch, &values);
        (void)ledger_count_failing(watch->controller->ledger, watch->config->name, &values.failing);
        return values;
}

#define OWN(member)   offsetof(struct watch_values, member), NULL
#define COUNTED(name) 0, name

static const struct watch_family {
        const char *name, *label, *help;
        enum type type;
        bool in_usec;
        size_t offset;       /* in struct watch_values */
        const char *counter; /* or: what the watcher counts */
} watch_family[] = {
        {"workqueue_depth", "name", "Keys that wait for a worker.", GAUGE, false, OWN(depth)},
        {"workqueue_adds", "name", "Keys that were added to the queue.", COUNTER, false, OWN(adds)},
        {"workqueue_retries", "name", "Runs that failed and are tried again.", COUNTER, false, OWN(retries)},
        {"workqueue_unfinished_work_seconds", "name", "Total age of all runs in flight.", GAUGE, true,
         OWN(unfinished_usec)},
        {"workqueue_longest_running_processor_seconds", "name", "Age of the oldest run in flight.", GAUGE,
         true, OWN(longest_usec)},
        {"controller_runtime_reconcile_errors", "controller", "Runs that failed.", COUNTER, false,
         OWN(errors)},
        {"controller_runtime_max_concurrent_reconciles", "controller", "Runs that may be in flight at once.",
         GAUGE, false, OWN(concurrency)},
        {"controller_runtime_active_workers", "controller", "Runs in flight.", GAUGE, false, OWN(running)},
        {"reconciled_runs_writing", "watch", "Runs whose handler is over and that wait for the API server.",
         GAUGE, false, OWN(writing)},
        {"reconciled_queue_waiting", "watch", "Keys that wait for their backoff or requeueAfter.", GAUGE,
         false, OWN(waiting)},
        {"reconciled_queue_rate_waiting", "watch",
         "Keys that are queued while the handler's rate lets none of them begin.", GAUGE, false,
         OWN(rate_waiting)},
        {"reconciled_rate_waited_runs", "watch", "Runs that had to wait for the handler's rate.", COUNTER,
         false, OWN(rate_waited)},
        {"reconciled_rate_waited_seconds", "watch", "For how long runs waited for the handler's rate.",
         COUNTER, true, OWN(rate_waited_usec)},
        {"reconciled_queue_settling", "watch", "Keys whose run waits for the API server.", GAUGE, false,
         OWN(settling)},
        {"reconciled_watch_synced", "watch", "1 once all selected objects have been known since the start.",
         GAUGE, false, OWN(synced)},
        {"reconciled_watch_degraded", "watch", "1 while the watch does not work and is retried.", GAUGE,
         false, OWN(degraded)},
        {"reconciled_watch_failed", "watch", "1 while an isolated watch is past its deadline.", GAUGE, false,
         OWN(failed)},
        {"reconciled_watch_absent", "watch", "1 while a resource that is not required is not served.", GAUGE,
         false, OWN(absent)},
        {"reconciled_watch_behind_seconds", "watch",
         "Time for which the watch has lacked what the operator wrote itself; 0: it does not.", GAUGE, false,
         OWN(behind_sec)},
        {"reconciled_watch_unsure", "watch", "1 while the runs in flight at the last end are unknown.",
         GAUGE, false, OWN(unsure)},
        {"reconciled_watch_paused", "watch", "1 while the watch is paused: none of its objects run.", GAUGE,
         false, OWN(paused)},
        {"reconciled_watch_lag_seconds", "watch", "How long the watch has not worked; 0 if it works.", GAUGE,
         true, OWN(lag_usec)},
        {"reconciled_handler_cpu_seconds", "watch",
         "CPU time of handlers, including the processes that they started.", COUNTER, true, OWN(cpu_usec)},
        {"reconciled_handler_memory_peak_bytes", "watch",
         "The most memory that a run of the handler has had since the start.", GAUGE, false,
         OWN(memory_peak)},
        {"reconciled_handler_out_of_memory", "watch", "Runs whose handler was killed for lack of memory.",
         COUNTER, false, OWN(memory_kills)},
        {"reconciled_handler_limits_weakened", "watch",
         "1 if the handler's limits cannot be enforced here as configured.", GAUGE, false,
         OWN(limits_weakened)},
        {"reconciled_previous_not_kept", "watch",
         "Successful runs whose object could not be kept: the next request has no `previous`.", COUNTER,
         false, OWN(not_kept)},
        {"reconciled_given_up_tried", "watch",
         "Objects that were given up and got one more attempt: after a reload, or with another handler.",
         COUNTER, false, OWN(tried_again)},
        {"reconciled_schedule_missed", "watch",
         "Runs of a schedule that could not begin within a minute and were left out (onMissed: skip).",
         COUNTER, false, OWN(missed)},
        {"reconciled_handler_access_failing", "watch",
         "1 while the handler's own credentials or access to the API server cannot be obtained or renewed.",
         GAUGE, false, OWN(access_failing)},
        {"reconciled_watch_objects", "watch", "Objects in the store.", GAUGE, false, OWN(objects)},
        {"reconciled_finalizers_written", "watch",
         "Finalizers put on or taken off by runs of their own, which start no handler.", COUNTER, false,
         OWN(finalizers_written)},
        {"reconciled_finalizers_failed", "watch", "Runs that failed to put a finalizer on or take it off.",
         COUNTER, false, OWN(finalizers_failed)},
        {"reconciled_failing", "watch", "Objects that have failed since their last success.", GAUGE, false,
         OWN(failing.failing)},
        {"reconciled_failed_permanently", "watch",
         "Of them, those that are not tried again before they change.", GAUGE, false,
         OWN(failing.permanent)},
        {"reconciled_throttled", "watch", "Of them, those whose writes the API server refuses for good.",
         GAUGE, false, OWN(failing.throttled)},
        {"reconciled_watch_events", "watch", "Events of the watch.", COUNTER, false,
         COUNTED("watch_events")},
        {"reconciled_watch_lists", "watch", "Lists of all objects, including the first after a start.",
         COUNTER, false, COUNTED("lists")},
        {"reconciled_watch_relists", "watch", "Lists after the first.", COUNTER, false, COUNTED("relists")},
        {"reconciled_watch_streamed_lists", "watch", "Lists that came as a stream (WatchList).", COUNTER,
         false, COUNTED("watch_lists")},
        {"reconciled_watch_resumed", "watch", "Starts that needed no list.", COUNTER, false,
         COUNTED("resumed")},
        {"reconciled_watch_silence_seconds", "watch", "Time since the server last sent anything.", GAUGE,
         false, COUNTED("lag")},
        {"reconciled_watch_questions", "watch",
         "Objects of which the server is asked whether they still exist.", GAUGE, false,
         COUNTED("questions")},
        {"reconciled_watch_reconnects", "watch", "Watches that were started again.", COUNTER, false,
         COUNTED("reconnects")},
        {"reconciled_watch_bookmarks", "watch", "Bookmarks of the watch.", COUNTER, false,
         COUNTED("bookmarks")},
        {"reconciled_watch_jq_failures", "watch", "Objects on which a jq program failed.", COUNTER, false,
         COUNTED("program_failures")},
        {"reconciled_watch_undecodable", "watch", "Events that could not be read.", COUNTER, false,
         COUNTED("undecodable")},
        {"reconciled_watch_owner_references_ignored", "watch", "Owner references that no object can match.",
         COUNTER, false, COUNTED("owners_ignored")},
        {"reconciled_watch_contents_dropped", "watch",
         "Deleted objects whose last content found no room: `deleted` is shown their identity alone.",
         COUNTER, false, COUNTED("contents_dropped")},
        {"reconciled_watch_missing_namespaces", "watch",
         "Namespaces that the watch names but that do not exist.", GAUGE, false,
         COUNTED("missing_namespaces")},
        {"reconciled_watch_refused_namespaces", "watch",
         "Namespaces that the watch names but that the server refuses.", GAUGE, false,
         COUNTED("refused_namespaces")},
        {"reconciled_watch_unannounced", "watch",
         "Changed keys that wait in the store for a place in the queue.", GAUGE, false, COUNTED("dirty")},
};

static void write_watch_families(const struct supervisor *supervisor, struct text *text)
{
        _cleanup_free_ struct watch_values *values =
                calloc(supervisor->controller.watch_count + 1, sizeof(*values));

        text->failed = text->failed || !values;
        FOREACH_WATCH(watch, &supervisor->controller)
                if (values)
                        values[watch_number(watch)] = values_of(watch);
        for (size_t f = 0; values && f < ELEMENTS(watch_family); f++) {
                const struct watch_family *family = &watch_family[f];

                head(text, family->name, family->type, family->help);
                FOREACH_WATCH(watch, &supervisor->controller) {
                        const char *own = (const char *)&values[watch_number(watch)] + family->offset;
                        uint64_t value = family->counter
                                                 ? counters_get(&child_of(watch)->counters, family->counter)
                                                 : *(const uint64_t *)(const void *)own;

                        text_printf(text, "%s%s{%s=\"%s\"} ", family->name,
                                    family->type == COUNTER ? "_total" : "", family->label,
                                    watch->config->name);
                        if (family->in_usec)
                                seconds(text, value);
                        else
                                text_printf(text, "%" PRIu64 "\n", value);
                }
        }
}

/* ---- results of runs */

static uint64_t result_count(const struct watch_metrics *metrics, const char *result)
{
        switch (result[0]) {
        case 's':
                return metrics->result[RESULT_SUCCESS] + metrics->result[RESULT_STALE] - metrics->requeues;
        case 'e':
                return count_errors(metrics);
        default:
                return metrics->requeues;
        }
}

static void write_results(const struct supervisor *supervisor, struct text *text)
{
        static const char *const known[] = {"success", "error", "requeue_after"};

        head(text, "controller_runtime_reconcile", COUNTER,
             "Runs by result, in the words of controller-runtime.");
        FOREACH_WATCH(watch, &supervisor->controller)
                for (size_t k = 0; k < ELEMENTS(known); k++)
                        text_printf(text,
                                    "controller_runtime_reconcile_total{controller=\"%s\",result=\"%s\"} "
                                    "%" PRIu64 "\n",
                                    watch->config->name, known[k], result_count(&watch->metrics, known[k]));
        head(text, "reconciled_runs", COUNTER, "Runs by result.");
        FOREACH_WATCH(watch, &supervisor->controller)
                for (enum run_result result = 0; result < RESULT_COUNT; result++)
                        if (run_result_is_run(result))
                                text_printf(text,
                                            "reconciled_runs_total{watch=\"%s\",result=\"%s\"} %" PRIu64
                                            "\n",
                                            watch->config->name, run_result_name(result),
                                            watch->metrics.result[result]);
}

/* ---- of handlers */

static void write_measured(const struct supervisor *supervisor, struct text *text)
{
        single(text, "reconciled_handler_metric_samples", GAUGE,
               "Samples that handlers have made, of 10000 that watches share equally.",
               registry_samples(supervisor->measured));
        head(text, "reconciled_handler_metrics_dropped", COUNTER,
             "Metrics of handlers that were dropped: the name is another metric's, there are too many, no number.");
        FOREACH_WATCH(watch, &supervisor->controller)
                for (enum metric_drop drop = METRIC_TAKEN + 1; drop < METRIC_DROP_COUNT; drop++)
                        text_printf(
                                text,
                                "reconciled_handler_metrics_dropped_total{watch=\"%s\",reason=\"%s\"} %" PRIu64
                                "\n",
                                watch->config->name, metric_drop_name(drop),
                                watch_place_of(watch)->metrics_dropped[drop]);
        registry_write(supervisor->measured, text);
}

/* ---- histograms */

static void write_histogram(struct text *text, const char *name, const char *label, const char *value,
                            const struct histogram *histogram)
{
        uint64_t below = 0;

        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
                below += histogram->bucket[i];
                text_printf(text, "%s_bucket{%s=\"%s\",le=\"%g\"} %" PRIu64 "\n", name, label, value,
                            (double)histogram_bound_usec[i] / (double)USEC_PER_SEC, below);
        }
        text_printf(text, "%s_bucket{%s=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, label, value,
                    histogram->count);
        text_printf(text, "%s_count{%s=\"%s\"} %" PRIu64 "\n", name, label, value, histogram->count);
        text_printf(text, "%s_sum{%s=\"%s\"} ", name, label, value);
        seconds(text, histogram->sum_usec);
}

static void write_histograms(const struct supervisor *supervisor, struct text *text)
{
        static const struct {
                const char *name, *label, *help;
                size_t offset;
        } family[] = {
                {"workqueue_queue_duration_seconds", "name", "How long keys waited for a worker.",
                 offsetof(struct watch_metrics, queue)},
                {"workqueue_work_duration_seconds", "name", "How long runs took.",
                 offsetof(struct watch_metrics, work)},
                {"controller_runtime_reconcile_time_seconds", "controller", "How long runs took.",
                 offsetof(struct watch_metrics, work)},
        };

        for (size_t f = 0; f < ELEMENTS(family); f++) {
                head(text, family[f].name, HISTOGRAM, family[f].help);
                FOREACH_WATCH(watch, &supervisor->controller) {
                        const char *metrics = (const char *)&watch->metrics;

                        write_histogram(
                                text, family[f].name, family[f].label, watch->config->name,
                                (const struct histogram *)(const void *)(metrics + family[f].offset));
                }
        }
}

static void write_turn_metrics(const struct supervisor *supervisor, struct text *text)
{
        const struct turns *turns = &supervisor->turns;

        head(text, "reconciled_turn_seconds", HISTOGRAM,
             "Turns of the supervisor's loop, in wall-clock time and in processor time.");
        write_histogram(text, "reconciled_turn_seconds", "clock", "wall", &turns->wall);
        write_histogram(text, "reconciled_turn_seconds", "clock", "processor", &turns->processor);
        head(text, "reconciled_turn_longest_seconds", GAUGE, "The longest of them since the start.");
        text_append_string(text, "reconciled_turn_longest_seconds{clock=\"wall\"} ");
        seconds(text, turns->longest.wall_usec);
        text_append_string(text, "reconciled_turn_longest_seconds{clock=\"processor\"} ");
        seconds(text, turns->longest_processor.processor_usec);
}

/* ---- what the children count */

static void write_requests(const struct supervisor *supervisor, struct text *text)
{
        static const struct {
                const char *code, *counter;
        } class[] = {
                {"2xx", "api_requests_2xx"}, {"3xx", "api_requests_3xx"},        {"4xx", "api_requests_4xx"},
                {"5xx", "api_requests_5xx"}, {"<error>", "api_requests_failed"},
        };

        head(text, "rest_client_requests", COUNTER,
             "Requests to the API server by class of answer; <error>: no answer came.");
        for (size_t c = 0; c < ELEMENTS(class); c++) {
                uint64_t sum = 0;

                for (size_t i = 0; i < supervisor->child_count; i++)
                        sum += child_total(&supervisor->child[i], class[c].counter);
                text_printf(text, "rest_client_requests_total{code=\"%s\"} %" PRIu64 "\n", class[c].code,
                            sum);
        }
        head(text, "reconciled_retry_after", COUNTER, "Answers of the API server with Retry-After.");
        for (int workers = 0; workers < 2; workers++) {
                uint64_t sum = 0;

                for (size_t i = 0; i < supervisor->child_count; i++)
                        if ((supervisor->child[i].process.role == ROLE_WORKER) == (workers == 1))
                                sum += child_total(&supervisor->child[i], "api_wishes");
                text_printf(text, "reconciled_retry_after_total{role=\"%s\"} %" PRIu64 "\n",
                            workers ? "worker" : "watcher", sum);
        }
}

static int count_doubt(const struct ledger_doubt *doubt _unused_, void *userdata)
{
        ++*(uint64_t *)userdata;
        return 0;
}

static void write_doubtful(const struct supervisor *supervisor, struct text *text)
{
        uint64_t count = 0;

        FOREACH_WATCH(watch, &supervisor->controller)
                (void)ledger_visit_doubts(supervisor->controller.ledger, watch->config->name,
                                          ledger_now(supervisor), 100000, count_doubt, &count);
        single(text, "reconciled_doubtful", GAUGE,
               "Objects over which a watcher died or hung: they are ignored, or no jq program runs on them.",
               count);
}

static void write_gateway(const struct supervisor *supervisor, struct text *text)
{
        if (!supervisor->config->gateway_certificate_file[0])
                return;
        single(text, "reconciled_gateway_certificate_expiry_seconds", GAUGE,
               "When the gateway's certificate expires, in seconds since 1970.",
               gateway_count(supervisor, "certificate_expires"));
        single(text, "reconciled_gateway_certificate_stale", GAUGE,
               "1 while a new certificate's files cannot be used and the old one stays in use.",
               gateway_count(supervisor, "certificate_stale"));
        single(text, "reconciled_gateway_certificate_expired", GAUGE,
               "1 while the certificate in use has expired or is not valid yet.",
               gateway_count(supervisor, "certificate_expired"));
}

static void child_labels(const struct child_slot *child, struct text *text)
{
        const char *role = role_name(child->process.role);

        if (child->process.role == ROLE_WATCHER)
                text_printf(text, "{role=\"%s\",name=\"%s\"}", role,
                            child->supervisor->controller.watch[child->index].config->name);
        else
                text_printf(text, "{role=\"%s\",name=\"%zu\"}", role, child->index);
}

static void write_processes(const struct supervisor *supervisor, struct text *text)
{
        struct child_counters own = {0};
        struct record_counter record[CHILD_PROCESS_COUNTERS];
        struct message_heartbeat heartbeat = {
                .counter = record, .counter_count = child_count_process(record, ELEMENTS(record))};

        counters_set(&own, &heartbeat);
        head(text, "reconciled_process_resident_memory_bytes", GAUGE,
             "Resident memory of each process, including pages of the store.");
        text_printf(text,
                    "reconciled_process_resident_memory_bytes{role=\"supervisor\",name=\"0\"} %" PRIu64 "\n",
                    counters_get(&own, "memory_resident_bytes"));
        for (size_t i = 0; i < supervisor->child_count; i++) {
                text_append_string(text, "reconciled_process_resident_memory_bytes");
                child_labels(&supervisor->child[i], text);
                text_printf(text, " %" PRIu64 "\n",
                            counters_get(&supervisor->child[i].counters, "memory_resident_bytes"));
        }
        head(text, "reconciled_process_cpu_seconds", COUNTER, "CPU time of each process, without handlers.");
        text_append_string(text, "reconciled_process_cpu_seconds_total{role=\"supervisor\",name=\"0\"} ");
        seconds(text, counters_get(&own, "cpu_usec"));
        for (size_t i = 0; i < supervisor->child_count; i++) {
                text_append_string(text, "reconciled_process_cpu_seconds_total");
                child_labels(&supervisor->child[i], text);
                text_append_string(text, " ");
                seconds(text, counters_get(&supervisor->child[i].counters, "cpu_usec"));
        }
}

/* ---- all of it */

static void write_operator(const struct supervisor *supervisor, struct text *text)
{
        uint64_t dropped = log_dropped();

        for (size_t i = 0; i < supervisor->child_count; i++)
                dropped += supervisor->child[i].log_dropped;
        head(text, "reconciled_build", GAUGE, "Always 1; the labels say what runs.");
        text_printf(text, "reconciled_build{operator=\"%s\",version=\"%s\"} 1\n",
                    supervisor->config->operator_name, RECONCILED_VERSION);
        single(text, "reconciled_starts", COUNTER, "Starts with this state folder, this one included.",
               supervisor->life.starts);
        single(text, "reconciled_config_last_reload_successful", GAUGE,
               "0 while the configuration file was refused at the last reload, and an older one is in force.",
               !supervisor->reload.refused[0]);
        single_time(text, "reconciled_last_reload_pause_seconds",
                    "For how long no run began, at the last reload that changed the configuration.",
                    supervisor->reload.pause_usec);
        single_time(text, "process_start_time_seconds", "When the supervisor started.",
                    supervisor->life.started_realtime);
        single(text, "reconciled_log_lines_dropped", COUNTER,
               "Log lines that were dropped because nobody read them in time.", dropped);
        single(text, "reconciled_events_written", COUNTER, "Events that were written, series included.",
               workers_sum(supervisor, "events_written"));
        single(text, "reconciled_events_dropped", COUNTER,
               "Events that were left out: the spam guard, a full queue, no right to write them.",
               workers_sum(supervisor, "events_dropped"));
        single(text, "reconciled_quarantined", GAUGE,
               "Objects in quarantine, because the operator crashed repeatedly while it ran them.",
               configured_count_quarantined(supervisor));
        single(text, "reconciled_startup_awaited", GAUGE,
               "1 until the handler of `startup` has succeeded: all others wait for it.",
               startup_pending(&supervisor->controller) != NULL);
        single(text, "reconciled_uninstalling", GAUGE,
               "1 while the operator is being uninstalled, and afterwards: runs only take finalizers off.",
               supervisor->controller.uninstall.active);
        single(text, "reconciled_secrets_on_disk", GAUGE,
               "1 when there is no memory for Secrets, and they may reach a disk.",
               supervisor->secrets.on_disk);
}

static void write_replica(const struct supervisor_lead *lead, struct text *text)
{
        if (!lead->child)
                return;
        single(text, "reconciled_leading", GAUGE, "1 while this replica leads, 0 while it follows.",
               lead->state == LEAD_LEADING);
        single(text, "reconciled_lead_trouble", GAUGE,
               "1 while this replica cannot renew its Leases, or cannot lead for another reason.",
               lead->trouble[0] != '\0');
}

int metrics_write(const struct supervisor *supervisor, struct text *text)
{
        write_operator(supervisor, text);
        write_replica(&supervisor->lead, text);
        write_watch_families(supervisor, text);
        write_results(supervisor, text);
        write_histograms(supervisor, text);
        write_turn_metrics(supervisor, text);
        write_doubtful(supervisor, text);
        write_requests(supervisor, text);
        write_gateway(supervisor, text);
        write_processes(supervisor, text);
        write_measured(supervisor, text);
        text_append_string(text, "# EOF\n");
        return text->failed ? -ENOMEM : 0;
}
