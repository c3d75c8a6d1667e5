/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "controller/due/assigned.h"
#include "controller/effects.h"
#include "controller/run/failure.h"
#include "ipc/log.h"
#include "ipc/run-reason.h"
#include "queue/look.h"
#include "queue/rate.h"
#include "supervisor/control/run-history.h"
#include "supervisor/control/status-document.h"
#include "supervisor/supervisor.h"

#define UIDS_MAX          100  /* of one key: its rows are neighbours */
#define DOUBTS_LOOKED_MAX 1000 /* of one watch; there are few or none */

/* ---- keeping how a run ended */

void explain_ended(struct supervisor *supervisor, const struct assignment *given,
                   const struct message_done *done)
{
        struct ledger_run run = {
                .ended_realtime = supervisor->controller.now.realtime,
                .duration_usec = given->took_usec,
                .action = run_action_name(done->action),
                .reason = run_reason_name(given->run.reason),
                .result = run_result_name(done->result),
                .version = done->resource_version,
        };
        int r;

        /* Nothing ran. */
        if (done->result == RESULT_BEHIND || done->result == RESULT_UNNEEDED ||
            done->result == RESULT_RETURNED)
                return;
        if (done->result == RESULT_SUCCESS)
                log_write(LOG_DEBUG, NULL,
                          LOG_FIELDS({"RECONCILED_WATCH", done->watch}, {"RECONCILED_KEY", done->key},
                                     {"RECONCILED_UID", done->uid}),
                          "%s of %s of watch %s (%s) has succeeded after %llu ms", run.action, done->key,
                          done->watch, run.reason, (unsigned long long)(run.duration_usec / 1000));
        /* Without memory it is left out. */
        (void)slowest_note(&supervisor->slowest, given->run.watch, done->key, run.result, run.duration_usec,
                           supervisor->controller.now.boottime);
        (void)history_note(supervisor, given, done);
        r = ledger_run_put(supervisor->controller.ledger, done->watch, done->key, done->uid, &run);
        if (r < 0 && supervisor->phase != PHASE_TEARDOWN)
                ledger_failed(&supervisor->controller, r);
}

/* ---- answering */

struct question {
        const struct supervisor *supervisor;
        const struct watch *watch;
        const char *key;
        struct text *json;
};

/* A number above 2^53 is none in JSON. */
static void write_fingerprint(struct text *json, const char *name, uint64_t fingerprint)
{
        char hex[17] = "";

        if (fingerprint != 0)
                snprintf(hex, sizeof(hex), "%016" PRIx64, fingerprint);
        json_string(json, name, hex);
}

struct last_run {
        const struct question *question;
        const struct ledger_row *row;
};

static int write_last(const struct ledger_run *run, void *userdata)
{
        const struct last_run *last = userdata;
        const struct question *question = last->question;
        struct text *json = question->json;
        int r;

        if (run->ended_realtime == 0)
                return 0;
        text_append_string(json, "\"lastRun\":{");
        history_write_run(run, json);
        r = history_write_more(question->supervisor, question->watch->config->name, last->row->key,
                               last->row->uid, run->ended_realtime, json);
        json_close(json, "},");
        return r;
}

/* A resync counts from the last success, whatever time its row has (lib/controller/due/due.c). */
static uint64_t next_time(const struct watch *watch, const struct ledger_row *row)
{
        uint64_t resync = row->handled_realtime + watch->config->resync_usec;

        return row->next_reason == RUN_RESYNC && row->next_realtime < resync ? resync : row->next_realtime;
}

static int explain_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        struct question *question = userdata;
        struct last_run last = {question, row};
        struct text *json = question->json;
        int r;

        if (strcmp(row->key, question->key) != 0)
                return 0;
        text_append_string(json, "{");
        json_string(json, "uid", row->uid);
        write_fingerprint(json, "handledFingerprint", row->fingerprint);
        write_fingerprint(json, "failedFingerprint", row->failed_fingerprint);
        json_uint64(json, "handledAt", ledger_to_realtime(question->supervisor, row->handled_realtime));
        json_uint64(json, "attempts", ending_attempts(row));
        json_string(json, "firstError", row->first_error);
        json_string(json, "lastError", row->last_error);
        json_uint64(json, "next", ledger_to_realtime(question->supervisor, next_time(question->watch, row)));
        json_string(json, "nextReason", run_reason_name(row->next_reason));
        json_bool(json, "permanent", row->permanent);
        json_uint64(json, "throttled", row->throttled);
        json_uint64(json, "refused", row->refused);
        json_bool(json, "deleting", row->deleting);
        json_bool(json, "unselected", row->unselected);
        json_bool(json, "settling", row->settling[0] != '\0');
        /* A plan is JSON, for workers only; if it begins with a word, the text after that is for people. */
        json_string(json, "settlingText",
                    row->settling[0] != '{' && strchr(row->settling, ' ') ? strchr(row->settling, ' ') + 1
                                                                          : "");
        history_write_wait(question->supervisor, watch_name, row, json);
        json_uint64(json, "crashes", row->crashes);
        json_uint64(json, "lastCrash", ledger_to_realtime(question->supervisor, row->crashed_realtime));
        json_uint64(json, "quarantinedUntil",
                    ledger_to_realtime(question->supervisor, row->quarantined_until));
        json_string(json, "writtenVersion", row->written_version);
        r = ledger_run_see(question->supervisor->controller.ledger, watch_name, row->key, row->uid,
                           write_last, &last);
        json_close(json, "},");
        return r;
}

static int write_doubt_of_key(const struct ledger_doubt *doubt, void *userdata)
{
        struct question *question = userdata;

        if (strcmp(doubt->key, question->key) == 0)
                status_write_doubt(question->supervisor, doubt, question->json);
        return 0;
}

