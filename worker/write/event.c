/* SPDX-License-Identifier: Apache-2.0 */
/* See event.h. Operations wait in a list for their turn; the first one is being sent. */
#include "worker/write/event.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "kube/path.h"
#include "worker/confidential.h"
#include "worker/dependents/dependents.h"
#include "worker/write/refusal.h"
#include "worker/write/series.h"
#include "worker/write/status.h"
#include "json/json.h"

#define WAITING_MAX  64
#define NOTE_MAX     1024 /* bytes; the API's limit */
#define TIMEOUT_USEC (30 * USEC_PER_SEC)
#define TRIES_MAX    5
#define AGAIN_USEC   (2 * USEC_PER_SEC)
#define REFUSED_USEC (10 * USEC_PER_MINUTE) /* how long nothing is tried after a missing right */
#define PATH         "/apis/events.k8s.io/v1/namespaces/"

struct operation {
        struct operation *next;
        bool creates;
        char namespace_name[64], name[SERIES_NAME_MAX];
        struct text body;
        unsigned tries;
};

struct recorder {
        struct worker *worker;
        struct series_table *series; /* of objects whose Events are counted here */
        struct series_table *told;   /* of objects that another worker counts; NULL if none does */
        uint64_t telling;            /* reports that the supervisor has not passed on yet */
        struct operation *first;
        size_t waiting;
        struct kube_transfer *transfer;
        sd_event_source *again, *refresh;
        uint64_t refused_until; /* CLOCK_BOOTTIME; for this namespace; "": for all */
        char refused_namespace[64];
        bool refusal_told, left_out_told;
        uint64_t serial, written, dropped;
        char instance[128];
};

static void send_next(struct recorder *recorder);

static void operation_free(struct operation *operation)
{
        if (!operation)
                return;
        text_done(&operation->body);
        free(operation);
}

static void remove_first(struct recorder *recorder)
{
        struct operation *operation = recorder->first;

        recorder->first = operation->next;
        recorder->waiting--;
        operation_free(operation);
}

/* ---- sending */

static int on_again(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct recorder *recorder = userdata;

        recorder->again = sd_event_source_disable_unref(recorder->again);
        send_next(recorder);
        return 0;
}

static void give_events_up(struct recorder *recorder)
{
        series_forget(recorder->series, recorder->first->namespace_name, recorder->first->name);
        recorder->dropped++;
        remove_first(recorder);
}

/* A missing right to write Events harms nothing else. It is logged once, and tried again now and then. It
 * may be missing in one namespace alone; where a second one refuses as well, none is tried. */
static void refused(struct recorder *recorder, const struct kube_error *error)
{
        const char *namespace_name = recorder->first->namespace_name;
        bool again = recorder->refused_until > clock_boottime_usec() &&
                     strcmp(recorder->refused_namespace, namespace_name) != 0;

        if (!recorder->refusal_told)
                log_warning("Events cannot be written, and are left out: %s; give the operator's user the "
                            "rights create and patch on events in events.k8s.io (said once)",
                            error->message);
        recorder->refusal_told = true;
        recorder->refused_until = clock_boottime_usec() + REFUSED_USEC;
        snprintf(recorder->refused_namespace, sizeof(recorder->refused_namespace), "%s",
                 again ? "" : namespace_name);
        give_events_up(recorder);
}

/* A namespace that is being deleted refuses new objects, which says nothing about other namespaces. */
static bool is_terminating(const struct kube_response *response)
{
        return strstr(response->body, "NamespaceTerminating") != NULL;
}

/* A quota or a policy of its namespace, or an expired series, does not concern other Events. */
static void tell_event_left_out(struct recorder *recorder, const struct kube_response *response)
{
        bool by_admission = response->error.http_status == 403 && !is_terminating(response);

        if (by_admission && !recorder->left_out_told)
                log_warning(
                        "Events are left out of namespace %s, and perhaps of others, because admission refuses them "
                        "(not our rights): %s (said once)",
                        recorder->first->namespace_name, response->error.message);
        else
                log_debug("an Event is left out: %s", response->error.message);
        recorder->left_out_told = recorder->left_out_told || by_admission;
}

