/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end, in order or not. Fatal: the cause is logged once, first; every child gets SIGTERM at once,
 * SIGKILL after a short grace (a stopped one hears nothing else), and what handlers left behind comes to us,
 * the subreaper, and is ended too. In order: workers first, so that what runs may finish and be recorded;
 * then the rest. Every wait has a bound.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/run/assign.h"
#include "controller/run/blame.h"
#include "controller/run/doubt.h"
#include "ipc/message-id.h"
#include "os/descendants.h"
#include "os/syscall.h"
#include "supervisor/supervisor.h"

#define FATAL_GRACE_USEC (2 * USEC_PER_SEC)
#define REST_GRACE_USEC  (5 * USEC_PER_SEC)
#define KILL_WAIT_USEC   (5 * USEC_PER_SEC)
#define STRAYS_USEC      USEC_PER_SEC
#define STOP_COMES_USEC  (2 * USEC_PER_SEC) /* behind the signal that a child got of the same stop */

/* ---- the end of the end */

static void finish(struct supervisor *supervisor)
{
        int r = ledger_commit(supervisor->controller.ledger);

        if (r >= 0)
                under_way_committed(supervisor);
        /* Descendants of children that died, now ours. The loop is over: this may wait. */
        descendants_end(STRAYS_USEC);
        if (r < 0 && supervisor->exit_code == EXIT_CODE_OK) {
                log_error("the ledger could not be written at the end: %s", strerror(-r));
                supervisor->exit_code = EXIT_CODE_IO;
        }
        sd_event_exit(supervisor->event, supervisor->exit_code);
}

static void signal_all(struct supervisor *supervisor, int signal)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                child_signal(&supervisor->child[i], signal);
}

static int on_give_up(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        log_error("a child cannot be ended, not even by SIGKILL (it may hang in the kernel); leaving it "
                  "behind");
        notify_fault("a child cannot be ended, not even by SIGKILL", -ETIMEDOUT);
        finish(userdata);
        return 0;
}

static int arm(struct supervisor *supervisor, uint64_t usec, sd_event_time_handler_t handler)
{
        supervisor->kill_timer = sd_event_source_disable_unref(supervisor->kill_timer);
        return sd_event_add_time_relative(supervisor->event, &supervisor->kill_timer, CLOCK_MONOTONIC, usec,
                                          1, handler, supervisor);
}

static int on_kill(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        signal_all(supervisor, SIGKILL);
        return arm(supervisor, KILL_WAIT_USEC, on_give_up);
}

static int on_grace_over(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct supervisor *supervisor = userdata;
        char who[128];

        for (size_t i = 0; i < supervisor->child_count; i++) {
                if (supervisor->child[i].state != CHILD_STOPPING)
                        continue;
                child_describe(&supervisor->child[i], who, sizeof(who));
                log_warning("the %s was told to end, and did not in time; it is killed", who);
        }
        return on_kill(source, usec, userdata);
}

/* ---- fatal */

/* The watch that the child is of, or whose object it was busy with. */
static const char *watch_name(const struct supervisor *supervisor, const struct child_slot *child)
{
        const struct queue_run *run;

        if (child && child->kind == KIND_WATCHER)
                return supervisor->controller.watch[child->index].config->name;
        if (!child || child->kind != KIND_WORKER)
                return NULL;
        run = worker_run(&supervisor->controller.worker[child->index]);
        return run ? supervisor->controller.watch[run->watch].config->name : NULL;
}

static void blame(const struct worker *worker, const char *cause)
{
        const struct queue_run *run = worker_run(worker);
        const struct controller *controller = worker->controller;

        if (run)
                blame_worker(worker, handler_stamp_now(&controller->watch[run->watch].config->handler),
                             cause);
}

