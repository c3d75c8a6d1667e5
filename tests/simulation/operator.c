/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's part: it opens the ledger, gives the controller its inputs and carries its effects out,
 * as supervisor/carry-out.c does, into channels. What outlives its death is the ledger's file, the note of what
 * was under way, and the stores.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/change/change.h"
#include "controller/change/epoch.h"
#include "controller/change/owed.h"
#include "controller/change/unsure.h"
#include "controller/controller-watch.h"
#include "controller/controller.h"
#include "controller/due/due.h"
#include "controller/due/retry-kept.h"
#include "controller/due/retry.h"
#include "controller/effects.h"
#include "controller/order/by-hand.h"
#include "controller/run/assign.h"
#include "controller/run/last-life.h"
#include "controller/run/outcome.h"
#include "ipc/message-id.h"
#include "ipc/run-reason.h"
#include "tests/simulation/checkpoint-steps.h"
#include "tests/simulation/simulation.h"

/* ---- effects */

static void settle(void *userdata)
{
        ((struct simulation *)userdata)->settle_wanted = true;
}

static void wake(void *userdata, enum controller_wake what, uint64_t at)
{
        ((struct simulation *)userdata)->wake_at[what] = at;
}

static void idle(void *userdata)
{
        ((struct simulation *)userdata)->idle_wanted = true;
}

static void next_page(void *userdata, struct watch *watch)
{
        ((struct simulation *)userdata)->page_wanted[watch_number(watch)] = true;
}

static void batch(void *userdata _unused_, struct worker *worker _unused_, bool begins _unused_)
{
}

static unsigned watch_of(const struct simulation *sim, const char *name)
{
        unsigned watch = 0;

        while (watch + 1 < WATCHES && strcmp(sim->config_watch[watch].name, name) != 0)
                watch++;
        return watch;
}

static unsigned number_of(const struct simulation *sim, const struct worker *worker)
{
        return (unsigned)(worker - sim->controller.worker);
}

static unsigned note_run(struct simulation *sim, const struct queue_run *run)
{
        unsigned place = 0;

        while (place < PLACES_MAX && sim->note[place].state != NOTE_FREE)
                place++;
        if (place == PLACES_MAX)
                abort();
        sim->note[place] = (struct sim_note){
                .state = NOTE_RUNNING,
                .watch = run->watch,
                .name = sim_name_number(run->key),
                .uid = sim_uid_number(run->uid),
                .fingerprint = run->fingerprint,
                .without_handler = run_is_without_handler(run->reason),
        };
        return place;
}

static void run(void *userdata, struct worker *worker, struct assignment *given,
                const struct message_run *message)
{
        struct simulation *sim = userdata;

        if (sim->controller.watch[given->run.watch].paused_realtime > 0 &&
            message->reason != RUN_REQUESTED && message->reason != RUN_RELEASE)
                model_broken(sim, "a RUN of %s leaves, whose watch is paused", message->key);
        given->place = note_run(sim, &given->run);
        sim_tell(sim, "controller: gives worker %u %s of %s %s for watch %u (%s)", number_of(sim, worker),
                 run_action_name((enum run_action)message->action), message->key, message->uid,
                 given->run.watch, run_reason_name((enum run_reason)message->reason));
        model_given(sim, given->run.watch, sim_uid_number(given->run.uid));
        if (message->reason == RUN_HANDLER_CHANGED || message->reason == RUN_REQUESTED)
                model_forgives(sim, given->run.watch, sim_uid_number(given->run.uid));
        worker_take(sim, number_of(sim, worker), message, given->run.watch);
}

static bool ended(void *userdata, struct worker *worker _unused_, const struct assignment *given,
                  bool has_begun)
{
        struct simulation *sim = userdata;

        sim->note[given->place].state = has_begun ? NOTE_ENDED : NOTE_FREE;
        return false;
}

static void committed(void *userdata)
{
        struct simulation *sim = userdata;

        for (size_t i = 0; i < PLACES_MAX; i++)
                if (sim->note[i].state == NOTE_ENDED)
                        sim->note[i].state = NOTE_FREE;
        sim->has_news = false;
        model_committed(sim);
}

static void recall(void *userdata, struct worker *worker, const char *reason _unused_)
{
        worker_recall(userdata, number_of(userdata, worker));
}

static void cancel(void *userdata, struct worker *worker, uint64_t id, const char *reason _unused_)
{
        worker_cancel(userdata, number_of(userdata, worker), id);
}

