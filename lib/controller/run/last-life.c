/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/run/last-life.h"

#include <errno.h>
#include <string.h>

#include "config/config-watch.h"
#include "controller/due/next-attempt.h"
#include "controller/effects.h"
#include "controller/run/blame.h"
#include "ipc/run-reason.h"
#include "object/child-kinds.h"
#include "queue/look.h"

static int suspect(struct controller *controller, const struct config_watch *config,
                   const struct noted_run *note, struct ledger_row *row, bool alone)
{
        bool counts = alone && ledger_row_is_suspect(row);
        int r = 0;

        row->crashed_realtime = ledger_time(controller);
        if (counts) {
                r = blame_object(controller, config, note->key, note->uid, note->fingerprint,
                                 "the operator was killed while it ran, alone");
                ledger_row_done(row);
                if (r >= 0)
                        r = ledger_get(controller->ledger, note->watch, note->key, note->uid, row);
        }
        controller_log(
                controller, counts ? LOG_WARNING : LOG_NOTICE, NULL,
                LOG_FIELDS({"RECONCILED_WATCH", note->watch}, {"RECONCILED_KEY", note->key},
                           {"RECONCILED_UID", note->uid}),
                counts ? "%s of watch %s ran alone when the operator, or a process of it, was killed: a crash "
                         "is counted"
                       : "%s of watch %s ran when the operator, or a process of it, was killed: it runs alone "
                         "the next time",
                note->key, note->watch);
        return r;
}

/* Which of its writes to children the server has carried out is unknown. */
static int forget_versions(struct ledger_row *row)
{
        _cleanup_free_ char *unknown =
                child_kinds_are_unknown(row->kinds) ? NULL : format_string("?%s", row->kinds);

        if (child_kinds_are_unknown(row->kinds))
                return 0;
        return unknown ? text_replace(&row->kinds, unknown) : -ENOMEM;
}

int last_life_judge(struct controller *controller, const struct noted_run *note, bool suspects, bool alone)
{
        const struct config_watch *config = config_watch_find(controller->config, note->watch);
        struct ledger_row row = {0};
        int r = ledger_get(controller->ledger, note->watch, note->key, note->uid, &row);

        if (r == -ENOENT)
                return 0;
        if (r >= 0 && ledger_row_is_hearsay(&row))
                row.failed_fingerprint = 0;
        if (r >= 0 && suspects && config)
                r = suspect(controller, config, note, &row, alone);
        if (r >= 0) {
                if (!note->without_handler) {
                        ledger_row_unknown(&row);
                        r = forget_versions(&row);
                }
                if (r >= 0)
                        r = ledger_put(controller->ledger, note->watch, &row);
        }
        ledger_row_done(&row);
        return r;
}

/* ---- another process was killed */

static int suspect_run(struct controller *controller, const struct assignment *given, bool alone)
{
        const struct config_watch *config = controller->watch[given->run.watch].config;
        const struct noted_run note = {config->name, given->run.key, given->run.uid, given->run.fingerprint,
                                       run_is_without_handler(given->run.reason)};

        return last_life_judge(controller, &note, true, alone);
}

void last_life_suspect_runs(struct controller *controller)
{
        size_t count = 0;
        int r = 0;

        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                FOREACH_ARRAY(given, worker->given, worker->given_count)
                        count += !given->to_send;
        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                FOREACH_ARRAY(given, worker->given, worker->given_count)
                        if (r >= 0 && !given->to_send)
                                r = suspect_run(controller, given, count == 1);
        if (r >= 0)
                r = ledger_commit(controller->ledger);
        if (r < 0)
                controller_log(controller, LOG_ERR, NULL, NULL,
                               "what ran when a process was killed could not be recorded in the ledger: %s",
                               strerror(-r));
}

/* ---- what another replica has left */

static void wait_after_crashes(struct controller *controller, const struct config_watch *config,
                               const struct former_crash *crash, struct ledger_row *row)
{
        uint64_t now = ledger_time(controller), left = crash->quarantine_usec < config->quarantine_usec
                                                               ? crash->quarantine_usec
                                                               : config->quarantine_usec;

        row->crashes = row->attempts = crash->crashes;
        row->quarantined_until = left > 0 ? now + left : 0;
        row->next_realtime = now + (left > 0 ? left : retry_delay(controller, config, crash->crashes));
        row->next_reason = RUN_RETRY;
}

