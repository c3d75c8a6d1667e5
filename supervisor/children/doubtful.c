/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/doubtful.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "controller/due/doubt.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/control/configured.h"
#include "supervisor/folders/state-folder.h"
#include "supervisor/supervisor.h"

#define DOUBTS_MAX 400 /* of a watch: they fit into one message; there are few or none */
#define DAY_USEC   (24 * USEC_PER_HOUR)

/* ---- messages to the watcher */

struct list {
        const struct supervisor *supervisor;
        struct record_doubt doubt[DOUBTS_MAX];
        size_t count;
};

static int collect_doubt(const struct ledger_doubt *doubt, void *userdata)
{
        struct list *list = userdata;
        struct record_doubt *record = &list->doubt[list->count++];

        record->key = strdup(doubt->key);
        record->uid = strdup(doubt->uid);
        record->unread = doubt->unread;
        record->until_boottime = ledger_to_boottime(list->supervisor, doubt->until_realtime);
        return record->key && record->uid ? 0 : -ENOMEM;
}

static void list_free(struct list *list)
{
        for (size_t i = 0; i < list->count; i++) {
                free((void *)(uintptr_t)list->doubt[i].key);
                free((void *)(uintptr_t)list->doubt[i].uid);
        }
        free(list);
}
DEFINE_CLEANUP(struct list *, list_free);

int doubtful_tell(struct watch *watch)
{
        _cleanup_(list_free_pointer) struct list *list = calloc(1, sizeof(*list));
        struct message_doubtful message = {.watch = watch->config->name};
        int r = -ENOMEM;

        if (list) {
                list->supervisor = supervisor_of(watch);
                r = ledger_visit_doubts(watch->controller->ledger, watch->config->name,
                                        ledger_now(supervisor_of(watch)), DOUBTS_MAX, collect_doubt, list);
        }
        if (r < 0)
                return r;
        watch->doubt_count = list->count;
        message.doubt = list->doubt;
        message.doubt_count = list->count;
        return channel_send(child_of(watch)->process.channel, MESSAGE_DOUBTFUL, &message);
}

int doubtful_release(struct watch *watch, const char *key)
{
        struct ledger *ledger = watch->controller->ledger;
        int removed = ledger_doubt_remove(ledger, watch->config->name, key),
            r = removed < 0 ? removed : ledger_commit(ledger);

        if (r < 0 || removed == 0)
                return r < 0 ? r : -ENOENT;
        log_write(LOG_NOTICE, MESSAGE_ID_RELEASED,
                  LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key}),
                  "%s of watch %s was released by hand: its watcher reads it again when it changes", key,
                  watch->config->name);
        return child_of(watch)->process.state == CHILD_RUNNING ? doubtful_tell(watch) : 0;
}

#define REPORTS_MAX 100 /* of each sort; more than that is no news of an object */

struct reporter {
        struct supervisor *supervisor;
        struct worker *worker;
};

static int report(const struct reporter *reporter, const char *watch_name, const char *key, const char *uid,
                  const char *reason, const char *note)
{
        struct watch *watch = watch_find(&reporter->supervisor->controller, watch_name);

        if (!watch || watch->config->owner || !watch->config->events)
                return 0;
        /* If the message cannot be sent, the worker's end is about to end us anyway. */
        (void)channel_send(worker_child(reporter->worker)->process.channel, MESSAGE_REPORT,
                           &(struct message_report){.watch = watch_name,
                                                    .key = key,
                                                    .uid = uid,
                                                    .type = "Warning",
                                                    .reason = reason,
                                                    .action = "Reconcile",
                                                    .note = note});
        return 0;
}

static int report_quarantined(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        const struct reporter *reporter = userdata;
        char note[512];

        if (row->crashed_realtime <= reporter->supervisor->crash_events.until)
                return 0;
        snprintf(
                note, sizeof(note),
                "the operator crashed %" PRIu64
                " %s while it ran this object, and does not run it until it changes or its quarantine ends: "
                "%.300s",
                row->crashes, counted(row->crashes, "time", "times"), row->last_error);
        utf8_clean(note);
        return report(reporter, watch_name, row->key, row->uid, "Quarantined", note);
}

static int report_doubtful(const struct ledger_doubt *doubt, void *userdata)
{
        const struct reporter *reporter = userdata;
        char note[512];

        if (doubt->crashed_realtime <= reporter->supervisor->crash_events.until ||
            !watch_find(&reporter->supervisor->controller, doubt->watch))
                return 0;
        snprintf(note, sizeof(note), "a watcher died while it read this object, and %s: %.300s",
                 doubt->unread ? "the operator ignores the object for a while"
                               : "no jq program runs on it for a while",
                 doubt->error);
        utf8_clean(note);
        return report(reporter, doubt->watch, doubt->key, doubt->uid, "Doubtful", note);
}

int crash_events_send(struct supervisor *supervisor, struct worker *worker)
{
        struct reporter reporter = {supervisor, worker};
        uint64_t now = ledger_now(supervisor);
        int r;

        if (supervisor->crash_events.sent)
                return 0;
        supervisor->crash_events.sent = true;
        r = configured_visit_quarantined(supervisor, REPORTS_MAX, report_quarantined, &reporter);
        if (r >= 0)
                r = ledger_visit_doubts(supervisor->controller.ledger, NULL, now, REPORTS_MAX,
                                        report_doubtful, &reporter);
        if (r >= 0)
                state_folder_note_crash_events(supervisor, now);
        return r < 0 ? r : 0;
}