static void tell_watcher(struct simulation *sim, const struct watch *watch,
                         const struct sim_message *message)
{
        struct sim_inbox *inbox = &sim->watcher[watch_number(watch)].to_watcher;

        if (inbox->count == INBOX_MAX)
                abort();
        inbox->message[(inbox->first + inbox->count++) % INBOX_MAX] = *message;
}

static void handled(void *userdata, struct watch *watch, const struct message_handled *handled)
{
        for (size_t i = 0; i < handled->handled_count; i++) {
                struct sim_message message = {.type = SIM_HANDLED, .count = 1};

                message.change[0].name = sim_name_number(handled->handled[i].key);
                message.change[0].uid = sim_uid_number(handled->handled[i].uid);
                tell_watcher(userdata, watch, &message);
        }
}

static void credit(void *userdata, struct watch *watch, uint64_t amount, bool again _unused_)
{
        tell_watcher(userdata, watch, &(struct sim_message){.type = SIM_CREDIT, .amount = amount});
}

static int owed(void *userdata, struct watch *watch, const struct message_owed *message)
{
        struct sim_message part = {.type = SIM_OWED};

        for (size_t i = 0; i < message->owed_count; i++) {
                part.change[0].name = sim_name_number(message->owed[i].key);
                part.change[0].uid = sim_uid_number(message->owed[i].uid);
                part.count = 1;
                part.last = false;
                tell_watcher(userdata, watch, &part);
        }
        part.count = 0;
        part.last = message->last;
        tell_watcher(userdata, watch, &part);
        return 0;
}

static bool has_room(const void *userdata _unused_, const struct watch *watch _unused_)
{
        return true;
}

static int health(void *userdata _unused_, struct watch *watch _unused_)
{
        return 0;
}

static const char *value_of(const struct log_field *field, const char *name)
{
        while (field->name && strcmp(field->name, name) != 0)
                field++;
        return field->value;
}

static void write_log(void *userdata, int priority, const char *id, const struct log_field *field,
                      const char *text)
{
        if (id && strcmp(id, MESSAGE_ID_VANISHED) == 0)
                model_vanished(userdata, watch_of(userdata, value_of(field, "RECONCILED_WATCH")),
                               sim_uid_number(value_of(field, "RECONCILED_UID")));
        if (priority <= LOG_INFO)
                sim_tell(userdata, "log: %s", text);
}

static void fatal(void *userdata, int exit_code, const char *key _unused_, const char *cause)
{
        struct simulation *sim = userdata;

        sim->has_ended = true;
        model_broken(sim, "the operator ends with %d: %s", exit_code, cause);
}

/* Turns are as short as they can be, or not. */
static bool has_time(const void *userdata)
{
        struct simulation *sim = (struct simulation *)(uintptr_t)userdata;

        return sim_random(&sim->random) % 2;
}

/* Some RUNs wait for a turn, as they wait for the leader record where there are several replicas. */
static bool may_leave(void *userdata, struct assignment *given)
{
        if (given->run.id % 7 > 0 || given->named > 0)
                return true;
        given->named = 1;
        settle(userdata);
        return false;
}

static uint64_t make_random(void *userdata)
{
        return sim_random(&((struct simulation *)userdata)->random);
}

static const struct controller_effects effects = {
        .settle = settle,
        .wake = wake,
        .idle = idle,
        .next_page = next_page,
        .batch = batch,
        .run = run,
        .ended = ended,
        .committed = committed,
        .recall = recall,
        .cancel = cancel,
        .handled = handled,
        .credit = credit,
        .owed = owed,
        .has_room = has_room,
        .health = health,
        .log = write_log,
        .fatal = fatal,
        .has_time = has_time,
        .may_leave = may_leave,
        .random = make_random,
};

static void tell_time(struct simulation *sim)
{
        const struct controller_now now = {sim->boottime, sim->realtime, sim->monotonic};

        controller_tell_time(&sim->controller, &now);
}

/* ---- life and death */

