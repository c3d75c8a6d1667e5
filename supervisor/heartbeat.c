/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/heartbeat.h"

#include <malloc.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "children/child-process.h"
#include "controller/run/last-life.h"
#include "ipc/log.h"
#include "supervisor/carry-out.h"
#include "supervisor/children/spawner-life.h"
#include "supervisor/control/tell-gateway.h"
#include "supervisor/folders/state-folder.h"
#include "supervisor/supervisor.h"

#define CHECK_PRIORITY 20

void heartbeat_note(struct child_slot *child, const struct message_heartbeat *heartbeat)
{
        child->last_heartbeat = child->supervisor->controller.now.monotonic;
        counters_set(&child->counters, heartbeat);
        for (size_t i = 0; i < heartbeat->counter_count; i++) {
                if (strcmp(heartbeat->counter[i].name, "log_dropped") == 0)
                        child->log_dropped =
                                counters_get(&child->past, "log_dropped") + heartbeat->counter[i].value;
                if (child->process.role == ROLE_WATCHER &&
                    strcmp(heartbeat->counter[i].name, "objects") == 0)
                        child->supervisor->controller.watch[child->index].objects =
                                heartbeat->counter[i].value;
        }
}

/* A child that is heard but reads nothing is of no more use than a silent one. */
static bool check_child(struct child_slot *child, uint64_t now, uint64_t *longest)
{
        struct supervisor *supervisor = child->supervisor;
        uint64_t deadline = supervisor->config->heartbeat_deadline_usec,
                 silence = now - child->last_heartbeat;
        uint64_t waiting = child->process.channel ? channel_waiting_usec(child->process.channel) : 0;
        char who[128], text[64];

        if (child_reaction(child->process.state, EVENT_SILENCE) != ACT_DIE)
                return true;
        if (silence > *longest)
                *longest = silence;
        if (waiting > *longest)
                *longest = waiting;
        if (silence <= deadline && waiting <= deadline)
                return true;
        child_describe(child, who, sizeof(who));
        if (silence > deadline)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, child, NULL,
                                 "the %s hangs: no heartbeat for %s", who,
                                 duration_format(silence / 100000 * 100000, text, sizeof(text)));
        else
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, child, NULL,
                                 "the %s hangs: no message could be sent to it for %s", who,
                                 duration_format(waiting / 100000 * 100000, text, sizeof(text)));
        return false;
}

/* Once for each time of rest: gives back the memory that a crowd of runs has taken. */
static void supervisor_rest_if_idle(struct supervisor *supervisor)
{
        uint64_t runs = 0;

        FOREACH_WATCH(watch, &supervisor->controller)
                runs += watch->successes + watch->failures_total;
        if (runs == supervisor->heartbeat.runs_seen && !supervisor->heartbeat.rested) {
                ledger_lost_review(&supervisor->controller);
                ledger_rest(supervisor->controller.ledger);
                malloc_trim(0);
        }
        supervisor->heartbeat.rested = runs == supervisor->heartbeat.runs_seen;
        supervisor->heartbeat.runs_seen = runs;
}

/* A child that has been silent for some time is checked when its deadline is over, and not up to an interval
 * later. */
static uint64_t until_next_check(const struct config *config, uint64_t longest)
{
        uint64_t interval = config->heartbeat_interval_usec, deadline = config->heartbeat_deadline_usec;

        return longest <= deadline && deadline - longest < interval ? deadline - longest + 1 : interval;
}

static int on_check(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;
        uint64_t now = clock_monotonic_usec(), longest = 0;
        bool healthy = supervisor->phase <= PHASE_STOPPING_REST;
        int r;

        turn_is(supervisor, "the check of the heartbeats");
        for (size_t i = 0; i < supervisor->child_count && healthy; i++)
                healthy = check_child(&supervisor->child[i], now, &longest);
        if (healthy)
                healthy = spawner_check(supervisor, now, &longest);
        if (healthy)
                healthy = state_folder_check(supervisor);
        if (healthy)
                sd_notify(0, "WATCHDOG=1");
        gateway_tell(supervisor);
        if (ledger_clock_is_stale(supervisor))
                state_folder_note_time(supervisor);
        supervisor_rest_if_idle(supervisor);
        effects_tell_time(supervisor);
        controller_see_clock(&supervisor->controller);
        r = sd_event_source_set_time_relative(source, until_next_check(supervisor->config, longest));
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

bool heartbeat_limit(struct config *config)
{
        uint64_t watchdog = 0;

        if (sd_watchdog_enabled(0, &watchdog) <= 0 || config->heartbeat_interval_usec <= watchdog / 2)
                return false;
        config->heartbeat_interval_usec = watchdog / 3;
        return true;
}

int heartbeat_start(struct supervisor *supervisor)
{
        int r;

        if (heartbeat_limit(supervisor->config))
                log_warning(
                        "heartbeat.interval is more than half of systemd's WatchdogSec; it is shortened");
        /* After a restart in place, the last check may be nearly an interval ago. */
        sd_notify(0, "WATCHDOG=1");
        r = sd_event_add_time_relative(supervisor->event, &supervisor->heartbeat.timer, CLOCK_MONOTONIC,
                                       supervisor->config->heartbeat_interval_usec, 0, on_check, supervisor);
        return r < 0 ? r : sd_event_source_set_priority(supervisor->heartbeat.timer, CHECK_PRIORITY);
}
