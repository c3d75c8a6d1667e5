/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events on objects that the operator has died over. Who dies has no time to tell the API server, and who
 * has just started has no credential yet: so they are told once a worker can, and the state folder knows
 * until when that was done. And the way of an Event from the worker that wants it to the one that counts all
 * Events of its object: which one that is follows from the object alone, as long as the workers stay.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "supervisor/configured.h"
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
        (void)channel_send(worker_child(reporter->worker)->channel, MESSAGE_REPORT,
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

        if (row->crashed_realtime <= reporter->supervisor->reported)
                return 0;
        snprintf(note, sizeof(note),
                 "the operator has crashed %" PRIu64
                 " %s over it, and leaves it alone until it changes or its "
                 "time is over: %.300s",
                 row->crashes, counted(row->crashes, "time", "times"), row->last_error);
        utf8_clean(note);
        return report(reporter, watch_name, row->key, row->uid, "Quarantined", note);
}

static int report_doubtful(const struct ledger_doubt *doubt, void *userdata)
{
        const struct reporter *reporter = userdata;
        char note[512];

        if (doubt->crashed_realtime <= reporter->supervisor->reported ||
            !watch_find(&reporter->supervisor->controller, doubt->watch))
                return 0;
        snprintf(note, sizeof(note), "a watcher has died over reading it, and %s: %.300s",
                 doubt->unread ? "leaves it alone for a while" : "runs no jq program on it for a while",
                 doubt->error);
        utf8_clean(note);
        return report(reporter, doubt->watch, doubt->key, doubt->uid, "Doubtful", note);
}

int reports_send(struct supervisor *supervisor, struct worker *worker)
{
        struct reporter reporter = {supervisor, worker};
        uint64_t now = ledger_now(supervisor);
        int r;

        if (supervisor->has_reported)
                return 0;
        supervisor->has_reported = true;
        r = configured_visit_quarantined(supervisor, REPORTS_MAX, report_quarantined, &reporter);
        if (r >= 0)
                r = ledger_visit_doubts(supervisor->controller.ledger, NULL, now, REPORTS_MAX,
                                        report_doubtful, &reporter);
        if (r >= 0)
                state_folder_note_reports(supervisor, now);
        return r < 0 ? r : 0;
}

/* The worker that counts the Events of this object. NULL: none is there for long enough. */
static struct worker *counting_worker(const struct supervisor *supervisor, uint64_t object)
{
        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                struct worker *worker =
                        &supervisor->controller.worker[(object % supervisor->controller.worker_count + i) %
                                                       supervisor->controller.worker_count];

                if (child_is_used(worker_child(worker)) && worker_child(worker)->state == CHILD_RUNNING &&
                    !worker->stale)
                        return worker;
        }
        return NULL;
}

void report_pass_on(struct worker *from, const struct message_report *report)
{
        struct worker *to = counting_worker(from->controller->userdata, report->object);
        struct message_report copy = *report;

        copy.counted = true;
        copy.back = !to || to == from;
        if (!copy.back)
                (void)channel_send(worker_child(from)->channel, MESSAGE_REPORTED,
                                   &(struct message_reported){.identity = report->identity});
        (void)channel_send(copy.back ? worker_child(from)->channel : worker_child(to)->channel,
                           MESSAGE_REPORT, &copy);
}