static bool is_namespace_refused(const struct recorder *recorder, const char *namespace_name)
{
        return recorder->refused_until > clock_boottime_usec() &&
               (!recorder->refused_namespace[0] || strcmp(recorder->refused_namespace, namespace_name) == 0);
}

static void failed(struct recorder *recorder, const struct kube_response *response)
{
        struct operation *operation = recorder->first;
        const struct kube_error *error = &response->error;

        refusal_ask_refresh(recorder->worker, response);
        if (error->http_status == 403 && kube_error_blame(error) == KUBE_BLAME_RIGHTS) {
                refused(recorder, error);
                send_next(recorder);
                recorder->worker->on_part_ended(recorder->worker);
                return;
        }
        if (!kube_error_is_passing(error) || ++operation->tries >= TRIES_MAX) {
                tell_event_left_out(recorder, response);
                give_events_up(recorder); /* its series has expired, or its namespace is being deleted */
                send_next(recorder);
                recorder->worker->on_part_ended(recorder->worker);
                return;
        }
        if (sd_event_add_time_relative(recorder->worker->child->event, &recorder->again, CLOCK_MONOTONIC,
                                       AGAIN_USEC << operation->tries, 0, on_again, recorder) < 0)
                give_events_up(recorder);
}

static void on_written(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct recorder *recorder = userdata;

        recorder->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE) {
                failed(recorder, response);
                return;
        }
        recorder->written++;
        remove_first(recorder);
        send_next(recorder);
        recorder->worker->on_part_ended(recorder->worker);
}

static void send_next(struct recorder *recorder)
{
        struct operation *operation = recorder->first;
        _cleanup_text_ struct text path = TEXT_EMPTY;
        struct kube_request request = {
                .timeout_usec = TIMEOUT_USEC, .on_done = on_written, .patient = true, .userdata = recorder};

        if (recorder->transfer || recorder->again)
                return;
        for (; operation && is_namespace_refused(recorder, operation->namespace_name);
             operation = recorder->first)
                give_events_up(recorder);
        if (!operation)
                return;
        text_printf(&path, PATH "%s/events%s%s", operation->namespace_name, operation->creates ? "" : "/",
                    operation->creates ? "" : operation->name);
        kube_path_add(&path, "fieldManager", recorder->worker->config->operator_name);
        request.method = operation->creates ? "POST" : "PATCH";
        request.content_type = operation->creates ? NULL : "application/merge-patch+json";
        request.path = path.data;
        request.body = operation->body.data;
        request.body_size = operation->body.size;
        if (path.failed || kube_client_start(recorder->worker->client, &request, &recorder->transfer) < 0)
                give_events_up(recorder);
}

/* ---- what is sent */

static void append_time(struct text *out, uint64_t realtime)
{
        time_t seconds = (time_t)(realtime / USEC_PER_SEC);
        char text[32];
        struct tm tm;

        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
        text_printf(out, "\"%s.%06" PRIu64 "Z\"", text, realtime % USEC_PER_SEC);
}

/* Series use a clock that is never set. */
static uint64_t realtime_of(uint64_t boottime)
{
        return clock_realtime_usec() - (clock_boottime_usec() - boottime);
}

static void append_series(struct text *out, const struct series *series)
{
        text_printf(out, "\"series\":{\"count\":%" PRIu64 ",\"lastObservedTime\":", series->count);
        append_time(out, realtime_of(series->last));
        text_append_string(out, "}");
}

struct event {
        const struct record_watch *watch;
        const char *key, *uid, *version; /* version: "" and NULL: unknown */
        const char *type, *reason, *action, *note;
        const char *about; /* series that differ in nothing else; NULL if there is none */
};

static void cut_note(char note[NOTE_MAX + 1], const char *text)
{
        snprintf(note, NOTE_MAX + 1, "%s", text);
        utf8_clean(note); /* drops a character that was cut in two */
}

static void write_event(const struct recorder *recorder, const struct event *event,
                        const struct series *series, const char *object_namespace, const char *object_name,
                        struct text *out)
{
        const struct record_watch *watch = event->watch;
        char note[NOTE_MAX + 1];

