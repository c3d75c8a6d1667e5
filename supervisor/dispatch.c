/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From "key changed" to RUN. A change is held against the ledger: what was handled is at rest, what failed
 * waits for its time, the rest is queued. RUN (assign.c) leaves only after the ledger knows that the object
 * was handed out, HANDLED only after it knows that the deletion is done.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "supervisor/handover.h"
#include "supervisor/supervisor.h"

#define CATCH_UP_USEC (5 * USEC_PER_SEC) /* what a run may wait for the store to show our own write */

void ledger_failed(struct supervisor *supervisor, int status)
{
        if (status == -EBADMSG)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "the ledger in %s is damaged; the next start sets it aside",
                                 supervisor->options->state_directory);
        else
                supervisor_fatal(supervisor, EXIT_CODE_IO, NULL, NULL,
                                 "the ledger in %s cannot be written: %s",
                                 supervisor->options->state_directory, strerror(-status));
}

/* They are numbers, by contract since Kubernetes 1.35; what is none has no order. */
uint64_t resource_version_number(const char *version)
{
        size_t digits = strspn(version, "0123456789");

        return digits > 0 && digits < 19 && version[digits] == '\0' ? strtoull(version, NULL, 10) : 0;
}

/* ---- changes */

int dispatch_push(struct watch *watch, const struct record_change *change, enum change_kind kind,
                  const struct ledger_row *row, const char *reason, uint64_t delay_usec)
{
        uint64_t now = clock_boottime_usec();
        struct queue_item item = {
                .key = change->key,
                .uid = change->uid,
                .kind = kind,
                .priority = change->first && kind == CHANGE_UPDATED ? QUEUE_LOW : QUEUE_NORMAL,
                .fingerprint = change->fingerprint,
                .version = resource_version_number(change->resource_version),
                .sequence = change->sequence,
                .suspect = row && ledger_row_is_suspect(row),
                .nudge = kind == CHANGE_UPDATED && change->fingerprint == 0,
                .on_record = reason == child_reason,
                .not_before = delay_usec > 0 ? now + delay_usec : 0,
                .reason = reason,
        };
        int r = queue_push(watch->child->supervisor->queue, watch_number(watch), &item, now);

        watch->metrics.adds += r == QUEUE_ADDED;
        return r < 0 ? r : 0;
}

/* A failure that has not had its backoff yet. Long ones stay in the ledger, and come back from there. */
static int push_backing_off(struct watch *watch, const struct record_change *change, enum change_kind kind,
                            const struct ledger_row *row)
{
        uint64_t now = ledger_now(watch->child->supervisor);
        uint64_t delay = row->next_realtime > now ? row->next_realtime - now : 0;

        return delay > DELAY_IN_QUEUE_USEC ? 0 : dispatch_push(watch, change, kind, row, "retry", delay);
}

bool was_written_lately(const struct supervisor *supervisor, const struct ledger_row *row)
{
        uint64_t now = ledger_now(supervisor);

        return row->written_realtime <= now && now - row->written_realtime < CATCH_UP_USEC;
}

/* One of several that a run has made, told after the run's end. For a moment only: versions of a database
 * that was restored begin lower again. Where it is not known what has been handled, and nothing else says
 * that it is to be found out, any news will do. */
static bool is_own_write(const struct supervisor *supervisor, const struct record_change *change,
                         const struct ledger_row *row)
{
        uint64_t version = resource_version_number(change->resource_version);
        bool is_cared_for = row->fingerprint != 0 || row->attempts > 0 || row->settling[0];

        return is_cared_for && version != 0 && version <= row->known_version &&
               was_written_lately(supervisor, row);
}

bool run_is_without_handler(const char *reason)
{
        return reason == release_reason || reason == uninstall_reason || finalizer_is_reason(reason);
}

/* Its row says what was handled before. So no news is too old for it: the queue holds that against what the
 * run has read, when it is over. */
static bool is_being_handled(const struct watch *watch, const struct record_change *change)
{
        const char *reason = queue_running(watch->child->supervisor->queue, watch_number(watch), change->key,
                                           change->uid);

        return reason && !run_is_without_handler(reason);
}

