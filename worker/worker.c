/* SPDX-License-Identifier: Apache-2.0 */
/* See worker.h. The worker's side of the channel: configuration, runs, and the order in which it stops. */
#include "worker/worker.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "object/keyed-hash.h"
#include "os/slot.h"
#include "os/syscall.h"
#include "worker/dependents/applied.h"
#include "worker/kinds.h"
#include "worker/recording.h"
#include "worker/run/coprocess.h"
#include "worker/run/run.h"
#include "worker/waiting.h"
#include "worker/watch.h"
#include "worker/write/event.h"

#define ORPHAN_GRACE_USEC                                                                                   \
        (400 * USEC_PER_MSEC) /* the supervisor is gone, and all must end within a second */

/* In flight, with a connection each: 50 KiB with TLS, and as much again during a request. */
#define REQUESTS_FIRST 8
#define REQUESTS_MAX   32

#define EVENTS_GRACE_USEC (1500 * USEC_PER_MSEC)

#define COPROCESS_GRACE_USEC (400 * USEC_PER_MSEC) /* between TERM and KILL for an idle handler */

/* Serving handlers have their grace as well. */
static void stop_coprocesses(struct worker *worker, uint64_t grace_usec)
{
        for (size_t i = 0; i < worker->watch_count; i++)
                coprocess_stop(worker->watch[i].coprocess, grace_usec);
}

static void part_ended(struct worker *worker)
{
        bool left = worker->runs != NULL;

        left = left || (!worker->events_over && recorder_is_busy(worker->recorder));
        for (size_t i = 0; i < worker->watch_count; i++)
                left = left || coprocess_is_running(worker->watch[i].coprocess);
        if (worker->stopping && !left)
                child_exit(worker->child, EXIT_CODE_OK);
}

static void run_ended(struct worker *worker)
{
        if (worker->stopping && !waiting_any_at_work(worker)) { /* no other one begins */
                process_no_more();
                stop_coprocesses(worker, COPROCESS_GRACE_USEC);
        }
        part_ended(worker);
}

static void on_worker_unusable(const char *reason, void *userdata)
{
        const struct worker *worker = userdata;

        child_fatal(worker->child, EXIT_CODE_SOFTWARE, "no request can be sent to the API server: %s",
                    reason);
}

static struct run *run_of(const struct worker *worker, const struct fiber *fiber)
{
        struct run *run = worker->runs;

        while (run && run->fiber != fiber)
                run = run->next;
        return run;
}

/* fiber: goes on now; NULL: the loop does. */
static void on_switch(const struct fiber *fiber, void *userdata)
{
        const struct worker *worker = userdata;
        const struct run *run = fiber ? run_of(worker, fiber) : NULL;

        if (run)
                slot_set(worker->slot, SLOT_READING, run->order->key, run->order->uid);
        else
                slot_clear(worker->slot);
}

static void on_warning(const char *text, const struct fiber *asker, void *userdata)
{
        const struct worker *worker = userdata;
        const struct run *run = asker ? run_of(worker, asker) : NULL;
        const struct message_run *order = run ? run->order : NULL;

        if (order)
                log_write(LOG_WARNING, NULL,
                          LOG_FIELDS({"RECONCILED_WATCH", order->watch}, {"RECONCILED_KEY", order->key},
                                     {"RECONCILED_UID", order->uid}),
                          "watch %s, %s: the API server warns about what the handler's answer wrote: %s",
                          order->watch, order->key, text);
        else
                log_warning("the API server warns: %s", text);
}

/* The keyring of the user who has started the operator is not for handlers. A handler of another user gets
 * one of its own (become/). */
static void leave_keyring(void)
{
        int r = sys_leave_session_keyring();

        if (r < 0 && r != -EOPNOTSUPP)
                log_warning(
                        "handlers without a user of their own share the operator's session keyring: %s%s",
                        strerror(-r),
                        r == -EDQUOT ? " (the operator's user has filled its quota of keys: /proc/key-users)"
                                     : "");
}

