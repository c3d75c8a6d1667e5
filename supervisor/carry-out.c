/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/carry-out.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/change/owed.h"
#include "controller/controller.h"
#include "controller/due/due.h"
#include "controller/effects.h"
#include "supervisor/folders/under-way.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/health.h"

#define OWED_QUEUED_MAX ((size_t)256 * 1024) /* pages leave only as fast as the watcher reads them */

/* ---- when it is called again */

static void on_settle_effect(void *userdata)
{
        turn_settle_soon(userdata);
}

static int on_queue_due(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        turn_settle_soon(userdata);
        return 0;
}

static int on_commit_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        controller_commit_time(&supervisor->controller);
        return 0;
}

static int on_due(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        turn_is(supervisor, "rows that are due");
        due_take(&supervisor->controller);
        return 0;
}

static void on_wake_effect(void *userdata, enum controller_wake what, uint64_t at)
{
        static const struct {
                sd_event_time_handler_t handler;
                uint64_t accuracy_usec;
                int64_t priority; /* where there are many due rows, all else has its turn between them */
        } timer[WAKE_COUNT] = {
                [WAKE_QUEUE] = {on_queue_due, 1, 0},
                [WAKE_COMMIT] = {on_commit_time, 1, 0},
                [WAKE_DUE] = {on_due, 0, SETTLE_PRIORITY},
        };
        struct supervisor *supervisor = userdata;
        sd_event_source **source = &supervisor->wake_source[what];
        int r = 0;

        assert(what < WAKE_COUNT);
        if (!*source && at != UINT64_MAX) {
                r = sd_event_add_time(supervisor->event, source, CLOCK_BOOTTIME, at,
                                      timer[what].accuracy_usec, timer[what].handler, supervisor);
                if (r >= 0)
                        r = sd_event_source_set_priority(*source, timer[what].priority);
        } else if (*source) {
                if (at != UINT64_MAX)
                        r = sd_event_source_set_time(*source, at);
                if (r >= 0)
                        r = sd_event_source_set_enabled(*source,
                                                        at == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
        }
        if (r < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL, "no timer for the queue: %s",
                                 strerror(-r));
}

static int on_queue_idle(sd_event_source *source _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        turn_is(supervisor, "work that has time");
        controller_idle(&supervisor->controller);
        return 0;
}

static void idle(void *userdata)
{
        struct supervisor *supervisor = userdata;

        if (turn_when_idle(supervisor, &supervisor->idle_source, on_queue_idle) < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "no memory for an event source");
}

static int on_next_page(sd_event_source *source _unused_, void *userdata)
{
        struct watch *watch = userdata;

        turn_is(supervisor_of(watch), "a page of the ledger for a watcher");
        owed_page(watch);
        return 0;
}

static void next_page(void *userdata, struct watch *watch)
{
        struct supervisor *supervisor = userdata;
        sd_event_source **source = &watch_place_of(watch)->owed_source;
        int r = 0;

        if (!*source) {
                r = sd_event_add_defer(supervisor->event, source, on_next_page, watch);
                if (r >= 0)
                        r = sd_event_source_set_priority(*source, SETTLE_PRIORITY);
        }
        if (r >= 0)
                r = sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT);
        if (r < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "no memory for an event source");
}

/* ---- to workers */

/* Ends the operator, but not at once: the controller is in the middle of a turn, and the end blames runs. */
static void cannot_send(struct worker *worker, int status)
{
        char who[128];

        child_describe(worker_child(worker), who, sizeof(who));
        controller_fatal(worker->controller, EXIT_CODE_SOFTWARE, NULL, "runs cannot be sent to the %s: %s",
                         who, strerror(-status));
}

static void batch(void *userdata _unused_, struct worker *worker, bool begins)
{
        struct channel *channel = worker_child(worker)->process.channel;
        int r = 0;

        if (begins)
                channel_cork(channel);
        else
                r = channel_uncork(channel);
        if (r < 0)
                cannot_send(worker, r);
}

static void carry_out_run(void *userdata, struct worker *worker, struct assignment *given,
                          const struct message_run *message)
{
        int r;

        under_way_note(userdata, given);
        r = channel_send(worker_child(worker)->process.channel, MESSAGE_RUN, message);
        if (r < 0)
                cannot_send(worker, r);
}