        cut_note(note, event->note);
        text_json(out,
                  "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\","
                  "\"metadata\":{\"name\":?,\"namespace\":?},\"eventTime\":",
                  series->name, series->namespace_name);
        append_time(out, realtime_of(series->last));
        text_json(out,
                  ",\"reportingController\":?,\"reportingInstance\":?,\"type\":?,\"reason\":?,\"action\":?,"
                  "\"note\":?,\"regarding\":{\"apiVersion\":?,\"kind\":?,\"name\":?,\"uid\":?",
                  recorder->worker->config->operator_name, recorder->instance, event->type, event->reason,
                  event->action, note, watch->api_version, watch->kind, object_name, event->uid);
        if (object_namespace[0])
                text_json(out, ",\"namespace\":?", object_namespace);
        if (event->version && event->version[0])
                text_json(out, ",\"resourceVersion\":?", event->version);
        text_append_string(out, "}}");
}

/* ---- recording */

/* Takes the body. An update that waits for the same series is replaced: the newer count includes it. */
static void enqueue(struct recorder *recorder, const struct series *series, bool creates, struct text *body)
{
        struct operation **place = &recorder->first, *operation;

        for (; *place; place = &(*place)->next)
                if (!creates && !(*place)->creates && strcmp((*place)->name, series->name) == 0 &&
                    !(place == &recorder->first && recorder->transfer)) {
                        text_done(&(*place)->body);
                        (*place)->body = *body;
                        *body = (struct text)TEXT_EMPTY;
                        return;
                }
        operation = recorder->waiting < WAITING_MAX && !body->failed ? calloc(1, sizeof(*operation)) : NULL;
        if (!operation) {
                recorder->dropped++;
                if (creates)
                        series_forget(recorder->series, series->namespace_name, series->name);
                return;
        }
        operation->creates = creates;
        snprintf(operation->namespace_name, sizeof(operation->namespace_name), "%s", series->namespace_name);
        snprintf(operation->name, sizeof(operation->name), "%s", series->name);
        operation->body = *body;
        *body = (struct text)TEXT_EMPTY;
        *place = operation;
        recorder->waiting++;
        send_next(recorder);
}

static void write_count(struct recorder *recorder, struct series *series, uint64_t now)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;

        text_append_string(&body, "{");
        append_series(&body, series);
        text_append_string(&body, "}");
        series_written(series, now);
        enqueue(recorder, series, false, &body);
}

/* ---- telling the worker that counts */

/* event: NULL where only the count is known. */
static void tell(struct recorder *recorder, struct series *series, const struct event *event, uint64_t now)
{
        struct message_report report = {.object = series->object,
                                        .identity = series->identity,
                                        .count = series->count - series->written,
                                        .counted = true};
        char note[NOTE_MAX + 1];

        if (event) {
                cut_note(note, event->note);
                report.watch = event->watch->name;
                report.key = event->key;
                report.uid = event->uid;
                report.version = event->version;
                report.type = event->type;
                report.reason = event->reason;
                report.action = event->action;
                report.note = note;
        }
        series_written(series, now);
        if (child_send(recorder->worker->child, MESSAGE_REPORT, &report) < 0)
                recorder->dropped++;
        else
                recorder->telling++;
}

static int on_refresh(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct recorder *recorder = userdata;
        uint64_t now = clock_boottime_usec();
        struct series *series;

        while ((series = series_due(recorder->series, now)))
                write_count(recorder, series, now);
        while (recorder->told && (series = series_due(recorder->told, now)))
                tell(recorder, series, NULL, now);
        if (sd_event_source_set_time_relative(source, SERIES_REFRESH_USEC) < 0)
                return 0;
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Counts that do not grow any more are written as well. */
static void arm_refresh(struct recorder *recorder)
{
        if (!recorder->refresh) /* on failure a last count stays unwritten, which is no reason to fail */
                (void)sd_event_add_time_relative(recorder->worker->child->event, &recorder->refresh,
                                                 CLOCK_MONOTONIC, SERIES_REFRESH_USEC, USEC_PER_SEC,
                                                 on_refresh, recorder);
}

/* The names of some kinds of objects (roles, for one) are not valid for an Event. */
static void name_event(struct recorder *recorder, const char *name, struct series *series)
{
        snprintf(series->name, sizeof(series->name), "%.200s.%" PRIx64 "%04" PRIx64, name,
                 clock_realtime_usec(), ++recorder->serial & 0xffff);
        for (char *c = series->name; *c; c++)
                if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.-", *c))
                        *c = '-';
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789", series->name[0]))
                series->name[0] = 'x';
}

static void create(struct recorder *recorder, const struct event *event, struct series *series, uint64_t now)
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL;
        _cleanup_text_ struct text body = TEXT_EMPTY;

        if (kube_key_split(event->key, &namespace_name, &name) < 0) {
                recorder->dropped++;
                series->count = 0;
                return;
        }
        snprintf(series->namespace_name, sizeof(series->namespace_name), "%s",
                 namespace_name[0] ? namespace_name : "default");
        name_event(recorder, name, series);
        write_event(recorder, event, series, namespace_name, name, &body);
        series_written(series, now);
        enqueue(recorder, series, true, &body);
}

