/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/lead.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/run/last-life.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/children/start.h"
#include "supervisor/control/tell-gateway.h"
#include "supervisor/folders/state-folder.h"
#include "supervisor/lead-lasting.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"
#include "supervisor/teardown.h"

#define NO_EPOCH   1 /* a record that nobody has held yet has no more */
#define NAMES_USEC (10 * USEC_PER_MINUTE)

int lead_begin(struct supervisor *supervisor)
{
        static const char what[] = "member of a lease";
        struct siphash_sum sum = siphash_of(supervisor->hash_key, what, sizeof(what));
        int length;

        if (!supervisor->config->replicas)
                return 0;
        length = snprintf(supervisor->lead.member, sizeof(supervisor->lead.member), "%s-%016" PRIx64,
                          supervisor->config->replicas_lease, sum.low);
        assert(length > 0 && (size_t)length < sizeof(supervisor->lead.member));
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].process.role == ROLE_LEASE)
                        supervisor->lead.child = &supervisor->child[i];
        assert(supervisor->lead.child);
        supervisor_set_phase(supervisor, PHASE_FOLLOWING);
        return 0;
}

/* ---- the time that is left */

static void lose(struct supervisor *supervisor, const char *why)
{
        if (supervisor->phase >= PHASE_STOPPING_REST)
                return; /* no worker is left */
        log_write(LOG_ERR, MESSAGE_ID_LEAD_LOST, NULL, "replica %s no longer leads: %s",
                  supervisor->lead.member, why);
        supervisor_fatal(supervisor, EXIT_CODE_LEAD_LOST, NULL, NULL, "the lead was lost: %s", why);
}

static int on_stop_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        lose(userdata, "the Lease could not be renewed in time");
        return 0;
}

/* Our stop time comes before the kill time. If we miss both, somebody has stopped us (SIGSTOP, a suspend), maybe a run: all that
 * was under way are suspects. The lease process may have renewed the lead meanwhile, but workers have not heard of it. */
void lead_see_time(struct supervisor *supervisor)
{
        struct supervisor_lead *lead = &supervisor->lead;

        if (lead->state != LEAD_LEADING || lead->is_releasing ||
            supervisor->controller.now.boottime < lead->kill_boottime)
                return;
        lead->was_missed = true;
        lose(supervisor, "this process was stopped for too long");
}

static void arm_stop(struct supervisor *supervisor)
{
        struct supervisor_lead *lead = &supervisor->lead;
        int r;

        lead->stop_timer = sd_event_source_disable_unref(lead->stop_timer);
        r = sd_event_add_time(supervisor->event, &lead->stop_timer, CLOCK_BOOTTIME, lead->stop_boottime, 1,
                              on_stop_time, supervisor);
        if (r < 0)
                lose(supervisor, strerror(-r));
}

/* ---- the ledger of a former lead */

static void lead_begin_again(struct supervisor *supervisor, const char *why)
{
        char refusal[512];

        if (!reload_can_restart(supervisor, refusal, sizeof(refusal))) {
                supervisor_fatal(supervisor, EXIT_CODE_LEAD_LOST, NULL, NULL,
                                 "%s, and it cannot begin again: %s", why, refusal);
                return;
        }
        reload_by_restart(supervisor, why);
}

/* Whether the ledger is right after the lead of this epoch; else the ledger begins again. */
static bool ledger_is_right(struct supervisor *supervisor, uint64_t epoch)
{
        struct supervisor_lead *lead = &supervisor->lead;

        if (epoch <= NO_EPOCH || epoch == lead->ledger_epoch)
                return true;
        if (lead->ledger_is_new) { /* it knows nothing, which is right after each lead */
                lead->ledger_epoch = epoch;
                state_folder_note_time(supervisor);
                return true;
        }
        lead_begin_again(supervisor,
                         "another replica has led since this one did, so that what its ledger says is void");
        supervisor->reload.next.voids_ledger = true;
        return false;
}

/* ---- how we stand */