static int on_worker_config(struct child *child, struct message **config)
{
        struct worker *worker = child->userdata;
        char user_agent[128];
        int r;

        if ((*config)->type != MESSAGE_CONFIG_WORKER || worker->config)
                return -EPROTO;
        worker->carry_out = run_carry_out;
        worker->on_run_ended = run_ended;
        worker->on_part_ended = part_ended;
        worker->config_message = TAKE_PTR(*config);
        worker->config = &worker->config_message->config_worker;
        r = keyed_hash_begin(worker->config->hash_key, worker->config->hash_key_size);
        if (r < 0)
                return r;
        snprintf(user_agent, sizeof(user_agent), "reconciled/" RECONCILED_VERSION " (worker; %.60s)",
                 worker->config->operator_name);
        leave_keyring();
        r = sys_set_subreaper();
        if (r >= 0)
                r = fibers_new(child->event, &worker->fibers);
        if (r >= 0)
                fibers_on_switch(worker->fibers, on_switch, worker);
        if (r >= 0 && worker->config->slot_file[0])
                r = slot_open(worker->config->slot_file, worker->config->slot, &worker->slot);
        if (r >= 0)
                r = kube_client_new(child->event, user_agent, &worker->client);
        if (r >= 0) {
                kube_client_set_patience(worker->client, RUN_PATIENCE_USEC);
                kube_client_set_at_once(worker->client, REQUESTS_FIRST, REQUESTS_MAX);
                kube_client_on_unusable(worker->client, on_worker_unusable, worker);
                kube_client_on_warning(worker->client, on_warning, worker);
        }
        if (r >= 0)
                r = watches_new(worker);
        if (r >= 0)
                r = recorder_new(worker, &worker->recorder);
        if (r >= 0)
                r = recording_new(worker, &worker->recording);
        if (r >= 0)
                r = applied_new(&worker->applied);
        if (r >= 0 && worker->config->dry_run)
                kube_client_set_dry_run(worker->client);
        if (r < 0)
                return child_fatal(child, EXIT_CODE_SOFTWARE, "cannot start: %s", strerror(-r));
        return 1;
}

static void cancel_all(const struct worker *worker, uint64_t grace_usec)
{
        for (struct run *run = worker->runs; run; run = run->next)
                run_cancel(run, grace_usec);
}

/* The supervisor may be held up. What handlers have started ends with them only here: a process that is killed kills none but
 * its own children. */
static int on_lead_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        const struct worker *worker = userdata;
        uint64_t now = clock_boottime_usec(), kill_at = worker->lead.kill_boottime;

        cancel_all(worker, kill_at > now ? (kill_at - now) / 2 : 0);
        return 0;
}

/* No write leaves after the end of the lead. What was on its way may be late, but not we: whatever holds us up, the kernel
 * kills this process, and its handlers with it. */
static int on_lead(struct worker *worker, const struct message_lead *lead)
{
        int r = sys_die_at(lead->kill_boottime);

        if (r < 0)
                return child_fatal(worker->child, EXIT_CODE_SOFTWARE,
                                   "the end of the lead cannot be bound to its time: %s", strerror(-r));
        worker->lead = *lead;
        worker->lead_over = sd_event_source_disable_unref(worker->lead_over);
        r = sd_event_add_time(worker->child->event, &worker->lead_over, CLOCK_BOOTTIME, lead->stop_boottime,
                              1, on_lead_over, worker);
        if (r < 0)
                return r;
        kube_client_write_until(worker->client, lead->stop_boottime, lead->kill_boottime);
        return 0;
}

static int on_cancel(struct worker *worker, const struct message_cancel *cancel)
{
        int r = waiting_return_one(worker, cancel->sequence);

        if (r != -ENOENT)
                return r;
        for (struct run *run = worker->runs; run; run = run->next)
                if (run->order->sequence == cancel->sequence)
                        run_cancel(run, run->watch->config->handler_grace_usec);
        return 0;
}