/* `onStart: all`: once a start of its watch; a relist shows the same objects again. */
static bool is_due_at_start(const struct watch *watch, const struct record_change *change,
                            const struct ledger_row *row)
{
        return watch->config->on_start == ON_START_ALL && change->first &&
               row->handled_realtime < watch->started;
}

/* false: the ledger has failed, and that is said. */
static bool keep_row(struct watch *watch, const struct ledger_row *row)
{
        struct supervisor *supervisor = watch->child->supervisor;
        int r = ledger_put(supervisor->ledger, watch->config->name, row);

        if (r < 0)
                ledger_failed(supervisor, r);
        return r >= 0;
}

/* Whether its handler was told meanwhile is not known: it runs again. */
static int change_selected_again(struct watch *watch, const struct record_change *change,
                                 const struct ledger_row *row)
{
        struct ledger_row again = *row;

        again.unselected = false;
        again.fingerprint = again.failed_fingerprint = again.next_realtime = 0;
        again.attempts = again.refused = 0;
        if (!keep_row(watch, &again))
                return 0;
        return dispatch_push(watch, change, CHANGE_UPDATED, &again, "selected", 0);
}

/* A database that went back in time: the object is there again, under its UID. Whether its handler was told
 * of its end meanwhile is not known, and what it was handled at is of another time: it runs, whatever it is
 * now. */
static int change_restored(struct watch *watch, const struct record_change *change,
                           const struct ledger_row *row)
{
        struct ledger_row back = {
                .key = row->key,
                .uid = row->uid,
                .next_reason = (char[]){""},
                .last_error = (char[]){""},
                .first_error = (char[]){""},
                .settling = (char[]){""},
                .written_version = (char[]){""},
                .kinds = row->kinds,
                .handled_realtime = row->handled_realtime,
                .crashes = row->crashes,
                .crashed_realtime = row->crashed_realtime,
        };

        queue_withdraw_deletion(watch->child->supervisor->queue, watch_number(watch), change->key,
                                change->uid, clock_boottime_usec());
        assign_cancel(watch, change->key, change->uid, "its object is there again");
        log_write(
                LOG_NOTICE, NULL,
                LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", change->key},
                           {"RECONCILED_UID", change->uid}),
                "%s of watch %s is there again: its deletion, which was not handled yet, is withdrawn, and "
                "it is reconciled",
                change->key, watch->config->name);
        if (!keep_row(watch, &back))
                return 0;
        return dispatch_push(watch, change, CHANGE_UPDATED, &back, "restored", 0);
}

/* Unless it cannot be told whether this is what was handled last (unsure.c). */
static int stay_at_rest(struct watch *watch, const struct record_change *change,
                        const struct ledger_row *row)
{
        struct ledger_row unknown;
        int r = watch->unsure ? unsure_is_same(watch, change, row) : 1;

        if (r < 0)
                ledger_failed(watch->child->supervisor, r);
        if (r != 0)
                return 0;
        unknown = *row;
        ledger_row_unknown(&unknown);
        return keep_row(watch, &unknown)
                       ? dispatch_push(watch, change, CHANGE_UPDATED, &unknown, "changed", 0)
                       : 0;
}

/* The operator died in a run of this object that was not for a change (the object was settling, or was due).
 * The object's present content is no reason to run before its time. */
static int adopt_crash(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        struct ledger_row adopted = *row;

        adopted.failed_fingerprint = change->fingerprint;
        return keep_row(watch, &adopted) ? push_backing_off(watch, change, CHANGE_UPDATED, &adopted) : 0;
}

/* Told without its version, it is of a database that went back in time: versions of our own writes are of
 * the time that is lost, and after a restart, before this runs, they would pass it for one of these writes.
 */
static bool forget_own_writes(struct watch *watch, const struct record_change *change,
                              const struct ledger_row *row)
{
        struct ledger_row back = *row;

        back.known_version = 0;
        return change->resource_version[0] || row->known_version == 0 || keep_row(watch, &back);
}

