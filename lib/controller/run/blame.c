/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is to blame when the operator dies: the object that the process which died first was busy with, and
 * nobody else. It waits with a growing backoff, runs alone and last, and after some crashes without a
 * success it is in quarantine, across restarts, however slowly they come. What it means that the supervisor
 * itself is killed: under-way.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "controller/due/next-attempt.h"
#include "controller/effects.h"
#include "controller/run/blame.h"
#include "ipc/message-id.h"

uint64_t blame_row(struct controller *controller, const struct config_watch *config, struct ledger_row *row)
{
        uint64_t now = ledger_time(controller), delay;

        row->crashes++;
        row->crashed_realtime = now;
        if (row->crashes >= config->quarantine_after) {
                delay = config->quarantine_usec;
                row->quarantined_until = now + delay;
        } else {
                delay = retry_delay(controller, config, row->crashes);
        }
        return delay;
}

void blame_tell(struct controller *controller, const struct config_watch *config,
                const struct ledger_row *row)
{
        char crashes[24], duration[64];

        if (row->quarantined_until == 0)
                return;
        snprintf(crashes, sizeof(crashes), "%" PRIu64, row->crashes);
        controller_log(
                controller, LOG_ERR, MESSAGE_ID_QUARANTINED,
                LOG_FIELDS({"RECONCILED_WATCH", config->name}, {"RECONCILED_KEY", row->key},
                           {"RECONCILED_UID", row->uid}, {"RECONCILED_CRASHES", crashes}),
                "%s of watch %s is in quarantine: the operator crashed %s times over it without a success "
                "in between; it runs again when it changes, after %s, or after `reconciledctl release %s "
                "%s`; all other objects are handled as usual",
                row->key, config->name, crashes,
                duration_format(config->quarantine_usec, duration, sizeof(duration)), config->name,
                row->key);
}

int blame_object(struct controller *controller, const struct config_watch *config, const char *key,
                 const char *uid, uint64_t fingerprint, const char *cause)
{
        struct ledger_row row = {0};
        int r = ledger_get(controller->ledger, config->name, key, uid, &row);

        if (r < 0)
                return r;
        row.attempts++;
        /* A run that no change asked for (resync, requeueAfter) knows of none: what was handled last is what
         * it died over, and is no change to run for after the restart. */
        if (fingerprint)
                row.failed_fingerprint = fingerprint;
        else if (!row.failed_fingerprint || ledger_row_is_hearsay(&row))
                row.failed_fingerprint = row.fingerprint;
        row.next_realtime = ledger_time(controller) + blame_row(controller, config, &row);
        row.next_reason = RUN_RETRY;
        r = text_replace(&row.last_error, cause);
        if (r >= 0 && !row.first_error[0])
                r = text_replace(&row.first_error, cause);
        if (r >= 0)
                r = ledger_put(controller->ledger, config->name, &row);
        if (r >= 0)
                r = ledger_commit(controller->ledger);
        if (r >= 0)
                blame_tell(controller, config, &row);
        ledger_row_done(&row);
        return r;
}

static int suspect_object(struct controller *controller, const struct config_watch *config,
                          const struct queue_run *run)
{
        struct ledger_row row = {0};
        int r = ledger_get(controller->ledger, config->name, run->key, run->uid, &row);

        if (r < 0)
                return r;
        row.crashed_realtime = ledger_time(controller);
        r = ledger_put(controller->ledger, config->name, &row);
        ledger_row_done(&row);
        if (r >= 0)
                controller_log(controller, LOG_NOTICE, NULL,
                               LOG_FIELDS({"RECONCILED_WATCH", config->name}, {"RECONCILED_KEY", run->key},
                                          {"RECONCILED_UID", run->uid}),
                               "%s of watch %s was in the worker that died: it runs alone the next time",
                               run->key, config->name);
        return r;
}

void blame_worker(const struct worker *worker, const struct assignment *guilty, const char *cause)
{
        struct controller *controller = worker->controller;

        for (size_t i = 0; i < worker->given_count; i++) {
                const struct queue_run *run = &worker->given[i].run;
                const struct config_watch *config = controller->watch[run->watch].config;
                int r = 0;

                if (guilty == &worker->given[i])
                        r = blame_object(controller, config, run->key, run->uid, run->fingerprint, cause);
                else if (!guilty && !worker->given[i].to_send)
                        r = suspect_object(controller, config, run);
                if (r < 0 && r != -ENOENT)
                        controller_log(controller, LOG_ERR, NULL, NULL,
                                       "a crash over %s could not be recorded in the ledger: %s", run->key,
                                       strerror(-r));
        }
}
