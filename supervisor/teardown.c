/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/teardown.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/due/doubt.h"
#include "controller/run/blame.h"
#include "controller/run/last-life.h"
#include "ipc/log.h"
#include "os/descendants.h"
#include "supervisor/control/peer.h"
#include "supervisor/control/tell-gateway.h"
#include "supervisor/folders/under-way.h"
#include "supervisor/lead-lasting.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"

#define FATAL_GRACE_USEC (2 * USEC_PER_SEC)
#define REST_GRACE_USEC  (5 * USEC_PER_SEC)
#define KILL_WAIT_USEC   (5 * USEC_PER_SEC)
#define STRAYS_USEC      USEC_PER_SEC

/* ---- the end of the end */

static int arm_teardown(struct supervisor *supervisor, uint64_t usec, sd_event_time_handler_t handler)
{
        supervisor->kill_timer = sd_event_source_disable_unref(supervisor->kill_timer);
        return sd_event_add_time_relative(supervisor->event, &supervisor->kill_timer, CLOCK_MONOTONIC, usec,
                                          1, handler, supervisor);
}

/* Kills a lease process that does not end: the Lease runs out then. */
static int on_lease_late(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        log_warning(
                "the lead could not be released in time; another replica leads once the Lease has run out");
        child_signal(supervisor->lead.child, SIGKILL);
        return 0;
}

/* Descendants of children that died are ours now. All but the lease process have ended: this may wait. Returns whether nothing
 * is left. */
static bool end_all_descendants(const struct supervisor *supervisor)
{
        const struct child_slot *lease = supervisor->lead.child;
        pid_t pid = lease && lease->process.state != CHILD_GONE ? lease->process.pid : 0;
        bool left;

        if (pid > 0 && descendants_spare(pid, getuid()) < 0)
                return false;
        descendants_end(STRAYS_USEC);
        left = descendants_reap();
        if (pid > 0)
                descendants_spare_no_more(pid);
        return !left;
}

static void finish_teardown(struct supervisor *supervisor, bool proven)
{
        int r = ledger_commit(supervisor->controller.ledger);

        if (r >= 0)
                under_way_committed(supervisor);
        if (!supervisor->lead.is_releasing)
                proven = end_all_descendants(supervisor) && proven;
        lasting_end(supervisor);
        if (lead_release(supervisor, proven)) {
                if (arm_teardown(supervisor, supervisor->config->replicas_duration_usec / 2, on_lease_late) <
                    0)
                        child_signal(supervisor->lead.child, SIGKILL);
                return;
        }
        if (r < 0 && supervisor->exit_code == EXIT_CODE_OK) {
                log_error("the ledger could not be written at the end: %s", strerror(-r));
                supervisor->exit_code = EXIT_CODE_IO;
        }
        sd_event_exit(supervisor->event, supervisor->exit_code);
}

static void signal_all(struct supervisor *supervisor, int signal)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].process.role != ROLE_LEASE)
                        child_signal(&supervisor->child[i], signal);
}

static int on_give_up(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        log_error("a child cannot be ended, not even by SIGKILL (it may hang in the kernel); leaving it "
                  "behind");
        notify_fault("a child cannot be ended, not even by SIGKILL", -ETIMEDOUT);
        finish_teardown(userdata, false);
        return 0;
}

static int on_teardown_kill(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        supervisor->lead.is_cut_off = true;
        signal_all(supervisor, SIGKILL);
        return arm_teardown(supervisor, KILL_WAIT_USEC, on_give_up);
}

static int on_stop_grace_over(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct supervisor *supervisor = userdata;
        char who[128];

        for (size_t i = 0; i < supervisor->child_count; i++) {
                if (supervisor->child[i].process.state != CHILD_STOPPING)
                        continue;
                child_describe(&supervisor->child[i], who, sizeof(who));
                log_warning("the %s did not end in time and is killed", who);
        }
        return on_teardown_kill(source, usec, userdata);
}

/* ---- fatal */

