/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/messages.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "children/child-process.h"
#include "controller/change/change.h"
#include "controller/change/owed.h"
#include "controller/due/push.h"
#include "controller/due/retry.h"
#include "controller/run/assign.h"
#include "controller/run/outcome.h"
#include "ipc/log.h"
#include "ipc/run-reason.h"
#include "supervisor/children/configure.h"
#include "supervisor/children/tell.h"
#include "supervisor/control/control.h"
#include "supervisor/control/explain.h"
#include "supervisor/control/tell-gateway.h"
#include "supervisor/handlers/access-news.h"
#include "supervisor/handlers/measured.h"
#include "supervisor/heartbeat.h"
#include "supervisor/lead.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/begin-end.h"
#include "supervisor/watches/health.h"

/* ---- the way of an Event from the worker that wants it to the one that counts all Events of its object. The
 * object alone decides which one that is, as long as the workers stay. */

/* The worker that counts the Events of this object; NULL if none is there for long enough. */
static struct worker *counting_worker(const struct supervisor *supervisor, uint64_t object)
{
        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                struct worker *worker =
                        &supervisor->controller.worker[(object % supervisor->controller.worker_count + i) %
                                                       supervisor->controller.worker_count];

                if (worker_child(worker)->process.state == CHILD_RUNNING)
                        return worker;
        }
        return NULL;
}

/* Back to the sender where it is the one that counts. */
static void event_pass_on(struct worker *from, const struct message_report *report)
{
        struct worker *to = counting_worker(from->controller->userdata, report->object);
        struct message_report copy = *report;

        copy.counted = true;
        copy.back = !to || to == from;
        if (!copy.back)
                (void)channel_send(worker_child(from)->process.channel, MESSAGE_REPORTED,
                                   &(struct message_reported){.identity = report->identity});
        (void)channel_send(copy.back ? worker_child(from)->process.channel
                                     : worker_child(to)->process.channel,
                           MESSAGE_REPORT, &copy);
}

/* ---- watchers: changes, how far they are, and their trouble */

static int health_heard(struct watch *watch, const struct message *message)
{
        struct watch *owner = NULL;
        int r;

        if (message->type == MESSAGE_DEGRADED) {
                if (message->degraded.health == WATCH_HEALTHY)
                        return -EPROTO;
                if (text_replace(&watch_place_of(watch)->heard.reason, message->degraded.reason) < 0 ||
                    text_replace(&watch_place_of(watch)->heard_namespace, message->degraded.namespace_name) <
                            0)
                        return -ENOMEM;
                if (memory_retry_is_awaited(watch, &message->degraded))
                        return text_replace(&watch_place_of(watch)->degraded_reason,
                                            message->degraded.reason);
                watch_place_of(watch)->heard.health = message->degraded.health;
                watch_place_of(watch)->heard.since_realtime = message->degraded.since_realtime;
                watch_place_of(watch)->heard.failures = message->degraded.failures;
        } else {
                if (watch_place_of(watch)->memory_retry.tries > 0)
                        return 0;
                watch_place_of(watch)->heard.health = WATCH_HEALTHY;
                recover(watch);
                if (watch->config->owner)
                        owner = watch_find(watch->controller, watch->config->owner);
                if (owner) /* its objects may wait for this kind */
                        recover(owner);
        }
        r = health_review(watch);
        owned_known(watch); /* what is not served is awaited no longer */
        turn_settle_soon(supervisor_of(watch));
        return r;
}

static int watch_synced(struct watch *watch, const struct message_synced *synced)
{
        int r = change_synced(watch, synced);

        return r < 0 ? r : memory_retry_over(watch);
}

