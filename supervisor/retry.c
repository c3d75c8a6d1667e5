/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl retry --all-failed`: what has failed is due now, whatever it waits for. And once the server
 * is well again, what waits for that: at a pace, since the server has just come up. Each object once for a
 * backoff of its own, so that a server that is well for others only makes it run no more than twice as
 * often. There may be as
 * many as objects: a page is taken each time that the loop has nothing else to do, and rows are merely
 * marked as due, so that the queue takes them as it takes what is due by itself. What is in quarantine stays
 * there.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "supervisor/supervisor.h"

#define PAGE      50
#define PACE_USEC (5 * USEC_PER_MSEC) /* between two that have waited for the server */

static char requested[] = "requested", recovered[] = "recovered";

/* false: it does not wait for the server, or is due sooner. */
static bool recover_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        uint64_t delay = watch->retried * PACE_USEC, now = ledger_now(watch->child->supervisor);

        if (strcmp(row->next_reason, "unavailable") != 0 || row->next_realtime <= now + delay)
                return false;
        watch->retried++;
        row->next_realtime = now + delay;
        row->next_reason = recovered;
        item->reason = "recovered";
        item->not_before = delay > 0 ? clock_boottime_usec() + delay : 0;
        return true;
}

static int take_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        struct watch *watch = userdata;
        struct supervisor *supervisor = watch->child->supervisor;
        unsigned number = (unsigned)(watch - supervisor->watch);
        struct ledger_row changed = *row;
        struct queue_item item = {
                .key = row->key, .uid = row->uid, .kind = ledger_row_kind(row), .reason = "requested"};
        int r = 0;

        if (text_replace(&watch->retry_key, row->key) < 0 || text_replace(&watch->retry_uid, row->uid) < 0)
                return -ENOMEM;
        /* What settles is not waiting; what runs just now may have begun before the cause was mended. */
        if (row->quarantined_until > 0 || row->settling[0])
                return 0;
        if (watch->retrying == RETRY_REFUSED) {
                if (!recover_row(watch, &changed, &item))
                        return 0;
        } else {
                changed.permanent = false;
                changed.next_realtime = ledger_now(supervisor);
                changed.next_reason = requested;
        }
        item.suspect = ledger_row_is_suspect(row);
        /* A short backoff waits in the queue: there it ends at once. What is under way runs once more. */
        if (queue_has(supervisor->queue, number, row->key, row->uid, item.kind))
                r = queue_push(supervisor->queue, number, &item, clock_boottime_usec());
        return r < 0 ? r : ledger_put(supervisor->ledger, watch_name, &changed);
}

static struct watch *next_watch(struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, supervisor)
                if (watch->retrying)
                        return watch;
        return NULL;
}

static int take_page(struct watch *watch)
{
        _cleanup_free_ char *key = strdup(watch->retry_key), *uid = strdup(watch->retry_uid);
        struct ledger_place behind = {.watch = watch->config->name, .key = key, .uid = uid};
        int r = key && uid ? ledger_list_failing(watch->child->supervisor->ledger, &behind, PAGE, take_row,
                                                 watch)
                           : -ENOMEM;

        if (r >= 0 && r < PAGE)
                watch->retrying = RETRY_NOTHING;
        return r;
}

/* As much as there is time for. What it has changed is written at the end of the turn, which asks for the
 * next one (retry_continue). */
static int on_idle(sd_event_source *source _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;
        struct watch *watch = next_watch(supervisor);
        int r;

        turn_is(supervisor, "what has failed is made due");
        if (!watch || supervisor->phase > PHASE_RUNNING || supervisor->uninstalling)
                return 0;
        r = ledger_try_hold(supervisor->ledger);
        if (r == -EBUSY && (r = turn_settle_later(supervisor)) >= 0)
                return 0;
        while (r >= 0 && watch && !turn_is_spent(supervisor)) {
                r = take_page(watch);
                watch = next_watch(supervisor);
        }
        if (r < 0) {
                ledger_failed(supervisor, r);
                return 0;
        }
        due_arm(supervisor);
        turn_settle_soon(supervisor);
        return 0;
}

int retry_continue(struct supervisor *supervisor)
{
        if (!next_watch(supervisor))
                return 0;
        return supervisor_when_idle(supervisor, &supervisor->retry_source, on_idle);
}

static int retry_watch(struct watch *watch, uint64_t *count)
{
        struct ledger_failing failing = {0};
        int r = ledger_count_failing(watch->child->supervisor->ledger, watch->config->name, &failing);

        if (r < 0 || failing.failing == 0 || watch->paused_realtime > 0)
                return r;
        if (text_replace(&watch->retry_key, "") < 0 || text_replace(&watch->retry_uid, "") < 0)
                return -ENOMEM;
        *count += failing.failing;
        watch->retrying = RETRY_FAILED;
        log_write(LOG_NOTICE, NULL, LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                  "%llu objects of watch %s that have failed run again now, as it was asked for by hand",
                  (unsigned long long)failing.failing, watch->config->name);
        return retry_continue(watch->child->supervisor);
}

int retry_all(struct supervisor *supervisor, struct watch *watch, uint64_t *ret_count)
{
        uint64_t count = 0;
        int r = 0;

        if (watch)
                r = retry_watch(watch, &count);
        FOREACH_WATCH(each, supervisor)
                if (!watch && !each->leaving && r >= 0)
                        r = retry_watch(each, &count);
        if (r >= 0)
                *ret_count = count;
        return r;
}

void recover(struct watch *watch)
{
        if (!watch->waits || watch->retrying != RETRY_NOTHING)
                return;
        if (text_replace(&watch->retry_key, "") < 0 || text_replace(&watch->retry_uid, "") < 0)
                return; /* it waits for its backoff */
        watch->waits = false;
        watch->retried = 0;
        watch->retrying = RETRY_REFUSED;
        if (retry_continue(watch->child->supervisor) < 0)
                watch->retrying = RETRY_NOTHING;
}
