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
#include "base/text.h"
#include "controller/due/assigned.h"
#include "controller/run/assign.h"
#include "ipc/child.h"
#include "ipc/log.h"
#include "queue/look.h"
#include "supervisor/children/child-slot.h"
#include "supervisor/control/configured.h"
#include "supervisor/folders/ledger-clock.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/health.h"
#include "supervisor/watches/place.h"

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

/* ---- numbers of a watch */

static uint64_t watch_depth(const struct supervisor *supervisor, size_t index)
{
        return assign_count(&supervisor->controller, &supervisor->controller.watch[index]).queued;
}

static uint64_t watch_waiting(const struct supervisor *supervisor, size_t index)
{
        return queue_count(supervisor->controller.queue, (unsigned)index).delayed;
}

static uint64_t watch_settling(const struct supervisor *supervisor, size_t index)
{
        return queue_count(supervisor->controller.queue, (unsigned)index).settling;
}

static uint64_t watch_running(const struct supervisor *supervisor, size_t index)
{
        return assign_count(&supervisor->controller, &supervisor->controller.watch[index]).running;
}

static uint64_t watch_writing(const struct supervisor *supervisor, size_t index)
{
        return queue_count(supervisor->controller.queue, (unsigned)index).answered;
}

static uint64_t watch_adds(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].metrics.adds;
}

static uint64_t watch_retries(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].metrics.retries;
}

static uint64_t count_errors(const struct watch_metrics *metrics)
{
        return metrics->result[RESULT_RETRY] + metrics->result[RESULT_PERMANENT] +
               metrics->result[RESULT_UNRECOVERABLE] + metrics->result[RESULT_STOP] +
               metrics->result[RESULT_UNAVAILABLE] + metrics->result[RESULT_FORBIDDEN];
}

static uint64_t watch_errors(const struct supervisor *supervisor, size_t index)
{
        const struct watch_metrics *metrics = &supervisor->controller.watch[index].metrics;

        return count_errors(metrics);
}

static uint64_t watch_concurrency(const struct supervisor *supervisor, size_t index)
{
        const struct config_watch *config = supervisor->controller.watch[index].config;
        unsigned most = config_at_once(supervisor->controller.config, config);

        return config->concurrency > 0 && config->concurrency < most ? config->concurrency : most;
}

static uint64_t watch_synced(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].synced;
}

static uint64_t watch_degraded(const struct supervisor *supervisor, size_t index)
{
        return watch_is_in_trouble(&supervisor->controller.watch[index]);
}

static uint64_t watch_failed(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].health == WATCH_FAILED;
}

static uint64_t watch_unsure(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].unsure;
}

static uint64_t watch_behind(const struct supervisor *supervisor, size_t index)
{
        uint64_t since = supervisor->controller.watch[index].behind_realtime, now = clock_realtime_usec();

        return since == 0 || now < since ? 0 : (now - since) / USEC_PER_SEC + 1;
}

static uint64_t watch_paused(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].paused_realtime > 0;
}

static uint64_t watch_absent(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].health == WATCH_ABSENT;
}

static uint64_t watch_finalizers_written(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].finalizers_written;
}

static uint64_t watch_finalizers_failed(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].finalizers_failed;
}

static uint64_t watch_objects(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].objects;
}

static uint64_t watch_lag_usec(const struct supervisor *supervisor, size_t index)
{
        const struct watch *watch = &supervisor->controller.watch[index];
        uint64_t now = clock_realtime_usec();

        return watch_is_in_trouble(watch) && now > place_of(watch)->degraded_realtime
                       ? now - place_of(watch)->degraded_realtime
                       : 0;
}

static uint64_t watch_handler_cpu_usec(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].metrics.handler_cpu_usec;
}

static uint64_t watch_handler_memory_peak(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].metrics.handler_memory_peak;
}

static uint64_t watch_handler_memory_kills(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].metrics.handler_memory_kills;
}

static uint64_t watch_limits_weakened(const struct supervisor *supervisor, size_t index)
{
        return supervisor->place[index].limits_weakened[0] != '\0';
}

static uint64_t watch_access_failing(const struct supervisor *supervisor, size_t index)
{
        const struct watch *watch = &supervisor->controller.watch[index];
        const struct access_state *access = access_of(watch);

        return access && (access->failing || !access->usable);
}