/* -EPROTO: it may not say that; -ENOMEM. */
static int watcher_message(struct watch *watch, const struct message *message)
{
        switch (message->type) {
        case MESSAGE_KEYS:
                return change_keys(watch, &message->keys);
        case MESSAGE_SYNCED:
                return watch_synced(watch, &message->synced);
        case MESSAGE_CHECKED:
                return change_checked(watch, &message->checked);
        case MESSAGE_SWEPT:
                return change_swept(watch, &message->swept);
        case MESSAGE_POSITION:
                return control_take_position(watch, &message->position);
        case MESSAGE_DEGRADED:
        case MESSAGE_RECOVERED:
                return health_heard(watch, message);
        default:
                return -EPROTO;
        }
}

/* ---- all children */

#define EOF_GRACE_USEC (2 * USEC_PER_SEC)

static struct watch *watch_of(const struct child_slot *child)
{
        return child->process.role == ROLE_WATCHER ? &child->supervisor->controller.watch[child->index]
                                                   : NULL;
}

static int take_done(struct worker *worker, const struct message_done *done)
{
        struct supervisor *supervisor = worker->controller->userdata;
        struct assignment given;
        int r = assign_take(worker, done, &given);

        if (done->unanswered || (done->result == RESULT_CANCELLED && supervisor->phase > PHASE_RUNNING))
                supervisor->lead.is_cut_off = true;

        if (r >= 0)
                r = outcome_done(&supervisor->controller, &given, done);
        if (done->handler_out_of_memory)
                supervisor->memory_kills = cgroup_memory_kills();
        if (r >= 0 && !finalizer_is_reason(given.run.reason))
                explain_ended(supervisor, &given, done);
        return r;
}

static int deliver_to_role(struct child_slot *child, struct message **message)
{
        struct supervisor *supervisor = child->supervisor;

        switch ((*message)->type) {
        case MESSAGE_HEARTBEAT:
                heartbeat_note(child, &(*message)->heartbeat);
                return 0;
        case MESSAGE_CREDENTIAL:
                return tell_credential(supervisor, message);
        case MESSAGE_ACCESS:
                return access_take(supervisor, &(*message)->access);
        case MESSAGE_THROTTLE:
                tell_throttle(child, &(*message)->throttle);
                return 0;
        case MESSAGE_REFRESH:
                tell_refresh(supervisor, &(*message)->refresh);
                return 0;
        case MESSAGE_ANSWERED:
                return assign_answered(&supervisor->controller.worker[child->index], &(*message)->answered);
        case MESSAGE_MEASURED:
                return measured_take(supervisor, &(*message)->measured);
        case MESSAGE_DONE:
                return take_done(&supervisor->controller.worker[child->index], &(*message)->done);
        case MESSAGE_LEASE:
                return lead_take(supervisor, &(*message)->lease);
        case MESSAGE_REPORT:
                event_pass_on(&supervisor->controller.worker[child->index], &(*message)->report);
                return 0;
        default:
                return child->process.role == ROLE_WATCHER ? watcher_message(watch_of(child), *message)
                                                           : -EPROTO;
        }
}

static int child_configure(struct child_slot *child, const struct message_hello *hello)
{
        int r;

        if (hello->version != PROTOCOL_VERSION || strcmp(hello->role, role_name(child->process.role)) != 0)
                return -EPROTO;
        r = configure_child(child);
        if (r >= 0)
                child_set_state(child, CHILD_CONFIGURED);
        return r;
}

static void take_ready(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;

        child_set_state(child, CHILD_RUNNING);
        tell_ready(child);
        if (supervisor->phase > PHASE_STARTING)
                return;
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].process.state != CHILD_RUNNING &&
                    lead_is_due(&supervisor->child[i]))
                        return;
        if (supervisor->phase == PHASE_STARTING)
                supervisor_set_phase(supervisor, PHASE_RUNNING);
        reload_over(supervisor);
        supervisor->reload.since = 0; /* a follower that leads one day does not begin again then */
        notify_ready(supervisor);
        gateway_tell_change(supervisor);
}