static int change_known(struct watch *watch, const struct record_change *change,
                        const struct ledger_row *row)
{
        bool failed_before = row->failed_fingerprint == change->fingerprint;
        bool is_new = row->attempts == 0 && row->handled_realtime == 0;

        if (failed_before && row->permanent)
                return stay_at_rest(watch, change, row);
        if (failed_before && row->attempts > 0)
                return push_backing_off(watch, change, CHANGE_UPDATED, row);
        if (change->first && row->crashes > 0 && row->attempts > 0 && row->failed_fingerprint == 0)
                return adopt_crash(watch, change, row);
        if (row->fingerprint == change->fingerprint && row->attempts == 0 && !row->permanent)
                return is_due_at_start(watch, change, row)
                               ? dispatch_push(watch, change, CHANGE_UPDATED, row, "start", 0)
                               : stay_at_rest(watch, change, row);
        if (is_own_write(watch->child->supervisor, change, row) || !forget_own_writes(watch, change, row))
                return 0;
        return dispatch_push(watch, change, CHANGE_UPDATED, row, is_new ? "added" : "changed", 0);
}

static int change_updated(struct watch *watch, const struct record_change *change,
                          const struct ledger_row *row)
{
        if (!row)
                return dispatch_push(watch, change, CHANGE_UPDATED, NULL, "added",
                                     owed_delay(watch, change->key));
        if (row->deleting)
                return change_restored(watch, change, row);
        if (row->unselected)
                return change_selected_again(watch, change, row);
        if (is_being_handled(watch, change))
                return dispatch_push(watch, change, CHANGE_UPDATED, row, "changed", 0);
        return change_known(watch, change, row);
}

static int change_deleted(struct watch *watch, const struct record_change *change, struct ledger_row *row)
{
        struct ledger_row unknown = {.key = (char *)(uintptr_t)change->key,
                                     .uid = (char *)(uintptr_t)change->uid};

        /* Never handed to a handler, or finalized: nothing is owed. What is finalized at this moment is over
         * with its run (outcome.c); whether somebody has robbed it of our finalizer is seen by the worker.
         */
        refusal_forget(watch, change->key, change->uid);
        if (!row && (watch->config->finalizer || !watch->child->supervisor->ledger_lost))
                return handled_add(watch, change->key, change->uid, change->sequence);
        if (!row)
                row = &unknown;
        if (row->deleting && row->attempts > 0)
                return push_backing_off(watch, change, CHANGE_DELETED, row);
        row->deleting = true;
        row->attempts = row->refused = 0;
        row->next_realtime = 0;
        if (!keep_row(watch, row))
                return 0;
        return dispatch_push(watch, change, CHANGE_DELETED, row, "deleted", 0);
}

/* The row stays until it is handled, whatever happens to us. */
static int tell_unselected(struct watch *watch, const struct record_change *change, struct ledger_row *row)
{
        if (row->unselected && row->attempts > 0)
                return push_backing_off(watch, change, CHANGE_UNSELECTED, row);
        row->unselected = true;
        row->permanent = false;
        row->attempts = row->refused = 0;
        row->next_realtime = 0;
        if (!keep_row(watch, row))
                return 0;
        return dispatch_push(watch, change, CHANGE_UNSELECTED, row, "unselected", 0);
}

static int change_unselected(struct watch *watch, const struct record_change *change, struct ledger_row *row)
{
        struct supervisor *supervisor = watch->child->supervisor;
        bool told;
        int r;

        queue_forget(supervisor->queue, watch_number(watch), change->key, change->uid,
                     clock_boottime_usec());
        refusal_forget(watch, change->key, change->uid);
        if (!row)
                return 0;
        /* Our finalizer must not stay on what we have nothing to do with, and another watch of the kind may
         * take the children over. */
        told = !change->first &&
               (watch->config->unselected || watch->config->finalizer || watch->config->shared);
        log_write(LOG_INFO, NULL,
                  LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", change->key},
                             {"RECONCILED_UID", change->uid}),
                  "%s is no longer selected by watch %s; it exists and is forgotten, %s", change->key,
                  watch->config->name, told ? "and that is told" : "nothing runs for it");
        if (told)
                return tell_unselected(watch, change, row);
        r = handover_tell(watch, row, "");
        if (r >= 0)
                r = ledger_remove(supervisor->ledger, watch->config->name, change->key, change->uid);
        if (r < 0)
                ledger_failed(supervisor, r);
        return 0;
}