static int judge_last_life(struct simulation *sim)
{
        size_t running = 0;
        int r = 0;

        for (size_t i = 0; i < PLACES_MAX; i++) {
                if (sim->is_power_lost)
                        sim->note[i].state = NOTE_FREE;
                running += sim->note[i].state == NOTE_RUNNING;
        }
        for (size_t i = 0; i < PLACES_MAX && r >= 0; i++) {
                char uid[16];

                if (sim->note[i].state == NOTE_FREE)
                        continue;
                sim_uid(sim->note[i].uid, uid);
                model_forgives(sim, sim->note[i].watch, sim->note[i].uid);
                r = last_life_judge(&sim->controller,
                                    &(struct noted_run){.watch = sim->config_watch[sim->note[i].watch].name,
                                                        .key = sim_key(sim->note[i].name),
                                                        .uid = uid,
                                                        .fingerprint = sim->note[i].fingerprint,
                                                        .without_handler = sim->note[i].without_handler},
                                    sim->note[i].state == NOTE_RUNNING, running == 1);
        }
        if (r >= 0)
                r = ledger_commit(sim->controller.ledger);
        if (r >= 0)
                r = unsure_begin(&sim->controller, sim->is_power_lost ? "the machine went down" : NULL);
        sim->is_power_lost = false;
        for (size_t i = 0; i < PLACES_MAX; i++)
                sim->note[i].state = NOTE_FREE;
        return r;
}

static int start_watch(struct simulation *sim, unsigned i)
{
        struct watch *watch;
        int r = watch_take(&sim->controller, &sim->config_watch[i], &watch);

        if (r >= 0)
                r = pause_load(watch);
        if (r >= 0)
                r = unsure_load(watch);
        if (r >= 0)
                r = epoch_load(watch);
        if (r >= 0)
                r = retry_kept_load(watch, sim->stamp);
        if (r < 0)
                return r;
        watch->is_up = true;
        watcher_start(sim, i);
        r = owed_begin(watch);
        watch->credit_given = CREDIT_LIMIT;
        credit(sim, watch, CREDIT_LIMIT, false);
        return r;
}

int operator_start(struct simulation *sim)
{
        struct controller *controller = &sim->controller;
        struct error error = ERROR_NONE;
        char *aside = NULL;
        int r = controller_init(controller, &effects, sim, sim->workers, WATCHES);

        for (size_t i = 0; i < WAKE_COUNT; i++)
                sim->wake_at[i] = UINT64_MAX;
        memset(sim->page_wanted, 0, sizeof(sim->page_wanted));
        sim->idle_wanted = sim->has_ended = false;
        sim->settle_wanted = true;
        checkpoint_gate_closed = sim->gate_closed = false;
        if (r >= 0)
                r = queue_new(&controller->queue);
        controller->config = &sim->config;
        controller->ledger_folder = sim->folder;
        controller->has_credential = true;
        controller->clock_offset = 1000000;
        tell_time(sim);
        if (r >= 0)
                r = ledger_open(sim->path, &controller->ledger, &aside, &error);
        if (r < 0 || aside)
                model_broken(sim, "the ledger cannot be opened: %s",
                             aside ? "set aside" : error_message(&error));
        free(aside);
        error_done(&error);
        if (r >= 0)
                r = ledger_lost_load(controller, sim->is_ledger_lost);
        sim->is_ledger_lost = false;
        if (r >= 0)
                r = judge_last_life(sim);
        if (sim->model.kept_stamp != sim->stamp)
                model_renewed(sim);
        for (unsigned i = 0; i < WATCHES && r >= 0; i++)
                r = start_watch(sim, i);
        for (size_t i = 0; i < sim->workers; i++)
                controller->worker[i].is_up = true;
        if (r >= 0)
                r = workers_start(sim);
        if (r < 0)
                return r;
        due_arm(controller);
        sim->is_up = true;
        return 0;
}

void operator_end(struct simulation *sim, bool in_order)
{
        for (unsigned i = 0; i < WORKERS; i++)
                worker_kill(sim, i);
        /* Where the ledger knows nothing, who has left is told once, and that is lost now. */
        for (unsigned i = 0; i < WATCHES && sim->controller.ledger_lost; i++)
                if ((sim->has_news && !in_order) || sim->watcher[i].to_controller.count > 0)
                        model_ledger_lost(sim, i);
        sim->has_news = false;
        model_killed(sim);
        checkpoint_gate_closed = false;
        if (!in_order)
                ledger_abandon(sim->controller.ledger);
        ledger_free(sim->controller.ledger);
        queue_free(sim->controller.queue);
        controller_done(&sim->controller);
        sim->is_up = false;
        sim->ends++;
}

void operator_stop(struct simulation *sim)
{
        sim->controller.is_ending = true;
        for (unsigned i = 0; i < WORKERS; i++) {
                if (i < sim->controller.worker_count)
                        sim->controller.worker[i].is_up = false; /* no RUN leaves any more */
                worker_stop(sim, i);
                while (operator_hear_worker(sim, i))
                        ;
        }
        sim->settle_wanted = true;
        (void)operator_settle(sim);
        operator_end(sim, true);
}

/* ---- inputs */