static void blame(struct supervisor *supervisor)
{
        const struct supervisor_end *end = &supervisor->end;
        struct controller *controller = &supervisor->controller;

        if (end->was_killed)
                last_life_suspect_runs(controller);
        if (!end->child)
                return;
        if (end->child->process.role == ROLE_WORKER)
                blame_worker(&controller->worker[end->child->index], end->run, end->cause);
        if (end->child->process.role == ROLE_WATCHER && end->view.stage != SLOT_IDLE)
                doubt_blame(&controller->watch[end->child->index], end->view.key, end->view.uid,
                            end->view.stage != SLOT_PROGRAM, end->cause);
}

/* Nothing that writes outlives a lead: the kernel sees to it as well (worker/). */
static uint64_t fatal_grace(const struct supervisor *supervisor)
{
        uint64_t now = clock_boottime_usec(), kill_at = supervisor->lead.kill_boottime;

        if (supervisor->lead.state < LEAD_LEADING || kill_at >= now + FATAL_GRACE_USEC)
                return FATAL_GRACE_USEC;
        return kill_at > now ? kill_at - now : 0;
}

void teardown_begin(struct supervisor *supervisor)
{
        if (!supervisor->end.pending)
                return;
        supervisor->end.pending = false;
        blame(supervisor);
        under_way_blameless(supervisor);
        notify_failed(supervisor->exit_code, supervisor->end.cause);
        signal_all(supervisor, SIGTERM);
        if (arm_teardown(supervisor, fatal_grace(supervisor), on_teardown_kill) < 0)
                signal_all(supervisor, SIGKILL);
        teardown_continue(supervisor);
}

/* ---- in order */

static void stop_kind(struct supervisor *supervisor, bool workers, uint64_t grace_usec)
{
        FOREACH_ARRAY(child, supervisor->child, supervisor->child_count) {
                if ((child->process.role == ROLE_WORKER) != workers || child->process.state == CHILD_GONE ||
                    child->process.state == CHILD_STOPPING || child->process.role == ROLE_LEASE)
                        continue;
                child_stop(child, grace_usec);
        }
}

static void stop_rest(struct supervisor *supervisor)
{
        supervisor_set_phase(supervisor, PHASE_STOPPING_REST);
        stop_kind(supervisor, false, 0);
        (void)arm_teardown(supervisor, REST_GRACE_USEC, on_stop_grace_over);
        teardown_continue(supervisor);
}

void stop_gracefully(struct supervisor *supervisor)
{
        uint64_t grace = supervisor->config->stop_grace_usec;

        if (supervisor->phase == PHASE_TEARDOWN)
                return;
        if (supervisor->phase > PHASE_RUNNING &&
            (supervisor->reload.restarting || supervisor->exit_code != EXIT_CODE_OK)) {
                /* A stop in the middle of a reload goes the same way, but nothing begins again after it,
                 * neither by us nor (for another version) by the service manager. */
                supervisor->reload.restarting = false;
                supervisor->exit_code = EXIT_CODE_OK;
                notify_stopping(supervisor);
                return;
        }
        if (supervisor->phase > PHASE_RUNNING) {
                log_info("asked to stop again: ending at once");
                on_teardown_kill(NULL, 0, supervisor);
                return;
        }
        supervisor_set_phase(supervisor, PHASE_STOPPING_WORKERS);
        under_way_blameless(supervisor); /* a SIGKILL from here on is impatience */
        notify_stopping(supervisor);
        gateway_tell_change(supervisor);
        stop_kind(supervisor, true, grace);
        /* Workers end their handlers within the grace; a worker that does not is ended itself. */
        if (arm_teardown(supervisor, grace + FATAL_GRACE_USEC, on_stop_grace_over) < 0)
                on_teardown_kill(NULL, 0, supervisor);
        teardown_continue(supervisor);
}

void teardown_continue(struct supervisor *supervisor)
{
        if (supervisor->end.pending)
                return; /* it has not begun */
        switch (supervisor->phase) {
        case PHASE_FOLLOWING:
        case PHASE_STARTING:
        case PHASE_RUNNING:
                return;
        case PHASE_STOPPING_WORKERS:
                if (workers_gone(supervisor) && !peers_await_record(supervisor)) {
                        turn_settle_soon(supervisor);
                        stop_rest(supervisor);
                }
                return;
        case PHASE_STOPPING_REST:
        case PHASE_TEARDOWN:
                if (children_gone(supervisor))
                        finish_teardown(supervisor, true);
                return;
        }
}