static int take_update(struct watch *watch, const struct record_change *change)
{
        struct supervisor *supervisor = watch->child->supervisor;
        const struct ledger_row *row = NULL;
        int r = ledger_look(supervisor->ledger, watch->config->name, change->key, change->uid, &row);

        if (r < 0 && r != -ENOENT) {
                ledger_failed(supervisor, r);
                return 0;
        }
        r = change_updated(watch, change, row);
        return r < 0 ? r : finalizer_review(watch, change);
}

static int take_end(struct watch *watch, const struct record_change *change)
{
        struct supervisor *supervisor = watch->child->supervisor;
        struct ledger_row row = {0};
        int r = ledger_get(supervisor->ledger, watch->config->name, change->key, change->uid, &row);
        bool known = r >= 0;

        if (r < 0 && r != -ENOENT) {
                ledger_failed(supervisor, r);
                return 0;
        }
        r = change->kind == CHANGE_DELETED ? change_deleted(watch, change, known ? &row : NULL)
                                           : change_unselected(watch, change, known ? &row : NULL);
        ledger_row_done(&row);
        return r;
}

static int take_change(struct watch *watch, const struct record_change *change)
{
        switch (change->kind) {
        case CHANGE_UPDATED:
                return take_update(watch, change);
        case CHANGE_DELETED:
        case CHANGE_UNSELECTED:
                return take_end(watch, change);
        default:
                return -EPROTO;
        }
}

#define CROWD 16 /* keys */

int dispatch_keys(struct watch *watch, const struct message_keys *keys)
{
        int r = keys->change_count >= CROWD ? ledger_hold(watch->child->supervisor->ledger) : 0;

        if (r < 0) {
                ledger_failed(watch->child->supervisor, r);
                return 0;
        }
        watch->credit_used += keys->change_count;
        if (strcmp(keys->watch, watch->config->name) != 0 || watch->credit_used > watch->credit_given)
                return -EPROTO;
        watch->restores = keys->restores;
        watch->generation = keys->generation; /* before the first list is complete, too */
        for (size_t i = 0; i < keys->change_count; i++) {
                r = watch->child->supervisor->uninstalling ? uninstall_take(watch, &keys->change[i])
                    : watch->config->owner                 ? dispatch_owned(watch, &keys->change[i])
                                                           : take_change(watch, &keys->change[i]);
                if (r < 0)
                        return r;
        }
        turn_settle_soon(watch->child->supervisor);
        return 0;
}

/* ---- what a watch says of itself */

int dispatch_synced(struct watch *watch, const struct message_synced *synced)
{
        struct supervisor *supervisor = watch->child->supervisor;
        bool first = !watch->synced;

        if (text_replace(&watch->resource_version, synced->resource_version) < 0)
                return -ENOMEM;
        watch->synced = true;
        watch->synced_realtime = clock_realtime_usec();
        watch->objects = synced->objects;
        watch->generation = synced->generation;
        log_write(first ? LOG_INFO : LOG_DEBUG, MESSAGE_ID_WATCH_SYNCED,
                  LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                  "watch %s is in sync: %llu %s at resourceVersion %s", watch->config->name,
                  (unsigned long long)synced->objects, counted(synced->objects, "object", "objects"),
                  synced->resource_version);
        if (room_found(watch) < 0)
                return -ENOMEM;
        if (first) {
                recover(watch);
                owed_start(watch);
                due_arm(supervisor);
                owned_known(watch);
                if (related_recheck(watch) < 0)
                        return -ENOMEM;
        }
        turn_settle_soon(supervisor);
        return 0;
}