static bool ended(void *userdata, struct worker *worker _unused_, const struct assignment *given,
                  bool has_begun)
{
        if (given->named > 0)
                lasting_is_due(userdata);
        return under_way_end(userdata, given, has_begun);
}

static void committed(void *userdata)
{
        under_way_committed(userdata);
}

static void recall(void *userdata _unused_, struct worker *worker, const char *reason)
{
        (void)channel_send(worker_child(worker)->process.channel, MESSAGE_RECALL,
                           &(struct message_recall){.reason = reason});
}

static void cancel(void *userdata _unused_, struct worker *worker, uint64_t id, const char *reason)
{
        (void)channel_send(worker_child(worker)->process.channel, MESSAGE_CANCEL,
                           &(struct message_cancel){.sequence = id, .reason = reason});
}

/* ---- to watchers */

static void handled(void *userdata _unused_, struct watch *watch, const struct message_handled *message)
{
        (void)channel_send(child_of(watch)->process.channel, MESSAGE_HANDLED, message);
}

static void credit(void *userdata _unused_, struct watch *watch, uint64_t amount, bool again)
{
        (void)channel_send(
                child_of(watch)->process.channel, MESSAGE_CREDIT,
                &(struct message_credit){.watch = watch->config->name, .amount = amount, .again = again});
}

static int owed(void *userdata _unused_, struct watch *watch, const struct message_owed *message)
{
        return channel_send(child_of(watch)->process.channel, MESSAGE_OWED, message);
}

static bool channel_has_room(const void *userdata _unused_, const struct watch *watch)
{
        return channel_queued(child_of(watch)->process.channel) < OWED_QUEUED_MAX;
}

/* ---- to people */

static int health(void *userdata _unused_, struct watch *watch)
{
        return watch_place_of(watch)->heard.health == WATCH_HEALTHY ? health_review(watch) : 0;
}

static void write_log(void *userdata _unused_, int priority, const char *message_id,
                      const struct log_field *field, const char *text)
{
        log_write(priority, message_id, field, "%s", text);
}

static void fatal(void *userdata, int exit_code, const char *key, const char *cause)
{
        supervisor_fatal(userdata, exit_code, NULL, key[0] ? key : NULL, "%s", cause);
}

/* ---- what it asks */

static bool has_time(const void *userdata)
{
        return !turn_is_spent(userdata);
}

static uint64_t make_random(void *userdata _unused_)
{
        uint64_t random = 0;

        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
                random = clock_boottime_usec();
        return random;
}

const struct controller_effects supervisor_effects = {
        .settle = on_settle_effect,
        .wake = on_wake_effect,
        .idle = idle,
        .next_page = next_page,
        .batch = batch,
        .run = carry_out_run,
        .ended = ended,
        .committed = committed,
        .recall = recall,
        .cancel = cancel,
        .handled = handled,
        .credit = credit,
        .owed = owed,
        .has_room = channel_has_room,
        .health = health,
        .log = write_log,
        .fatal = fatal,
        .has_time = has_time,
        .may_leave = lasting_may_leave,
        .random = make_random,
};

/* Keeps the time of the start in terms of the clock as it is set now: otherwise the uptime would be wrong. */
static void move_start(struct supervisor *supervisor, const struct controller_now *now)
{
        uint64_t up = now->boottime - supervisor->life.started_boottime,
                 started = now->realtime > up ? now->realtime - up : 0,
                 *known = &supervisor->life.started_realtime;

        if (started > *known + USEC_PER_SEC || started + USEC_PER_SEC < *known)
                *known = started;
}

void effects_tell_time(struct supervisor *supervisor)
{
        const struct controller_now now = {
                .boottime = clock_boottime_usec(),
                .realtime = clock_realtime_usec(),
                .monotonic = clock_monotonic_usec(),
        };

        controller_tell_time(&supervisor->controller, &now);
        move_start(supervisor, &now);
}

void effects_free(struct supervisor *supervisor)
{
        for (size_t i = 0; i < WAKE_COUNT; i++)
                sd_event_source_disable_unref(supervisor->wake_source[i]);
        sd_event_source_disable_unref(supervisor->settle_source);
        sd_event_source_disable_unref(supervisor->idle_source);
}
