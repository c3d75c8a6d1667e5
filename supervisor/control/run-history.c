/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/run-history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/run-reason.h"
#include "supervisor/supervisor.h"

#define LISTED_MAX 200 /* of a watch */
#define UIDS_MAX   100 /* of one key: its rows are neighbours */

/* ---- keeping */

static bool is_worth_it(const struct assignment *given, const struct message_done *done)
{
        switch (done->result) {
        case RESULT_SUCCESS:
                return done->write_count > 0 || given->attempt > 1;
        case RESULT_SETTLING: /* it waits, again and again */
        case RESULT_STALE:
        case RESULT_CANCELLED:
                return done->write_count > 0;
        default:
                return true;
        }
}

static void list_writes(const struct message_done *done, struct text *json)
{
        text_append_string(json, "[");
        for (size_t i = 0; i < done->write_count; i++) {
                text_append_string(json, "{");
                json_string(json, "what", child_write_name(done->write[i].what));
                json_string(json, "object", done->write[i].object);
                json_string(json, "fields", done->write[i].fields);
                json_close(json, "},");
        }
        json_close(json, "]");
}

int history_note(struct supervisor *supervisor, const struct assignment *given,
                 const struct message_done *done)
{
        _cleanup_text_ struct text writes = TEXT_EMPTY;
        struct ledger_history entry = {
                .watch = done->watch,
                .key = done->key,
                .uid = done->uid,
                .ended_realtime = supervisor->controller.now.realtime,
                .duration_usec = given->took_usec,
                .attempt = given->attempt,
                .times = 1,
                .action = run_action_name(done->action),
                .reason = run_reason_name(given->run.reason),
                .result = run_result_name(done->result),
                .version = done->resource_version,
                .error = done->result == RESULT_SUCCESS ? "" : done->message,
                .writes = "",
                .writes_left_out = done->writes_left_out,
        };

        if (!is_worth_it(given, done))
                return 0;
        if (done->write_count > 0) {
                list_writes(done, &writes);
                if (writes.failed)
                        return -ENOMEM;
                entry.writes = writes.data;
        }
        return ledger_history_add(supervisor->controller.ledger, &entry);
}

/* ---- showing */

struct history_page {
        const struct watch *watch;
        const char *key, *uid; /* uid: of the row that is asked for */
        uint64_t ended;        /* of the run that is asked for; or of the newest that was listed */
        struct text *json;
};

static void write_more(const struct ledger_history *entry, struct text *json)
{
        json_uint64(json, "attempt", entry->attempt);
        json_string(json, "error", entry->error);
        text_printf(json, "\"writes\":%s,", entry->writes[0] ? entry->writes : "[]");
        json_uint64(json, "writesLeftOut", entry->writes_left_out);
}

void history_write_run(const struct ledger_run *run, struct text *json)
{
        json_uint64(json, "endedAt", run->ended_realtime);
        json_uint64(json, "took", run->duration_usec);
        json_string(json, "action", run->action);
        json_string(json, "reason", run->reason);
        json_string(json, "result", run->result);
        json_string(json, "resourceVersion", run->version);
}

static int print_entry(const struct ledger_history *entry, void *userdata)
{
        struct history_page *page = userdata;
        const struct ledger_run run = {.ended_realtime = entry->ended_realtime,
                                       .duration_usec = entry->duration_usec,
                                       .action = entry->action,
                                       .reason = entry->reason,
                                       .result = entry->result,
                                       .version = entry->version};

        page->ended = entry->ended_realtime;
        text_append_string(page->json, "{");
        json_string(page->json, "key", entry->key);
        json_string(page->json, "uid", entry->uid);
        history_write_run(&run, page->json);
        json_uint64(page->json, "times", entry->times);
        write_more(entry, page->json);
        json_close(page->json, "},");
        return 0;
}