void supervisor_fatal(struct supervisor *supervisor, int exit_code, const struct child_slot *child,
                      const char *key, const char *format, ...)
{
        char pid[16] = "", code[16];
        struct slot_view view = {SLOT_IDLE, "", ""};
        bool blames = child && exit_code == EXIT_CODE_SOFTWARE && !child->blameless;
        va_list arguments;

        if (supervisor->phase == PHASE_TEARDOWN)
                return; /* a death that we caused, or a consequence */
        va_start(arguments, format);
        vsnprintf(supervisor->cause, sizeof(supervisor->cause), format, arguments);
        va_end(arguments);
        if (blames && child->kind == KIND_WATCHER && doubt_look(supervisor, child, &view) >= 0)
                key = view.key;
        if (child && !key)
                key = child_busy_with(child);
        if (child)
                snprintf(pid, sizeof(pid), "%d", child->pid);
        snprintf(code, sizeof(code), "%d", exit_code);
        log_write(LOG_CRIT, MESSAGE_ID_CHILD_FATAL,
                  LOG_FIELDS({"RECONCILED_CHILD", child ? role_name(child_role(child->kind)) : NULL},
                             {"RECONCILED_WATCH", watch_name(supervisor, child)}, {"RECONCILED_KEY", key},
                             {"RECONCILED_PID", pid}, {"RECONCILED_EXIT_CODE", code}),
                  "%s%s%s; the operator ends with exit code %d (%s)", supervisor->cause,
                  child && key && key[0] ? ", busy with " : "", child && key ? key : "", exit_code,
                  exit_code_name(exit_code));
        if (blames && child->kind == KIND_WORKER)
                blame(&supervisor->controller.worker[child->index], supervisor->cause);
        if (view.stage != SLOT_IDLE)
                doubt_blame(&supervisor->controller.watch[child->index], view.key, view.uid,
                            view.stage != SLOT_PROGRAM, supervisor->cause);
        supervisor_set_phase(supervisor, PHASE_TEARDOWN);
        supervisor->exit_code = exit_code;
        under_way_blameless(supervisor);
        notify_failed(exit_code, supervisor->cause);
        signal_all(supervisor, SIGTERM);
        if (arm(supervisor, FATAL_GRACE_USEC, on_kill) < 0)
                signal_all(supervisor, SIGKILL);
        teardown_continue(supervisor);
}

static int on_not_stopped(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        if (supervisor->phase <= PHASE_RUNNING)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, supervisor->suspicious, NULL, "%s",
                                 supervisor->suspicion);
        return 0;
}

void supervisor_fatal_unless_stopped(const struct child_slot *child, const char *format, ...)
{
        struct supervisor *supervisor = child->supervisor;
        va_list arguments;

        if (supervisor->phase > PHASE_RUNNING || supervisor->fatal_timer)
                return;
        va_start(arguments, format);
        vsnprintf(supervisor->suspicion, sizeof(supervisor->suspicion), format, arguments);
        va_end(arguments);
        supervisor->suspicious = child;
        if (sd_event_add_time_relative(supervisor->event, &supervisor->fatal_timer, CLOCK_MONOTONIC,
                                       STOP_COMES_USEC, 0, on_not_stopped, supervisor) < 0)
                on_not_stopped(NULL, 0, supervisor);
}

/* ---- in order */

static void stop_kind(struct supervisor *supervisor, bool workers, uint64_t grace_usec)
{
        for (size_t i = 0; i < supervisor->child_count; i++) {
                struct child_slot *child = &supervisor->child[i];

                if ((child->kind == KIND_WORKER) != workers || child->state == CHILD_GONE ||
                    child->state == CHILD_STOPPING)
                        continue;
                (void)channel_send(child->channel, MESSAGE_STOP,
                                   &(struct message_stop){.grace_usec = grace_usec});
                child_set_state(child, CHILD_STOPPING);
        }
}

static void stop_rest(struct supervisor *supervisor)
{
        supervisor_set_phase(supervisor, PHASE_STOPPING_REST);
        stop_kind(supervisor, false, 0);
        (void)arm(supervisor, REST_GRACE_USEC, on_grace_over);
        teardown_continue(supervisor);
}

void stop_gracefully(struct supervisor *supervisor)
{
        uint64_t grace = supervisor->config->stop_grace_usec;

        if (supervisor->phase == PHASE_TEARDOWN)
                return;
        if (supervisor->phase > PHASE_RUNNING &&
            (supervisor->reloading || supervisor->exit_code != EXIT_CODE_OK)) {
                /* A stop in the middle of a reload: the same way, without a beginning behind it, by us or
                 * (in another version) by who starts us. */
                supervisor->reloading = false;
                supervisor->exit_code = EXIT_CODE_OK;
                notify_stopping(supervisor);
                return;
        }
        if (supervisor->phase > PHASE_RUNNING) {
                log_info("asked again: ending at once");
                on_kill(NULL, 0, supervisor);
                return;
        }
        supervisor_set_phase(supervisor, PHASE_STOPPING_WORKERS);
        under_way_blameless(supervisor); /* who loses patience and kills us may do so */
        notify_stopping(supervisor);
        metrics_push_change(supervisor);
        stop_kind(supervisor, true, grace);
        /* Workers end their handlers within the grace; a worker that does not is ended itself. */
        if (arm(supervisor, grace + FATAL_GRACE_USEC, on_grace_over) < 0)
                on_kill(NULL, 0, supervisor);
        teardown_continue(supervisor);
}

void teardown_continue(struct supervisor *supervisor)
{
        switch (supervisor->phase) {
        case PHASE_STARTING:
        case PHASE_RUNNING:
                return;
        case PHASE_STOPPING_WORKERS:
                if (children_all(supervisor, KIND_WORKER, CHILD_GONE)) {
                        turn_settle_soon(supervisor);
                        stop_rest(supervisor);
                }
                return;
        case PHASE_STOPPING_REST:
        case PHASE_TEARDOWN:
                if (children_gone(supervisor))
                        finish(supervisor);
                return;
        }
}
