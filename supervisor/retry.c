/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl retry --all-failed`: what has failed is due now, whatever it waits for. And once the server
 * is well again, what waits for that: at a pace, since the server has just come up. Each object once for a
 * backoff of its own, so that a server that is well for others only makes it run no more than twice as
 * often. There may be as
 * many as objects: a page is taken each time that the loop has nothing else to do, and rows are merely
 * marked as due, so that the queue takes them as it takes what is due by itself. What is in quarantine stays
 * there.
 *
 * Likewise when a handler has changed (handler.c): what failed under the former one, or all objects, at the
 * same pace; and what is in quarantine far apart, behind all others.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "supervisor/supervisor.h"

#define PAGE                 50
#define PACE_USEC            (USEC_PER_SEC / HANDLER_RUNS_A_SECOND) /* between two that have waited */
/* Between two that may bring the operator down once more. */
#define QUARANTINE_PACE_USEC (10 * USEC_PER_SEC)

static char requested[] = "requested", recovered[] = "recovered", changed[] = "handlerChanged";

/* false: it does not wait for the server or its program, or is due sooner. */
static bool recover_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        uint64_t delay = watch->retried * PACE_USEC, now = ledger_now(watch->child->supervisor);

        bool waits = strcmp(row->next_reason, "unavailable") == 0 ||
                     strcmp(row->next_reason, not_started_reason) == 0;

        if (!waits || row->next_realtime <= now + delay)
                return false;
        watch->retried++;
        row->next_realtime = now + delay;
        row->next_reason = recovered;
        item->reason = "recovered";
        item->not_before = delay > 0 ? clock_boottime_usec() + delay : 0;
        return true;
}

/* false: it does not need that. */
static bool request_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        if (row->quarantined_until > 0)
                return false;
        row->permanent = false;
        row->next_realtime = ledger_now(watch->child->supervisor);
        row->next_reason = requested;
        item->reason = "requested";
        return true;
}

static bool waits_for_server(const struct ledger_row *row)
{
        return strcmp(row->next_reason, "unavailable") == 0 || strcmp(row->next_reason, "held") == 0;
}

/* Whether the change of its handler concerns it, in this pass. */
static bool is_of_pass(const struct handler_change *change, const struct ledger_row *row)
{
        if ((row->quarantined_until > 0) != (change->pass == HANDLER_PASS_QUARANTINED))
                return false;
        if (row->attempts > 0 || row->permanent)
                return row->permanent || !waits_for_server(row);
        /* What has not run yet runs anyway. */
        return change->all && row->handled_realtime > 0 && !row->deleting && !row->unselected;
}

static bool change_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        struct handler_change *change = &watch->handler;
        uint64_t delay = change->due * PACE_USEC + change->quarantined * QUARANTINE_PACE_USEC;
        uint64_t now = ledger_now(watch->child->supervisor);

        if (!is_of_pass(change, row))
                return false;
        if (change->pass == HANDLER_PASS_QUARANTINED)
                change->quarantined++;
        else
                change->due++;
        change->made_due++;
        /* What comes sooner by itself comes then. A resync may come later than its row says (due.c). */
        if (row->next_realtime == 0 || row->next_realtime > now + delay ||
            strcmp(row->next_reason, "resync") == 0) {
                row->next_realtime = now + delay;
                row->next_reason = changed;
        }
        if (change->pass != HANDLER_PASS_QUARANTINED)
                handler_forgive(row);
        item->reason = handler_reason;
        item->priority = QUEUE_LOW;
        item->not_before = delay > 0 ? clock_boottime_usec() + delay : 0;
        return true;
}

/* What is asked for by hand goes first; what a change of the handler makes due goes on behind it. */
static enum retry_scope scope_of(const struct watch *watch)
{
        if (watch->retrying != RETRY_NOTHING)
                return watch->retrying;
        return watch->handler.pass != HANDLER_PASS_NONE ? RETRY_CHANGED : RETRY_NOTHING;
}

static int take_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        static bool (*const make_due[])(struct watch *, struct ledger_row *, struct queue_item *) = {
                [RETRY_REFUSED] = recover_row,
                [RETRY_FAILED] = request_row,
                [RETRY_CHANGED] = change_row,
        };
        struct watch *watch = userdata;
        struct supervisor *supervisor = watch->child->supervisor;
        enum retry_scope scope = scope_of(watch);
        unsigned number = watch_number(watch);
        struct ledger_row changed_row = *row;
        struct queue_item item = {.key = row->key, .uid = row->uid, .kind = ledger_row_kind(row)};
        bool is_changed = scope == RETRY_CHANGED;
        int r = 0;

        if (text_replace(is_changed ? &watch->handler.key : &watch->retry_key, row->key) < 0 ||
            text_replace(is_changed ? &watch->handler.uid : &watch->retry_uid, row->uid) < 0)
                return -ENOMEM;
        /* What settles is not waiting; what runs just now may have begun before the cause was mended. */
        if (row->settling[0] || !make_due[scope] || !make_due[scope](watch, &changed_row, &item))
                return 0;
        item.suspect = ledger_row_is_suspect(row);
        /* A short backoff waits in the queue: there it ends at once. What is under way runs once more. */
        if (queue_has(supervisor->queue, number, row->key, row->uid, item.kind))
                r = queue_push(supervisor->queue, number, &item, clock_boottime_usec());
        return r < 0 ? r : ledger_put(supervisor->ledger, watch_name, &changed_row);
}

static struct watch *next_watch(struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, supervisor)
                if (!watch->leaving && scope_of(watch) != RETRY_NOTHING)
                        return watch;
        return NULL;
}

static int visit_page(struct watch *watch, enum retry_scope scope)
{
        struct ledger *ledger = watch->child->supervisor->ledger;
        bool is_changed = scope == RETRY_CHANGED;
        _cleanup_free_ char *key = strdup(is_changed ? watch->handler.key : watch->retry_key);
        _cleanup_free_ char *uid = strdup(is_changed ? watch->handler.uid : watch->retry_uid);
        struct ledger_place behind = {.watch = watch->config->name, .key = key, .uid = uid};

        if (!key || !uid)
                return -ENOMEM;
        if (is_changed && watch->handler.pass == HANDLER_PASS_QUARANTINED)
                return ledger_list_quarantined(ledger, &behind, PAGE, take_row, watch);
        if (is_changed && watch->handler.all)
                return ledger_visit(ledger, watch->config->name, key, uid, PAGE, take_row, watch);
        return ledger_list_failing(ledger, &behind, PAGE, take_row, watch);
}

/* How far a change of the handler has come goes into the ledger with the rows. */
static int take_page(struct watch *watch)
{
        enum retry_scope scope = scope_of(watch);
        int r = visit_page(watch, scope);
        bool is_last = r >= 0 && r < PAGE;

        if (scope == RETRY_CHANGED && is_last)
                r = handler_begin_pass(watch, watch->handler.pass == HANDLER_PASS_OTHERS
                                                      ? HANDLER_PASS_QUARANTINED
                                                      : HANDLER_PASS_NONE);
        else if (is_last)
                watch->retrying = RETRY_NOTHING;
        return r >= 0 && scope == RETRY_CHANGED ? handler_note(watch) : r;
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
                  "%llu %s of watch %s %s again now, as it was asked for by hand",
                  (unsigned long long)failing.failing, counted(failing.failing, "object", "objects"),
                  watch->config->name,
                  counted(failing.failing, "that has failed runs", "that have failed run"));
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