/* Which children it has is not known here, nor over which content it crashed. */
static int note_former_crash(struct controller *controller, const struct config_watch *config,
                             const struct former_crash *crash, struct ledger_row *row)
{
        static const char error[] = "the operator crashed over it while another replica led";

        row->crashed_realtime = ledger_time(controller);
        if (crash->crashes > row->crashes) {
                if (!ledger_row_is_hearsay(row))
                        row->failed_fingerprint = 0;
                wait_after_crashes(controller, config, crash, row);
                if (text_replace(&row->last_error, error) < 0 || text_replace(&row->first_error, error) < 0)
                        return -ENOMEM;
        }
        return text_replace(&row->kinds, "?");
}

int last_life_take_crash(struct controller *controller, const struct config_watch *config,
                         const struct former_crash *crash)
{
        struct ledger_row row = {0};
        int r = ledger_get(controller->ledger, config->name, crash->key, crash->uid, &row);

        if (r == -ENOENT) {
                r = ledger_row_new(crash->key, crash->uid, &row);
                row.failed_fingerprint = FINGERPRINT_HEARSAY;
        }
        if (r >= 0)
                r = note_former_crash(controller, config, crash, &row);
        if (r >= 0)
                r = ledger_put(controller->ledger, config->name, &row);
        ledger_row_done(&row);
        return r;
}

/* A crash that is counted here is hearsay, too. */
static int judge_hearsay(struct controller *controller, const struct noted_run *note, bool alone)
{
        struct ledger_row row = {0};
        int r = last_life_judge(controller, note, true, alone);

        if (r >= 0)
                r = ledger_get(controller->ledger, note->watch, note->key, note->uid, &row);
        if (r >= 0) {
                row.failed_fingerprint = FINGERPRINT_HEARSAY;
                r = ledger_put(controller->ledger, note->watch, &row);
        }
        ledger_row_done(&row);
        return r;
}

int last_life_take_run(struct controller *controller, const struct config_watch *config,
                       const struct noted_run *note, bool alone)
{
        const struct former_crash in_flight = {.key = note->key, .uid = note->uid};
        const struct ledger_row *row;
        int r = ledger_look(controller->ledger, note->watch, note->key, note->uid, &row);

        if (r >= 0 && !ledger_row_is_hearsay(row))
                return last_life_judge(controller, note, true, alone);
        if (r == -ENOENT)
                r = last_life_take_crash(controller, config, &in_flight);
        return r < 0 ? r : judge_hearsay(controller, note, alone);
}

/*
 * A ledger that was lost (set aside, or taken away) while the stores were not. It knew what had been handed
 * to handlers; until everything that exists has been handed out again, an object that it does not know
 * counts as handed out: its deletion is reported, once too often rather than never. That outlives restarts,
 * in a row of the scopes under a name that no watch has.
 */
#define LOST_ROW "" /* no watch has this name */

int ledger_lost_load(struct controller *controller, bool lost)
{
        _cleanup_free_ char *mark = NULL, *cluster = NULL;
        int r;

        if (lost) {
                controller->ledger_lost = true;
                r = ledger_scope_set(controller->ledger, LOST_ROW, "lost", "");
                return r < 0 ? r : ledger_commit(controller->ledger); /* the next start sees a ledger */
        }
        r = ledger_scope_get(controller->ledger, LOST_ROW, &mark, &cluster);
        if (r >= 0)
                controller->ledger_lost = mark[0] != '\0';
        return r;
}

void ledger_lost_review(struct controller *controller)
{
        int r;

        if (!controller->ledger_lost || queue_count_all(controller->queue).queued > 0)
                return;
        FOREACH_WATCH(watch, controller)
                if (!watch->synced || !watch->swept || watch->paused_realtime > 0)
                        return;
        r = ledger_scope_set(controller->ledger, LOST_ROW, "", "");
        if (r < 0) {
                ledger_failed(controller, r);
                return;
        }
        controller->ledger_lost = false;
        controller_settle_soon(controller);
}