/* event: NULL where only the count is known; then an earlier one must exist. */
static void count_here(struct recorder *recorder, uint64_t object, uint64_t identity, uint64_t count,
                       const struct event *event)
{
        uint64_t now = clock_boottime_usec();
        struct series *series;

        if (!event && !series_find(recorder->series, identity, now))
                return;
        switch (series_note(recorder->series, series_place(event ? event->key : ""), object, identity, count,
                            now, &series)) {
        case SERIES_CREATE:
                if (event)
                        create(recorder, event, series, now);
                break;
        case SERIES_WRITE:
                write_count(recorder, series, now);
                break;
        case SERIES_COUNTED:
                arm_refresh(recorder);
                break;
        case SERIES_DROPPED:
                recorder->dropped++;
                break;
        }
}

static void record_one_event(struct recorder *recorder, const struct event *event)
{
        uint64_t now = clock_boottime_usec(), object = series_object(event->uid),
                 identity = series_identity(event->uid, event->type, event->reason, event->action,
                                            event->about ? event->about : "");
        struct series *series;

        if (!recorder->told) {
                count_here(recorder, object, identity, 1, event);
                return;
        }
        switch (series_note(recorder->told, series_place(event->key), object, identity, 1, now, &series)) {
        case SERIES_CREATE:
        case SERIES_WRITE:
                /* When workers stop, the one that counts may be gone: this worker writes what it has told
                 * nobody of. */
                if (!recorder->worker->stopping)
                        tell(recorder, series, event, now);
                else if (series->written == 0)
                        count_here(recorder, object, identity, 1, event);
                break;
        case SERIES_COUNTED:
                arm_refresh(recorder);
                break;
        case SERIES_DROPPED:
                recorder->dropped++;
                break;
        }
}

static const char *text_or(const cJSON *item, const char *key, const char *otherwise)
{
        const char *text = json_text_of(item, key);

        return text ? text : otherwise;
}

/* An Event about an Event would be an object of the same watch, and cause the next one forever. */
static bool is_of_events(const struct record_watch *watch)
{
        return strcmp(watch->kind, "Event") == 0 &&
               (strcmp(watch->api_version, "v1") == 0 ||
                strncmp(watch->api_version, "events.k8s.io/", strlen("events.k8s.io/")) == 0);
}

static const char *event_action_of(const struct run *run)
{
        return run->action == ACTION_FINALIZE     ? "Finalize"
               : run->action == ACTION_UNSELECTED ? "Unselected"
                                                  : "Reconcile";
}

/* Changes are many, and the log has them. What somebody else has made and the operator takes over is news in any case. */
static void record_writes(struct recorder *recorder, const struct run *run, struct event event)
{
        bool all = run->watch->config->children_events;
        static const char *const reason[CHILD_WRITE_COUNT] = {[CHILD_CREATED] = "ChildCreated",
                                                              [CHILD_DELETED] = "ChildDeleted",
                                                              [CHILD_ADOPTED] = "ChildAdopted",
                                                              [CHILD_RELEASED] = "ChildReleased"};
        char note[NOTE_MAX + 1];

        event.type = "Normal";
        FOREACH_ARRAY(write, run->writes.item, run->writes.count) {
                if (!reason[write->what] || (write->what != CHILD_ADOPTED && !all))
                        continue;
                snprintf(note, sizeof(note), "%s was %s", write->object, child_write_name(write->what));
                event.reason = reason[write->what];
                event.about = write->object;
                event.note = note;
                record_one_event(recorder, &event);
        }
}