/* The age of the runs that are under way: of all together, or of the longest. */
static uint64_t runs_usec(const struct supervisor *supervisor, size_t index, bool longest)
{
        uint64_t now = clock_boottime_usec(), result = 0;

        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                const struct worker *worker = &supervisor->controller.worker[i];

                for (size_t j = 0; j < worker->given_count; j++) {
                        const struct assignment *given = &worker->given[j];
                        uint64_t age = now - (given->aside ? given->since : worker->started_boottime);

                        if (given->run.watch != index || !assignment_has_begun(worker, given))
                                continue;
                        result = longest ? (age > result ? age : result) : result + age;
                }
        }
        return result;
}

static uint64_t watch_unfinished_usec(const struct supervisor *supervisor, size_t index)
{
        return runs_usec(supervisor, index, false);
}

static uint64_t watch_longest_usec(const struct supervisor *supervisor, size_t index)
{
        return runs_usec(supervisor, index, true);
}

static uint64_t watch_tried_again(const struct supervisor *supervisor, size_t index)
{
        return supervisor->controller.watch[index].metrics.tried_again;
}

static const struct watch_family {
        const char *name, *label, *help;
        enum type type;
        bool in_usec;
        uint64_t (*value)(const struct supervisor *supervisor, size_t index);
} watch_family[] = {
        {"workqueue_depth", "name", "Keys that wait for a worker.", GAUGE, false, watch_depth},
        {"workqueue_adds", "name", "Keys that were added to the queue.", COUNTER, false, watch_adds},
        {"workqueue_retries", "name", "Runs that failed and are tried again.", COUNTER, false,
         watch_retries},
        {"workqueue_unfinished_work_seconds", "name", "Total age of all runs in flight.", GAUGE, true,
         watch_unfinished_usec},
        {"workqueue_longest_running_processor_seconds", "name", "Age of the oldest run in flight.", GAUGE,
         true, watch_longest_usec},
        {"controller_runtime_reconcile_errors", "controller", "Runs that failed.", COUNTER, false,
         watch_errors},
        {"controller_runtime_max_concurrent_reconciles", "controller", "Runs that may be in flight at once.",
         GAUGE, false, watch_concurrency},
        {"controller_runtime_active_workers", "controller", "Runs in flight.", GAUGE, false, watch_running},
        {"reconciled_runs_writing", "watch", "Runs whose handler is over and that wait for the API server.",
         GAUGE, false, watch_writing},
        {"reconciled_queue_waiting", "watch", "Keys that wait for their backoff or requeueAfter.", GAUGE,
         false, watch_waiting},
        {"reconciled_queue_settling", "watch", "Keys whose run waits for the API server.", GAUGE, false,
         watch_settling},
        {"reconciled_watch_synced", "watch", "1 once all selected objects have been known since the start.",
         GAUGE, false, watch_synced},
        {"reconciled_watch_degraded", "watch", "1 while the watch does not work and is retried.", GAUGE,
         false, watch_degraded},
        {"reconciled_watch_failed", "watch", "1 while an isolated watch is past its deadline.", GAUGE, false,
         watch_failed},
        {"reconciled_watch_absent", "watch", "1 while a resource that is not required is not served.", GAUGE,
         false, watch_absent},
        {"reconciled_watch_behind_seconds", "watch",
         "Time for which the watch has lacked what the operator wrote itself; 0: it does not.", GAUGE, false,
         watch_behind},
        {"reconciled_watch_unsure", "watch", "1 while the runs in flight at the last end are unknown.",
         GAUGE, false, watch_unsure},
        {"reconciled_watch_paused", "watch", "1 while the watch is paused: none of its objects run.", GAUGE,
         false, watch_paused},
        {"reconciled_watch_lag_seconds", "watch", "How long the watch has not worked; 0 if it works.", GAUGE,
         true, watch_lag_usec},
        {"reconciled_handler_cpu_seconds", "watch",
         "CPU time of handlers, including the processes that they started.", COUNTER, true,
         watch_handler_cpu_usec},
        {"reconciled_handler_memory_peak_bytes", "watch",
         "The most memory that a run of the handler has had since the start.", GAUGE, false,
         watch_handler_memory_peak},
        {"reconciled_handler_out_of_memory", "watch", "Runs whose handler was killed for lack of memory.",
         COUNTER, false, watch_handler_memory_kills},
        {"reconciled_handler_limits_weakened", "watch",
         "1 if the handler's limits cannot be enforced here as configured.", GAUGE, false,
         watch_limits_weakened},
        {"reconciled_given_up_tried", "watch",
         "Objects that were given up and got one more attempt: after a reload, or with another handler.",
         COUNTER, false, watch_tried_again},
        {"reconciled_handler_access_failing", "watch",
         "1 while the handler's own credentials or access to the API server cannot be obtained or renewed.",
         GAUGE, false, watch_access_failing},
        {"reconciled_watch_objects", "watch", "Objects in the store.", GAUGE, false, watch_objects},
        {"reconciled_finalizers_written", "watch",
         "Finalizers put on or taken off by runs of their own, which start no handler.", COUNTER, false,
         watch_finalizers_written},
        {"reconciled_finalizers_failed", "watch", "Runs that failed to put a finalizer on or take it off.",
         COUNTER, false, watch_finalizers_failed},
};