int dispatch_checked(struct watch *watch, const struct message_checked *checked)
{
        struct supervisor *supervisor = watch->child->supervisor;
        int r = ledger_scope_set(supervisor->ledger, watch->config->name, checked->scope, checked->cluster);

        watch->checked = true;
        if (r < 0)
                ledger_failed(supervisor, r);
        turn_settle_soon(supervisor);
        return 0;
}

int dispatch_swept(struct watch *watch, const struct message_swept *swept)
{
        unsure_over(watch);
        uninstall_swept(watch, swept);
        turn_settle_soon(watch->child->supervisor);
        return 0;
}

/* ---- the end of a turn */

int handled_add(struct watch *watch, const char *key, const char *uid, uint64_t sequence)
{
        struct handled *grown = reallocarray(watch->handled, watch->handled_count + 1, sizeof(*grown));
        struct handled handled = {strdup(key), strdup(uid), sequence};

        if (grown)
                watch->handled = grown;
        if (!grown || !handled.key || !handled.uid) {
                free(handled.key);
                free(handled.uid);
                return -ENOMEM;
        }
        watch->handled[watch->handled_count++] = handled;
        watch->child->supervisor->commit_due = true;
        return 0;
}

#define HANDLED_PAGE         400
#define COMMIT_DELAY_USEC    (5 * USEC_PER_MSEC)
#define COMMIT_PATIENCE_USEC USEC_PER_MINUTE
#define COMMIT_TOLD_USEC     USEC_PER_SEC

static void send_handled(struct watch *watch)
{
        struct record_handled record[HANDLED_PAGE];
        size_t sent = 0;

        while (sent < watch->handled_count && watch->child->state == CHILD_RUNNING) {
                struct message_handled message = {.watch = watch->config->name, .handled = record};

                while (message.handled_count < HANDLED_PAGE &&
                       sent + message.handled_count < watch->handled_count) {
                        const struct handled *handled = &watch->handled[sent + message.handled_count];

                        record[message.handled_count++] =
                                (struct record_handled){handled->sequence, handled->key, handled->uid};
                }
                (void)channel_send(watch->child->channel, MESSAGE_HANDLED, &message);
                sent += message.handled_count;
        }
        for (size_t i = 0; i < watch->handled_count; i++) {
                free(watch->handled[i].key);
                free(watch->handled[i].uid);
        }
        watch->handled_count = 0;
}

/* Credit is what may still be announced; with what is queued it never exceeds the limit. Delayed keys hold
 * none: a crowd that fails must not starve what is new. Given in portions, not one by one. */
static void give_credit(struct watch *watch)
{
        struct supervisor *supervisor = watch->child->supervisor;
        uint64_t unused = watch->credit_given - watch->credit_used;
        /* While the operator is uninstalled, what else is queued waits for nothing. */
        uint64_t queued =
                supervisor->uninstalling ? 0 : queue_count(supervisor->queue, watch_number(watch)).queued;
        uint64_t taken = unused + queued;
        uint64_t grant = taken < CREDIT_LIMIT ? CREDIT_LIMIT - taken : 0;

        if (watch->child->state != CHILD_RUNNING || grant < CREDIT_LIMIT / 4)
                return;
        watch->credit_given += grant;
        (void)channel_send(watch->child->channel, MESSAGE_CREDIT,
                           &(struct message_credit){.watch = watch->config->name, .amount = grant});
}

static int on_queue_due(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        turn_settle_soon(userdata);
        return 0;
}

static void arm_queue(struct supervisor *supervisor)
{
        sd_event_source **timer = &supervisor->queue_timer;
        /* What is due while nobody is free for it waits for him, not for a timer that would fire for ever.
         */
        uint64_t due = assign_may(supervisor) ? queue_next_time(supervisor->queue) : USEC_INFINITY;
        int r = 0;

        if (!*timer)
                r = sd_event_add_time(supervisor->event, timer, CLOCK_BOOTTIME, due, 1, on_queue_due,
                                      supervisor);
        else if (due != USEC_INFINITY)
                r = sd_event_source_set_time(*timer, due);
        if (r >= 0)
                r = sd_event_source_set_enabled(*timer,
                                                due == USEC_INFINITY ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
        if (r < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL, "no timer for the queue: %s",
                                 strerror(-r));
}

static bool is_working(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->worker_count; i++)
                if (supervisor->worker[i].given_count > 0)
                        return true;
        return false;
}