void recorder_run_ended(struct recorder *recorder, const struct run *run, enum run_result result,
                        const char *text)
{
        struct event event = {.watch = run->watch->config,
                              .key = run->order->key,
                              .uid = run->order->uid,
                              .version = run->object.resource_version,
                              .type = "Warning",
                              .action = event_action_of(run)};
        char note[STATUS_MESSAGE_MAX];
        const cJSON *item;

        if (!recorder || run_is_replay(run) || run_is_of_deletion(run) || run->action == ACTION_FINALIZER ||
            is_of_events(event.watch))
                return;
        record_writes(recorder, run, event);
        if (result == RESULT_SUCCESS || run->answer.error ||
            (result == RESULT_SETTLING && dependents_waiting(run)))
                cJSON_ArrayForEach(item, run->answer.events)
                {
                        event.type = text_or(item, "type", "Normal");
                        event.reason = text_or(item, "reason", "");
                        event.action = text_or(item, "action", event_action_of(run));
                        event.note = text_or(item, "note", "");
                        record_one_event(recorder, &event);
                }
        if (result == RESULT_SETTLING && run->action == ACTION_FINALIZE) {
                event.reason = "CleanupWaits";
                confidential_hide_operator(recorder->worker, text, note, sizeof(note));
                event.note = note;
                if (run->watch->config->events)
                        record_one_event(recorder, &event);
                return;
        }
        if (!run->watch->config->events || run->cancelled || !status_is_failure(result))
                return;
        status_describe_failure(run, text, note, sizeof(note));
        event.reason = status_failure_reason(run, result);
        event.note = note;
        record_one_event(recorder, &event);
}

int recorder_report(struct recorder *recorder, const struct message_report *report)
{
        const struct worker_watch *watch = worker_watch_find(recorder->worker, report->watch);
        struct event event = {.key = report->key,
                              .uid = report->uid,
                              .version = report->version,
                              .type = report->type,
                              .reason = report->reason,
                              .action = report->action,
                              .note = report->note};

        if (report->back)
                recorder_reported(recorder);
        /* A worker with an older configuration may know a watch that does not exist any more. */
        if (report->watch[0] && !watch)
                return report->counted ? 0 : -EPROTO;
        if (watch)
                event.watch = watch->config;
        if (watch && is_of_events(watch->config))
                return 0;
        if (report->counted)
                count_here(recorder, report->object, report->identity, report->count, watch ? &event : NULL);
        else if (watch)
                record_one_event(recorder, &event);
        recorder->worker->on_part_ended(recorder->worker);
        return 0;
}

void recorder_reported(struct recorder *recorder)
{
        if (recorder->telling > 0)
                recorder->telling--;
        recorder->worker->on_part_ended(recorder->worker);
}

/* ---- its life */

int recorder_new(struct worker *worker, struct recorder **ret)
{
        struct recorder *recorder = calloc(1, sizeof(*recorder));
        char host[65] = "";

        if (!recorder)
                return -ENOMEM;
        recorder->worker = worker;
        if (series_table_new(&recorder->series) < 0 ||
            (worker->config->events_shared && series_table_new(&recorder->told) < 0)) {
                recorder_free(recorder);
                return -ENOMEM;
        }
        if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
                snprintf(host, sizeof(host), "localhost");
        snprintf(recorder->instance, sizeof(recorder->instance), "reconciled-%s", host);
        *ret = recorder;
        return 0;
}

void recorder_free(struct recorder *recorder)
{
        if (!recorder)
                return;
        kube_transfer_cancel(recorder->transfer);
        sd_event_source_disable_unref(recorder->again);
        sd_event_source_disable_unref(recorder->refresh);
        while (recorder->first)
                remove_first(recorder);
        series_table_free(recorder->series);
        series_table_free(recorder->told);
        free(recorder);
}

bool recorder_is_busy(const struct recorder *recorder)
{
        return recorder && (recorder->first || recorder->telling > 0);
}

size_t recorder_count(const struct recorder *recorder, struct record_counter *counter, size_t max)
{
        if (max < 2)
                return 0;
        counter[0] = (struct record_counter){"events_written", recorder ? recorder->written : 0};
        counter[1] = (struct record_counter){"events_dropped", recorder ? recorder->dropped : 0};
        return 2;
}