static int hear_keys(struct watch *watch, const struct sim_message *message)
{
        struct record_change change[MESSAGE_MAX];
        char uid[MESSAGE_MAX][16], version[MESSAGE_MAX][24];
        struct message_keys keys = {.watch = watch->config->name,
                                    .change = change,
                                    .change_count = message->count,
                                    .epoch = message->epoch};

        for (size_t i = 0; i < message->count; i++) {
                const struct sim_change *from = &message->change[i];

                sim_uid(from->uid, uid[i]);
                snprintf(version[i], sizeof(version[i]), "%llu", (unsigned long long)from->version);
                change[i] = (struct record_change){
                        .kind = from->kind,
                        .key = sim_key(from->name),
                        .uid = uid[i],
                        .fingerprint = from->fingerprint,
                        .resource_version = from->version ? version[i] : "",
                        .sequence = from->sequence,
                        .first = from->first,
                        .finalizer = from->finalizer,
                };
        }
        return change_keys(watch, &keys);
}

static int hear(struct watch *watch, const struct sim_message *message)
{
        switch (message->type) {
        case SIM_KEYS:
                return hear_keys(watch, message);
        case SIM_SYNCED:
                return change_synced(watch, &(struct message_synced){.watch = watch->config->name,
                                                                     .resource_version = "1",
                                                                     .scope = "s",
                                                                     .cluster = "c"});
        case SIM_CHECKED:
                return change_checked(watch, &(struct message_checked){.watch = watch->config->name,
                                                                       .scope = "s",
                                                                       .cluster = "c"});
        case SIM_SWEPT:
                return change_swept(watch,
                                    &(struct message_swept){.watch = watch->config->name, .unseen = ""});
        default:
                return -EPROTO;
        }
}

static void judge(struct simulation *sim, const char *what, int status)
{
        if (status < 0)
                model_broken(sim, "%s is refused: %s", what, strerror(-status));
}

bool operator_hear_watcher(struct simulation *sim, unsigned watch)
{
        struct sim_inbox *inbox = &sim->watcher[watch].to_controller;
        const struct sim_message *message = &inbox->message[inbox->first];

        if (inbox->count == 0)
                return false;
        inbox->first = (inbox->first + 1) % INBOX_MAX;
        inbox->count--;
        sim->has_news = true;
        tell_time(sim);
        for (size_t i = 0; i < message->count; i++)
                model_heard(sim, watch, message->change[i].uid, message->change[i].fingerprint,
                            message->restored);
        judge(sim, "a message of a watcher", hear(&sim->controller.watch[watch], message));
        return true;
}

/* As supervisor/control/explain.c. */
static int keep_run(struct simulation *sim, const struct message_done *done)
{
        const struct ledger_run run = {
                .ended_realtime = sim->realtime,
                .action = run_action_name((enum run_action)done->action),
                .reason = "",
                .result = run_result_name((enum run_result)done->result),
                .version = done->resource_version,
        };

        return ledger_run_put(sim->controller.ledger, done->watch, done->key, done->uid, &run);
}

bool operator_hear_worker(struct simulation *sim, unsigned worker)
{
        struct sim_worker *from = &sim->worker[worker];
        struct assignment given;
        _cleanup_message_ struct message *ended = NULL;
        const struct message_done *done;
        struct sim_word word;
        unsigned watch, uid;
        int r;

        if (from->done_count == 0)
                return false;
        word = from->done[from->done_first];
        ended = word.done;
        from->done[from->done_first] = (struct sim_word){0};
        from->done_first = (from->done_first + 1) % INBOX_MAX;
        from->done_count--;
        simulation_tick(sim);
        tell_time(sim);
        if (!word.is_end) {
                judge(sim, "ANSWERED", assign_answered(&sim->controller.worker[worker], &word.answered));
                worker_heard(sim, worker, word.answered.sequence);
                return true;
        }
        done = &ended->done;
        r = assign_take(&sim->controller.worker[worker], done, &given);
        watch = watch_of(sim, done->watch);
        uid = sim_uid_number(done->uid);
        if (r >= 0)
                r = outcome_done(&sim->controller, &given, done);
        if (r >= 0 && done->result != RESULT_RETURNED && done->result != RESULT_BEHIND &&
            done->result != RESULT_UNNEEDED)
                r = keep_run(sim, done);
        judge(sim, "DONE", r);
        model_ended(sim, watch, uid);
        return true;
}

bool operator_settle(struct simulation *sim)
{
        if (!sim->settle_wanted)
                return false;
        sim->settle_wanted = false;
        tell_time(sim);
        controller_settle(&sim->controller);
        return true;
}