static void write_queue(const struct question *question)
{
        static const char *const state_name[] = {
                [QUEUE_AT_REST] = "at-rest",
                [QUEUE_QUEUED] = "queued",
                [QUEUE_SUSPECT] = "suspect",
                [QUEUE_RUNNING] = "running",
                [QUEUE_RUNNING_DIRTY] = "running-dirty",
                [QUEUE_DELAYED] = "delayed",
        };
        const struct supervisor *supervisor = question->supervisor;
        struct queue_view view =
                queue_look(supervisor->controller.queue,
                           (unsigned)(question->watch - supervisor->controller.watch), question->key);
        uint64_t next_token = queue_rate(supervisor->controller.queue, watch_number(question->watch)).next;
        uint64_t now = clock_boottime_usec();
        struct text *json = question->json;

        text_append_string(json, "\"queue\":{");
        json_string(json, "state", state_name[view.state]);
        json_string(json, "uid", view.uid);
        json_string(json, "reason", run_reason_name(view.reason));
        if (view.state == QUEUE_QUEUED || view.state == QUEUE_SUSPECT)
                json_uint64(json, "waitingFor", now - view.since);
        if (view.state == QUEUE_QUEUED && !view.goes_on && next_token > now)
                json_uint64(json, "rateIn", next_token - now);
        if (view.sharing > 0) {
                json_uint64(json, "ahead", view.ahead);
                json_uint64(json, "namespaces", view.sharing);
        }
        if (view.state == QUEUE_DELAYED)
                json_uint64(json, "dueIn", view.due > now ? view.due - now : 0);
        json_bool(json, "behind", view.behind);
        json_close(json, "},");
}

static void write_worker(const struct question *question)
{
        const struct supervisor *supervisor = question->supervisor;

        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                const struct worker *worker = &supervisor->controller.worker[i];

                FOREACH_ARRAY(given, worker->given, worker->given_count) {
                        if (!assignment_has_begun(worker, given) ||
                            &supervisor->controller.watch[given->run.watch] != question->watch ||
                            strcmp(given->run.key, question->key) != 0)
                                continue;
                        text_append_string(question->json, "\"worker\":");
                        status_write_worker(supervisor, i, given, question->json);
                }
        }
}

/* ---- keys, for a shell that completes one */

#define KEYS_MAX 200

struct keys {
        const char *begun;
        struct text *json;
        char *last; /* a key may have several UIDs */
};

static int write_key(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        struct keys *keys = userdata;

        if (strncmp(row->key, keys->begun, strlen(keys->begun)) != 0 ||
            (keys->last && strcmp(row->key, keys->last) == 0))
                return 0;
        text_json(keys->json, "?,", row->key);
        return text_replace(&keys->last, row->key);
}

int explain_write_keys(const struct watch *watch, const char *begun, struct text *json)
{
        struct keys keys = {.begun = begun, .json = json};
        int r;

        text_append_string(json, "{\"keys\":[");
        r = ledger_visit(watch->controller->ledger, watch->config->name, begun, "", KEYS_MAX, write_key,
                         &keys);
        free(keys.last);
        json_close(json, "]}");
        return r < 0 ? r : json->failed ? -ENOMEM : 0;
}

int explain_write(const struct watch *watch, const char *key, struct text *json)
{
        struct supervisor *supervisor = supervisor_of(watch);
        struct question question = {supervisor, watch, key, json};
        int r;

        text_append_string(json, "{");
        json_string(json, "key", key);
        json_bool(json, "uninstalling", supervisor->controller.uninstall.active);
        text_append_string(json, "\"watch\":");
        status_write_watch(supervisor, (size_t)(watch - supervisor->controller.watch), json);
        write_queue(&question);
        write_worker(&question);
        text_append_string(json, "\"objects\":[");
        r = ledger_visit(supervisor->controller.ledger, watch->config->name, key, "", UIDS_MAX, explain_row,
                         &question);
        json_close(json, "],\"doubtful\":[");
        if (r >= 0)
                r = ledger_visit_doubts(supervisor->controller.ledger, watch->config->name,
                                        ledger_now(supervisor), DOUBTS_LOOKED_MAX, write_doubt_of_key,
                                        &question);
        json_close(json, "],\"store\":{");
        json_string(json, "folder", watch_place_of(watch)->store_folder);
        json_uint64(json, "generation", watch->generation);
        json_close(json, "}}");
        return r < 0 ? r : json->failed ? -ENOMEM : 0;
}

/* ---- for what runs a handler by hand */

static int write_previous_row(const char *watch _unused_, const struct ledger_row *row, void *userdata)
{
        const struct question *question = userdata;

        if (strcmp(row->key, question->key) != 0 || !row->previous_version[0])
                return 0;
        text_append_string(question->json, "{");
        json_string(question->json, "uid", row->uid);
        json_string(question->json, "version", row->previous_version);
        json_close(question->json, "},");
        return 0;
}

int explain_write_previous(const struct watch *watch, const char *key, struct text *json)
{
        struct supervisor *supervisor = supervisor_of(watch);
        struct question question = {supervisor, watch, key, json};
        const char *store = watch_place_of(watch)->store_folder;
        int r = 0;

        text_append_string(json, "{");
        json_string(json, "operator", supervisor->config->operator_name);
        json_string(json, "store", watch->config->previous ? store : "");
        text_append_string(json, "\"objects\":[");
        if (key[0])
                r = ledger_visit(supervisor->controller.ledger, watch->config->name, key, "", UIDS_MAX,
                                 write_previous_row, &question);
        json_close(json, "]}");
        return r < 0 ? r : json->failed ? -ENOMEM : 0;
}