/* A run that is not in the history has succeeded at once, and has written to no child. */
static int write_last_run(const struct ledger_run *run, void *userdata)
{
        struct history_page *page = userdata;

        if (run->ended_realtime <= page->ended)
                return 0;
        text_append_string(page->json, "{");
        json_string(page->json, "key", page->key);
        json_string(page->json, "uid", page->uid);
        history_write_run(run, page->json);
        json_close(page->json, "},");
        return 0;
}

static int write_row_run(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        struct history_page *page = userdata;

        if (strcmp(row->key, page->key) != 0)
                return 0;
        page->uid = row->uid;
        return ledger_run_see(page->watch->controller->ledger, watch_name, row->key, row->uid,
                              write_last_run, page);
}

int history_write(const struct watch *watch, const char *key, struct text *json)
{
        struct history_page page = {.watch = watch, .key = key, .json = json};
        struct ledger *ledger = watch->controller->ledger;
        const char *name = watch->config->name;
        int r;

        text_append_string(json, "{");
        json_string(json, "watch", name);
        text_append_string(json, "\"runs\":[");
        r = ledger_visit_history(ledger, name, key, LISTED_MAX, print_entry, &page);
        if (r >= 0 && key[0])
                r = ledger_visit(ledger, name, key, "", UIDS_MAX, write_row_run, &page);
        json_close(json, "]}");
        return r < 0 ? r : json->failed ? -ENOMEM : 0;
}

static int write_if_asked_for(const struct ledger_history *entry, void *userdata)
{
        const struct history_page *page = userdata;

        if (entry->ended_realtime == page->ended && strcmp(entry->uid, page->uid) == 0)
                write_more(entry, page->json);
        return 0;
}

int history_write_more(const struct supervisor *supervisor, const char *watch, const char *key,
                       const char *uid, uint64_t ended_realtime, struct text *json)
{
        struct history_page page = {.uid = uid, .ended = ended_realtime, .json = json};

        return ledger_visit_history(supervisor->controller.ledger, watch, key, HISTORY_OF_KEY,
                                    write_if_asked_for, &page);
}

/* ---- what a run waits for */

#define WAITING_FOR "waiting for " /* what a worker says of children that are not ready */

struct waiting {
        const char *uid;
        uint64_t since;   /* the last success: what is older has ended */
        struct text text; /* of the newest entry; empty: that is no wait */
};

static int keep_waiting_entry(const struct ledger_history *entry, void *userdata)
{
        struct waiting *waiting = userdata;

        if (strcmp(entry->uid, waiting->uid) != 0)
                return 0;
        text_done(&waiting->text);
        if (entry->ended_realtime >= waiting->since &&
            strcmp(entry->result, run_result_name(RESULT_SETTLING)) == 0 &&
            strncmp(entry->error, WAITING_FOR, strlen(WAITING_FOR)) == 0)
                text_append_string(&waiting->text, entry->error + strlen(WAITING_FOR));
        return waiting->text.failed ? -ENOMEM : 0;
}

/* A plan (worker/dependents/parked/plan.c) is JSON for workers, which the supervisor does not read. It begins with its
 * cause, which a wait does not have, and its deadline. */
#define PLAN_OF_WAIT "{\"cause\":\"\",\"deadline\":\""

void history_write_wait(const struct supervisor *supervisor, const char *watch, const struct ledger_row *row,
                        struct text *json)
{
        struct waiting waiting = {.uid = row->uid,
                                  .since = ledger_to_realtime(supervisor, row->handled_realtime)};

        if (strncmp(row->settling, PLAN_OF_WAIT, strlen(PLAN_OF_WAIT)) != 0)
                return;
        /* Without memory or a ledger, the texts are missing. */
        (void)ledger_visit_history(supervisor->controller.ledger, watch, row->key, HISTORY_OF_KEY,
                                   keep_waiting_entry, &waiting);
        json_string(json, "waitsFor", waiting.text.data ? waiting.text.data : "");
        json_uint64(
                json, "waitsUntil",
                ledger_to_realtime(supervisor, strtoull(row->settling + strlen(PLAN_OF_WAIT), NULL, 10)));
        text_done(&waiting.text);
}