static int on_commit_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        supervisor->commit_due = true;
        turn_settle_soon(supervisor);
        return 0;
}

int turn_settle_later(struct supervisor *supervisor)
{
        int enabled = SD_EVENT_OFF, r;

        if (!supervisor->commit_timer)
                return sd_event_add_time_relative(supervisor->event, &supervisor->commit_timer,
                                                  CLOCK_MONOTONIC, COMMIT_DELAY_USEC, 1, on_commit_time,
                                                  supervisor);
        r = sd_event_source_get_enabled(supervisor->commit_timer, &enabled);
        if (r < 0 || enabled != SD_EVENT_OFF)
                return r;
        r = sd_event_source_set_time_relative(supervisor->commit_timer, COMMIT_DELAY_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(supervisor->commit_timer, SD_EVENT_ONESHOT);
}

/* At once when something waits for it, or nothing else is to be done; while runs come and go, what they have
 * brought is committed together a moment later. A run whose end is lost with us is run again. */
static int commit(struct supervisor *supervisor)
{
        int r;

        if (!supervisor->commit_due && ledger_dirty(supervisor->ledger) && is_working(supervisor) &&
            !ledger_is_full(supervisor->ledger))
                return turn_settle_later(supervisor);
        r = ledger_try_commit(supervisor->ledger);
        if (r == -EBUSY)
                return r;
        supervisor->commit_due = false;
        supervisor->commit_since = 0;
        if (r >= 0)
                under_way_committed(supervisor);
        return r;
}

/* The ledger's log is being synced, or somebody holds the ledger with a tool: all but runs goes on. */
static int commit_again(struct supervisor *supervisor)
{
        uint64_t now = clock_boottime_usec();

        if (supervisor->commit_since == 0) {
                supervisor->commit_since = now;
                supervisor->commit_told = false;
        }
        if (now - supervisor->commit_since > COMMIT_PATIENCE_USEC)
                return -EBUSY;
        if (!supervisor->commit_told && now - supervisor->commit_since > COMMIT_TOLD_USEC) {
                supervisor->commit_told = true;
                log_warning("the ledger could not be written for a second: another program holds it, or its "
                            "disk is slow. No run begins before it is written; after a minute the operator "
                            "ends");
        }
        return turn_settle_later(supervisor);
}

static int turn_settle(sd_event_source *source _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;
        int r;

        turn_is(supervisor, "the end of a turn");
        if (supervisor->phase == PHASE_TEARDOWN)
                return 0;
        r = assign_runs(supervisor);
        if (r >= 0)
                r = commit(supervisor);
        if (r == -EBUSY && (r = commit_again(supervisor)) >= 0)
                return 0;
        if (r < 0) {
                ledger_failed(supervisor, r);
                return 0;
        }
        ledger_checkpoint_maybe(supervisor->ledger);
        assign_send(supervisor);
        FOREACH_WATCH(watch, supervisor) {
                send_handled(watch);
                give_credit(watch);
                owed_continue(watch);
        }
        reload_continue(supervisor);
        uninstall_review(supervisor);
        related_continue(supervisor);
        if (retry_continue(supervisor) < 0 || handlers_continue(supervisor) < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "no memory for an event source");
        control_continue(supervisor);
        arm_queue(supervisor);
        notify_status(supervisor);
        metrics_push_change(supervisor);
        rest_maybe(supervisor);
        return 0;
}

void turn_settle_soon(struct supervisor *supervisor)
{
        int r = 0;

        if (!supervisor->settle_source) {
                r = sd_event_add_defer(supervisor->event, &supervisor->settle_source, turn_settle,
                                       supervisor);
                if (r >= 0)
                        r = sd_event_source_set_priority(supervisor->settle_source, SETTLE_PRIORITY);
        }
        if (r >= 0)
                r = sd_event_source_set_enabled(supervisor->settle_source, SD_EVENT_ONESHOT);
        if (r < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "no memory for an event source");
}