static void gain(struct supervisor *supervisor, const struct message_lease *lease)
{
        struct supervisor_lead *lead = &supervisor->lead;
        bool is_ours = !lead->ledger_is_new && lease->former_epoch == lead->own_epoch;
        int r;

        if (!ledger_is_right(supervisor, lease->former_epoch))
                return;
        lead->takeovers++;
        if (!is_ours && lease->former_epoch > NO_EPOCH && !lease->released)
                lead->lasting.names_until = clock_boottime_usec() + NAMES_USEC;
        lead->clean = lease->clean;
        log_write(LOG_NOTICE, MESSAGE_ID_LEAD_GAINED, NULL,
                  "replica %s of operator %s leads now (epoch %" PRIu64 "); the lead before it was %s",
                  lead->member, supervisor->config->operator_name, lease->epoch,
                  lease->former_epoch <= NO_EPOCH ? "nobody's"
                  : lease->clean                  ? "released"
                  : lease->released               ? "released, but writes of it may be on their way"
                                                  : "not released");
        r = lasting_take(supervisor, lease->lasting, !is_ours);
        /* Another leader may have handed out what our ledger does not know, and have put our finalizer on it. */
        if (r >= 0 && !is_ours && lease->former_epoch > NO_EPOCH)
                r = ledger_lost_load(&supervisor->controller, true);
        if (r < 0) {
                supervisor_fatal(supervisor, r == -ENOMEM ? EXIT_CODE_SOFTWARE : EXIT_CODE_IO, NULL, NULL,
                                 "what the leader before this one has left cannot be kept: %s",
                                 strerror(-r));
                return;
        }
        lead->ledger_epoch = lead->own_epoch = lease->epoch;
        state_folder_note_time(supervisor);
        supervisor_set_phase(supervisor, PHASE_STARTING);
        r = children_start(supervisor);
        if (r < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "the children cannot be started: %s", strerror(-r));
}

static void note_lead_trouble(struct supervisor_lead *lead, const char *trouble)
{
        bool is_new = trouble[0] && !lead->trouble[0];

        if (is_new)
                log_write(LOG_WARNING, MESSAGE_ID_LEAD_TROUBLE, NULL,
                          "replica %s has trouble with its Leases: %s", lead->member, trouble);
        snprintf(lead->trouble, sizeof(lead->trouble), "%s", trouble);
}

static void lead_follow(struct supervisor *supervisor, const struct message_lease *lease)
{
        struct supervisor_lead *lead = &supervisor->lead;

        if (strcmp(lead->leader, lease->leader) != 0 && lease->leader[0])
                log_info("replica %s follows: %s leads (epoch %" PRIu64 ")", lead->member, lease->leader,
                         lease->epoch);
        snprintf(lead->leader, sizeof(lead->leader), "%s", lease->leader);
        lead->epoch = lease->epoch;
        if (supervisor->phase == PHASE_FOLLOWING && lease->state == LEAD_FOLLOWING)
                (void)ledger_is_right(supervisor, lease->epoch);
}

int lead_take(struct supervisor *supervisor, const struct message_lease *lease)
{
        struct supervisor_lead *lead = &supervisor->lead;
        bool begins = lease->state == LEAD_LEADING && lead->state != LEAD_LEADING;

        if (lead->state >= LEAD_LEADING && lease->state < lead->state)
                return -EPROTO; /* a lease process leads once */
        lead->state = lease->state;
        lead->is_refused = lease->refused;
        note_lead_trouble(lead, lease->trouble);
        if (lease->state < LEAD_LEADING) {
                lead_follow(supervisor, lease);
        } else if (lease->state == LEAD_LOST) {
                if (!lead->is_releasing)
                        lose(supervisor, lease->trouble[0] ? lease->trouble : "the Leases say so");
        } else {
                snprintf(lead->leader, sizeof(lead->leader), "%s", lead->member);
                lead->epoch = lease->epoch;
                lead->stop_boottime = lease->stop_boottime;
                lead->kill_boottime = lease->kill_boottime;
                if (begins && supervisor->phase == PHASE_FOLLOWING)
                        gain(supervisor, lease);
                if (supervisor->phase <= PHASE_STOPPING_WORKERS)
                        arm_stop(supervisor);
                lead->lasting.recorded = lease->recorded;
                lead_tell(lead->child);
                for (size_t i = 0; i < supervisor->controller.worker_count; i++)
                        lead_tell(worker_child(&supervisor->controller.worker[i]));
        }
        gateway_tell_change(supervisor);
        turn_settle_soon(supervisor);
        return 0;
}

/* ---- an order */

int lead_step_down(struct supervisor *supervisor, const char *successor, char *why, size_t size)
{
        struct supervisor_lead *lead = &supervisor->lead;

        if (lead->state != LEAD_LEADING || supervisor->phase > PHASE_RUNNING)
                return -EBUSY;
        if (!reload_can_restart(supervisor, why, size))
                return -ECANCELED;
        snprintf(lead->successor, sizeof(lead->successor), "%s", successor);
        reload_by_restart(supervisor, "it was told to step down");
        return 0;
}