static int on_worker_message(struct child *child, struct message **message)
{
        struct worker *worker = child->userdata;

        switch ((*message)->type) {
        case MESSAGE_CREDENTIAL:
                return kube_client_set_credential(worker->client, &(*message)->credential);
        case MESSAGE_THROTTLE:
                kube_client_throttle(worker->client, (*message)->throttle.resource,
                                     (*message)->throttle.until_boottime);
                return 0;
        case MESSAGE_LEAD:
                return on_lead(worker, &(*message)->lead);
        case MESSAGE_RUN:
                return waiting_take(worker, message);
        case MESSAGE_RECALL:
                return waiting_return(worker);
        case MESSAGE_REPORT:
                return recorder_report(worker->recorder, &(*message)->report);
        case MESSAGE_REPORTED:
                recorder_reported(worker->recorder);
                return 0;
        case MESSAGE_CANCEL:
                return on_cancel(worker, &(*message)->cancel);
        default:
                return -EPROTO;
        }
}

static int on_grace_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        const struct worker *worker = userdata;

        for (struct run *run = worker->runs; run; run = run->next)
                run_cancel(run, run->watch->config->handler_grace_usec < USEC_PER_SEC
                                        ? run->watch->config->handler_grace_usec
                                        : USEC_PER_SEC);
        return 0;
}

static int on_events_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker *worker = userdata;

        worker->events_over = true;
        part_ended(worker);
        return 0;
}

/* The last Events get a moment and no more: they are only for people. */
static void limit_events(struct worker *worker, uint64_t grace_usec)
{
        worker->events_over = grace_usec == 0 ||
                              sd_event_add_time_relative(worker->child->event, NULL, CLOCK_MONOTONIC,
                                                         EVENTS_GRACE_USEC, 1, on_events_over, worker) < 0;
}

/* Stops in order: runs may finish within the grace. Without a grace, the handler is ended now. */
static void on_stop(struct child *child, uint64_t grace_usec)
{
        struct worker *worker = child->userdata;

        worker->stopping = true;
        (void)waiting_return(worker); /* if this fails, the supervisor is gone and needs no answer */
        limit_events(worker, grace_usec);
        if (!waiting_any_at_work(worker))
                run_ended(worker);
        if (grace_usec == 0 || sd_event_add_time_relative(child->event, NULL, CLOCK_MONOTONIC, grace_usec, 1,
                                                          on_grace_over, worker) < 0)
                cancel_all(worker, ORPHAN_GRACE_USEC);
}

static size_t count_worker(struct child *child, struct record_counter *counter, size_t max)
{
        struct worker *worker = child->userdata;

        size_t n = 2;

        if (max < n)
                return 0;
        counter[0] = (struct record_counter){"runs", worker->begun};
        counter[1] = (struct record_counter){"log_dropped", log_dropped()};
        n += recorder_count(worker->recorder, counter + n, max - n);
        return n + kube_client_count(worker->client, counter + n, max - n);
}

static void on_rest(struct child *child)
{
        struct worker *worker = child->userdata;

        fibers_trim(worker->fibers);
}

const struct child_operations worker_operations = {
        .role = ROLE_WORKER,
        .log_role = "worker",
        .parent_death_signal = SIGTERM,
        .on_config = on_worker_config,
        .on_message = on_worker_message,
        .on_stop = on_stop,
        .count = count_worker,
        .at_rest = on_rest,
};

void worker_done(struct worker *worker)
{
        sd_event_source_disable_unref(worker->lead_over);
        waiting_done(worker);
        while (worker->fibers && fibers_count(worker->fibers) > 0) {
                for (struct run *run = worker->runs; run; run = run->next)
                        run_drop(run);
                fibers_turn(worker->fibers);
        }
        fibers_free(worker->fibers);
        recorder_free(worker->recorder);
        watches_free(worker);
        kinds_free(worker);
        applied_free(worker->applied);
        kube_client_free(worker->client);
        recording_free(worker->recording);
        slot_close(worker->slot);
        message_free(worker->config_message);
}