static void write_watch_families(const struct supervisor *supervisor, struct text *text)
{
        for (size_t f = 0; f < ELEMENTS(watch_family); f++) {
                const struct watch_family *family = &watch_family[f];

                head(text, family->name, family->type, family->help);
                FOREACH_WATCH(watch, &supervisor->controller) {
                        uint64_t value = family->value(supervisor, watch_number(watch));

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

static void write_turns(const struct supervisor *supervisor, struct text *text)
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

static void write_watcher_counters(const struct supervisor *supervisor, struct text *text)
{
        static const struct {
                const char *name, *counter, *help;
                enum type type;
        } family[] = {
                {"reconciled_watch_events", "watch_events", "Events of the watch.", COUNTER},
                {"reconciled_watch_lists", "lists",
                 "Lists of all objects, including the first after a start.", COUNTER},
                {"reconciled_watch_relists", "relists", "Lists after the first.", COUNTER},
                {"reconciled_watch_streamed_lists", "watch_lists",
                 "Lists that came as a stream (WatchList).", COUNTER},
                {"reconciled_watch_resumed", "resumed", "Starts that needed no list.", COUNTER},
                {"reconciled_watch_silence_seconds", "lag", "Time since the server last sent anything.",
                 GAUGE},
                {"reconciled_watch_questions", "questions",
                 "Objects of which the server is asked whether they still exist.", GAUGE},
                {"reconciled_watch_reconnects", "reconnects", "Watches that were started again.", COUNTER},
                {"reconciled_watch_bookmarks", "bookmarks", "Bookmarks of the watch.", COUNTER},
                {"reconciled_watch_jq_failures", "program_failures", "Objects on which a jq program failed.",
                 COUNTER},
                {"reconciled_watch_undecodable", "undecodable", "Events that could not be read.", COUNTER},
                {"reconciled_watch_owner_references_ignored", "owners_ignored",
                 "Owner references that no object can match.", COUNTER},
                {"reconciled_watch_missing_namespaces", "missing_namespaces",
                 "Namespaces that the watch names but that do not exist.", GAUGE},
                {"reconciled_watch_refused_namespaces", "refused_namespaces",
                 "Namespaces that the watch names but that the server refuses.", GAUGE},
                {"reconciled_watch_unannounced", "dirty",
                 "Changed keys that wait in the store for a place in the queue.", GAUGE},
        };

        for (size_t f = 0; f < ELEMENTS(family); f++) {
                head(text, family[f].name, family[f].type, family[f].help);
                FOREACH_WATCH(watch, &supervisor->controller)
                        text_printf(text, "%s%s{watch=\"%s\"} %" PRIu64 "\n", family[f].name,
                                    family[f].type == COUNTER ? "_total" : "", watch->config->name,
                                    counters_get(&child_of(watch)->counters, family[f].counter));
        }
}

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

static void write_uninstalling(const struct supervisor *supervisor, struct text *text)
{
        head(text, "reconciled_uninstalling", GAUGE,
             "1 while the operator is being uninstalled, and afterwards: runs only take finalizers off.");
        text_printf(text, "reconciled_uninstalling %d\n", supervisor->controller.uninstall.active);
}

static void write_quarantine(const struct supervisor *supervisor, struct text *text)
{
        uint64_t count = configured_count_quarantined(supervisor);

        head(text, "reconciled_quarantined", GAUGE,
             "Objects in quarantine, because the operator crashed repeatedly while it ran them.");
        text_printf(text, "reconciled_quarantined %" PRIu64 "\n", count);
}

static void write_failing(const struct supervisor *supervisor, struct text *text)
{
        static const struct {
                const char *name, *help;
                size_t offset;
        } family[] = {
                {"reconciled_failing", "Objects that have failed since their last success.",
                 offsetof(struct ledger_failing, failing)},
                {"reconciled_failed_permanently",
                 "Of them, those that are not tried again before they change.",
                 offsetof(struct ledger_failing, permanent)},
                {"reconciled_throttled", "Of them, those whose writes the API server refuses for good.",
                 offsetof(struct ledger_failing, throttled)},
        };
        _cleanup_free_ struct ledger_failing *failing =
                calloc(supervisor->controller.watch_count, sizeof(*failing));

        FOREACH_WATCH(watch, &supervisor->controller)
                if (failing)
                        (void)ledger_count_failing(supervisor->controller.ledger, watch->config->name,
                                                   &failing[watch_number(watch)]);
        for (size_t f = 0; failing && f < ELEMENTS(family); f++) {
                head(text, family[f].name, GAUGE, family[f].help);
                FOREACH_WATCH(watch, &supervisor->controller) {
                        const char *counts = (const char *)&failing[watch_number(watch)];

                        text_printf(text, "%s{watch=\"%s\"} %" PRIu64 "\n", family[f].name,
                                    watch->config->name,
                                    *(const uint64_t *)(const void *)(counts + family[f].offset));
                }
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
        head(text, "reconciled_doubtful", GAUGE,
             "Objects over which a watcher died or hung: they are ignored, or no jq program runs on them.");
        text_printf(text, "reconciled_doubtful %" PRIu64 "\n", count);
}

static void write_events(const struct supervisor *supervisor, struct text *text)
{
        head(text, "reconciled_events_written", COUNTER, "Events that were written, series included.");
        text_printf(text, "reconciled_events_written_total %" PRIu64 "\n",
                    workers_sum(supervisor, "events_written"));
        head(text, "reconciled_events_dropped", COUNTER,
             "Events that were left out: the spam guard, a full queue, no right to write them.");
        text_printf(text, "reconciled_events_dropped_total %" PRIu64 "\n",
                    workers_sum(supervisor, "events_dropped"));
}

static void write_secrets(const struct supervisor *supervisor, struct text *text)
{
        head(text, "reconciled_secrets_on_disk", GAUGE,
             "1 when there is no memory for Secrets, and they may reach a disk.");
        text_printf(text, "reconciled_secrets_on_disk %d\n", supervisor->secrets.on_disk);
}

static void write_gateway(const struct supervisor *supervisor, struct text *text)
{
        if (!supervisor->config->gateway_certificate_file[0])
                return;
        head(text, "reconciled_gateway_certificate_expiry_seconds", GAUGE,
             "When the gateway's certificate expires, in seconds since 1970.");
        text_printf(text, "reconciled_gateway_certificate_expiry_seconds %" PRIu64 "\n",
                    gateway_count(supervisor, "certificate_expires"));
        head(text, "reconciled_gateway_certificate_stale", GAUGE,
             "1 while a new certificate's files cannot be used and the old one stays in use.");
        text_printf(text, "reconciled_gateway_certificate_stale %" PRIu64 "\n",
                    gateway_count(supervisor, "certificate_stale"));
        head(text, "reconciled_gateway_certificate_expired", GAUGE,
             "1 while the certificate in use has expired or is not valid yet.");
        text_printf(text, "reconciled_gateway_certificate_expired %" PRIu64 "\n",
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
        head(text, "reconciled_starts", COUNTER, "Starts with this state folder, this one included.");
        text_printf(text, "reconciled_starts_total %" PRIu64 "\n", supervisor->life.starts);
        head(text, "reconciled_config_last_reload_successful", GAUGE,
             "0 while the configuration file was refused at the last reload, and an older one is in force.");
        text_printf(text, "reconciled_config_last_reload_successful %d\n", !supervisor->reload.refused[0]);
        head(text, "reconciled_last_reload_pause_seconds", GAUGE,
             "For how long no run began, at the last reload that changed the configuration.");
        text_append_string(text, "reconciled_last_reload_pause_seconds ");
        seconds(text, supervisor->reload.pause_usec);
        head(text, "process_start_time_seconds", GAUGE, "When the supervisor started.");
        text_append_string(text, "process_start_time_seconds ");
        seconds(text, supervisor->life.started_realtime);
        head(text, "reconciled_log_lines_dropped", COUNTER,
             "Log lines that were dropped because nobody read them in time.");
        text_printf(text, "reconciled_log_lines_dropped_total %" PRIu64 "\n", dropped);
}

int metrics_write(const struct supervisor *supervisor, struct text *text)
{
        write_operator(supervisor, text);
        write_watch_families(supervisor, text);
        write_results(supervisor, text);
        write_histograms(supervisor, text);
        write_turns(supervisor, text);
        write_watcher_counters(supervisor, text);
        write_events(supervisor, text);
        write_quarantine(supervisor, text);
        write_uninstalling(supervisor, text);
        write_failing(supervisor, text);
        write_doubtful(supervisor, text);
        write_requests(supervisor, text);
        write_gateway(supervisor, text);
        write_secrets(supervisor, text);
        write_processes(supervisor, text);
        text_append_string(text, "# EOF\n");
        return text->failed ? -ENOMEM : 0;
}
