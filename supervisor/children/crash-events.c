/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/crash-events.h"

#include <inttypes.h>

#include "supervisor/children/child-slot.h"
#include "supervisor/control/configured.h"
#include "supervisor/folders/ledger-clock.h"
#include "supervisor/folders/state-folder.h"
#include "supervisor/supervisor.h"

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
        /* A worker that cannot be told is about to end us anyway. */
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
