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
#include "ipc/message-id.h"
#include "supervisor/supervisor.h"

uint64_t blame_row(const struct supervisor *supervisor, const struct config_watch *config,
                   struct ledger_row *row)
{
        uint64_t now = ledger_now(supervisor), delay;

        row->crashes++;
        row->crashed_realtime = now;
        if (row->crashes >= config->quarantine_after) {
                delay = config->quarantine_usec;
                row->quarantined_until = now + delay;
        } else {
                delay = retry_delay(config, row->crashes);
        }
        return delay;
}

void blame_tell(const struct config_watch *config, const struct ledger_row *row)
{
        char crashes[24], duration[64];

        if (row->quarantined_until == 0)
                return;
        snprintf(crashes, sizeof(crashes), "%" PRIu64, row->crashes);
        log_write(LOG_ERR, MESSAGE_ID_QUARANTINED,
                  LOG_FIELDS({"RECONCILED_WATCH", config->name}, {"RECONCILED_KEY", row->key},
                             {"RECONCILED_UID", row->uid}, {"RECONCILED_CRASHES", crashes}),
                  "%s of watch %s is in quarantine: the operator has crashed %s times over it without a "
                  "success "
                  "in between; it is tried again when it changes, after %s, or after `reconciledctl release "
                  "%s "
                  "%s`; all others are served",
                  row->key, config->name, crashes,
                  duration_format(config->quarantine_usec, duration, sizeof(duration)), config->name,
                  row->key);
}

int blame_object(struct supervisor *supervisor, const struct config_watch *config, const char *key,
                 const char *uid, uint64_t fingerprint, const char *cause)
{
        struct ledger_row row = {0};
        int r = ledger_get(supervisor->ledger, config->name, key, uid, &row);

        if (r < 0)
                return r;
        row.attempts++;
        /* A run that no change asked for (resync, requeueAfter) knows of none: what was handled last is what
         * it died over, and is no change to run for after the restart. */
        if (fingerprint)
                row.failed_fingerprint = fingerprint;
        else if (!row.failed_fingerprint)
                row.failed_fingerprint = row.fingerprint;
        row.next_realtime = ledger_now(supervisor) + blame_row(supervisor, config, &row);
        r = text_replace(&row.next_reason, "retry");
        if (r >= 0)
                r = text_replace(&row.last_error, cause);
        if (r >= 0 && !row.first_error[0])
                r = text_replace(&row.first_error, cause);
        if (r >= 0)
                r = ledger_put(supervisor->ledger, config->name, &row);
        if (r >= 0)
                r = ledger_commit(supervisor->ledger);
        if (r >= 0)
                blame_tell(config, &row);
        ledger_row_done(&row);
        return r;
}

void blame_worker(struct supervisor *supervisor, const struct worker *worker, const char *cause)
{
        const struct queue_run *run;
        int r;

        if (worker->given_count == 0 || worker->given[0].to_send)
                return;
        run = &worker->given[0].run;
        r = handler_used_now(&supervisor->watch[run->watch]);
        if (r >= 0)
                r = blame_object(supervisor, supervisor->watch[run->watch].config, run->key, run->uid,
                                 run->fingerprint, cause);
        if (r < 0 && r != -ENOENT)
                log_error("%s could not be blamed in the ledger: %s", run->key, strerror(-r));
}

/* ---- by hand */

struct search {
        struct supervisor *supervisor;
        struct watch *watch;
        const char *key;
        bool release;
        size_t found;
};

static int run_now(const struct search *search, const struct ledger_row *row)
{
        struct queue_item item = {
                .key = row->key,
                .uid = row->uid,
                .kind = ledger_row_kind(row),
                .suspect = ledger_row_is_suspect(row),
                .urgent = !search->release,
                .reason = "requested",
        };
        unsigned number = (unsigned)(search->watch - search->supervisor->watch);
        int r = queue_push(search->supervisor->queue, number, &item, clock_boottime_usec());

        return r < 0 ? r : 0;
}

static int take_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        struct search *search = userdata;
        struct ledger_row changed = *row;
        int r;

        if (strcmp(row->key, search->key) != 0 || (search->release && row->quarantined_until == 0))
                return 0;
        search->found++;
        changed.next_realtime = ledger_now(search->supervisor);
        changed.permanent = false;
        if (search->release)
                changed.crashes = changed.crashed_realtime = changed.quarantined_until = 0;
        r = run_now(search, &changed);
        return r < 0 ? r : ledger_put(search->supervisor->ledger, watch_name, &changed);
}

#define UIDS_MAX 100 /* of one key: its rows stand together */

int blame_release(struct supervisor *supervisor, struct watch *watch, const char *key, bool release)
{
        struct search search = {supervisor, watch, key, release, 0};
        int r = ledger_visit(supervisor->ledger, watch->config->name, key, "", UIDS_MAX, take_row, &search);

        if (r < 0)
                return r;
        if (search.found > 0)
                log_write(LOG_NOTICE, release ? MESSAGE_ID_RELEASED : NULL,
                          LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key}),
                          "%s of watch %s %s", key, watch->config->name,
                          release ? "was released from quarantine by hand, and runs as soon as nothing else "
                                    "does"
                                  : "runs now, as it was asked for by hand");
        turn_settle_soon(supervisor);
        return search.found > 0 ? 0 : -ENOENT;
}