static void child_said_fatal(struct child_slot *child, const struct message_fatal *fatal)
{
        int code = fatal->exit_code <= 255 && exit_code_name((int)fatal->exit_code) &&
                                   fatal->exit_code != EXIT_CODE_OK
                           ? (int)fatal->exit_code
                           : EXIT_CODE_SOFTWARE;
        char who[128];

        child->blameless = fatal->blameless;
        child_describe(child, who, sizeof(who));
        supervisor_fatal(child->supervisor, code, child, NULL, "the %s gives up: %s", who, fatal->reason);
}

/* If the whole control group was signalled (`systemctl kill`), the supervisor gets a SIGTERM of its own. */
static void child_was_signalled(struct child_slot *child, const struct message_signalled *signalled)
{
        char who[128];

        if (child->process.state == CHILD_STOPPING)
                return;
        child->blameless = true;
        child_describe(child, who, sizeof(who));
        supervisor_fatal_unless_stopped(
                child,
                "process %llu of user %llu has sent SIGTERM to the %s (to end the operator, send it to "
                "process %d)",
                (unsigned long long)signalled->sender_pid, (unsigned long long)signalled->sender_uid, who,
                (int)getpid());
}

static int on_child_message(struct channel *channel _unused_, struct message **message, void *userdata)
{
        struct child_slot *child = userdata;

        turn_is(child->supervisor, message_name((*message)->type));
        child->last_heartbeat = child->supervisor->controller.now.monotonic;
        if ((*message)->type == MESSAGE_SIGNALLED) {
                child_was_signalled(child, &(*message)->signalled);
                return 0;
        }
        switch (child_reaction(child->process.state, child_event_of((*message)->type))) {
        case ACT_CONFIGURE:
                return child_configure(child, &(*message)->hello);
        case ACT_START:
                take_ready(child);
                return 0;
        case ACT_DELIVER:
                return child->supervisor->controller.is_over ? 0 : deliver_to_role(child, message);
        case ACT_DIE:
                if ((*message)->type != MESSAGE_FATAL)
                        return -EPROTO;
                child_said_fatal(child, &(*message)->fatal);
                return 0;
        case ACT_IGNORE:
                return 0;
        default:
                return -EPROTO;
        }
}

static int on_eof_too_long(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct child_slot *child = userdata;
        char who[128];

        child_describe(child, who, sizeof(who));
        supervisor_fatal(child->supervisor, EXIT_CODE_SOFTWARE, child, NULL,
                         "the %s closed its channel but did not end", who);
        return 0;
}

static void await_exit(struct child_slot *child)
{
        if (sd_event_add_time_relative(child->supervisor->event, &child->eof_timer, CLOCK_MONOTONIC,
                                       EOF_GRACE_USEC, 0, on_eof_too_long, child) < 0)
                on_eof_too_long(NULL, 0, child);
}

static void on_child_error(struct channel *channel _unused_, int status, const char *reason, void *userdata)
{
        struct child_slot *child = userdata;
        enum child_event event = status == -ECONNRESET ? EVENT_EOF : EVENT_VIOLATION;
        char who[128];

        child_describe(child, who, sizeof(who));
        switch (child_reaction(child->process.state, event)) {
        case ACT_AWAIT:
                await_exit(child);
                return;
        case ACT_DIE:
                supervisor_fatal(child->supervisor, EXIT_CODE_SOFTWARE, child, NULL,
                                 "the %s broke the protocol: %s", who, reason);
                return;
        default:
                if (event == EVENT_VIOLATION && child->supervisor->phase != PHASE_TEARDOWN)
                        log_warning("the %s was told to end, and broke the protocol: %s", who, reason);
                return;
        }
}

static void on_drained(struct channel *channel _unused_, void *userdata)
{
        struct child_slot *child = userdata;

        if (child->process.role == ROLE_WATCHER)
                owed_continue(watch_of(child));
}

const struct channel_callbacks child_messages = {
        .on_message = on_child_message,
        .on_error = on_child_error,
        .on_drained = on_drained,
};