bool operator_idle(struct simulation *sim)
{
        if (!sim->idle_wanted || sim->settle_wanted)
                return false;
        sim->idle_wanted = false;
        tell_time(sim);
        controller_idle(&sim->controller);
        return true;
}

bool operator_page(struct simulation *sim, unsigned watch)
{
        if (!sim->page_wanted[watch])
                return false;
        sim->page_wanted[watch] = false;
        tell_time(sim);
        owed_page(&sim->controller.watch[watch]);
        return true;
}

static int see_row(const char *watch, const struct ledger_row *row, void *userdata)
{
        const struct model_row seen = {
                .name = sim_name_number(row->key),
                .uid = sim_uid_number(row->uid),
                .is_end = row->deleting || row->unselected,
                .fails = row->attempts > 0 && !row->permanent,
                .is_due = row->next_realtime > 0,
        };

        model_row(userdata, watch_of(userdata, watch), &seen);
        return 0;
}

void operator_see_rows(struct simulation *sim, unsigned watch)
{
        judge(sim, "a look at the ledger",
              ledger_visit(sim->controller.ledger, sim->config_watch[watch].name, "", "", PLACES_MAX,
                           see_row, sim) < 0
                      ? -EIO
                      : 0);
}

bool operator_remembers(const struct simulation *sim, unsigned watch, unsigned uid)
{
        const struct watch *known = watch_find(&sim->controller, sim->config_watch[watch].name);
        bool remembers = false;
        char text[16];

        sim_uid(uid, text);
        for (unsigned name = 0; known && name < NAMES; name++)
                remembers = remembers || mark_find(&known->tries, sim_key(name), text);
        return remembers;
}

uint64_t operator_next_time(const struct simulation *sim)
{
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < WAKE_COUNT; i++)
                if (sim->wake_at[i] < next)
                        next = sim->wake_at[i];
        return next;
}

bool operator_wake(struct simulation *sim, bool also_early)
{
        bool any = false;

        for (size_t i = 0; i < WAKE_COUNT; i++) {
                if (sim->wake_at[i] == UINT64_MAX || (sim->wake_at[i] > sim->boottime && !also_early))
                        continue;
                sim->wake_at[i] = UINT64_MAX;
                tell_time(sim);
                if (i == WAKE_QUEUE)
                        sim->settle_wanted = true;
                else if (i == WAKE_COMMIT)
                        controller_commit_time(&sim->controller);
                else
                        due_take(&sim->controller);
                any = true;
        }
        return any;
}

void operator_reload(struct simulation *sim)
{
        int r = 0;

        sim->controller.reloads++;
        for (unsigned i = 0; i < WATCHES && r >= 0; i++)
                r = retry_kept_reload(&sim->controller, sim->config_watch[i].name, sim->stamp);
        for (unsigned i = 0; i < WATCHES && r >= 0; i++)
                r = retry_kept_load(&sim->controller.watch[i], sim->stamp);
        model_renewed(sim);
        sim_tell(sim, "operator: is reloaded");
        judge(sim, "a reload", r);
}

/* Many objects run again. */
static int order_many(struct simulation *sim, struct watch *watch, unsigned argument)
{
        uint64_t count;

        switch (argument % 4) {
        case 0:
                operator_reload(sim);
                return 0;
        case 1:
                sim->stamp++; /* the next reload or start sees another handler */
                return 0;
        case 2:
                return retry_all(watch, &count);
        default:
                return retry_all_failed(&sim->controller, watch, &count);
        }
}

bool operator_order(struct simulation *sim, unsigned argument)
{
        struct watch *watch = &sim->controller.watch[argument % WATCHES];
        int r = 0;

        argument /= WATCHES;
        tell_time(sim);
        switch (argument % 4) {
        case 0:
                r = pause_watch(watch, "", 0);
                if (r > 0)
                        r = outcome_return_unsent(&sim->controller);
                break;
        case 1:
                r = pause_resume(watch, 0);
                break;
        case 2:
                r = order_many(sim, watch, argument / 4);
                break;
        default:
                r = run_now(watch, sim_key(argument / 4 % NAMES), argument / 16 % 2);
        }
        sim_tell(sim, "by hand: order %u for watch %u", argument % 4, watch_number(watch));
        if (argument % 4 > 1) {
                model_forgives_all(sim);
                model_unsettle(sim);
        }
        judge(sim, "an order by hand", r == -ENOENT ? 0 : r);
        return true;
}
