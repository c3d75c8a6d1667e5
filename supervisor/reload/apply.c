/* SPDX-License-Identifier: Apache-2.0 */
/* See apply.h. */
#include "supervisor/reload/apply.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "children/program.h"
#include "config/watch.h"
#include "controller/change/epoch.h"
#include "controller/change/unsure.h"
#include "controller/order/may-run.h"
#include "controller/order/pause.h"
#include "controller/run/assign.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "queue/watch.h"
#include "supervisor/children/child.h"
#include "supervisor/children/configure.h"
#include "supervisor/children/start.h"
#include "supervisor/children/tell.h"
#include "supervisor/fatal.h"
#include "supervisor/folders/leftover-finalizers.h"
#include "supervisor/folders/secrets.h"
#include "supervisor/handlers/access.h"
#include "supervisor/handlers/limits.h"
#include "supervisor/handlers/separation.h"
#include "supervisor/handlers/stamp.h"
#include "supervisor/notify.h"
#include "supervisor/phase.h"
#include "supervisor/supervisor.h"
#include "supervisor/turn.h"
#include "supervisor/watches/begin-end.h"
#include "supervisor/watches/memory-retry.h"
#include "supervisor/watches/place.h"

#define END_USEC  (5 * USEC_PER_SEC) /* for a child that has nothing to do any more */
#define KILL_USEC (5 * USEC_PER_SEC)

/* ---- taking it over */

/* The watches that cannot go on as they are: marks[place]. */
static int judge_watches(const struct supervisor *supervisor, const struct config *config, bool *marks)
{
        FOREACH_WATCH(watch, &supervisor->controller) {
                const struct config_watch *next = config_watch_find(config, watch->config->name);
                int r = next ? configure_watcher_differs(supervisor, watch->config, config, next) : 1;

                if (r < 0)
                        return r;
                marks[watch_number(watch)] = r > 0;
        }
        /* Owned and related kinds are those of its objects: they leave with it. */
        FOREACH_WATCH(watch, &supervisor->controller) {
                const struct watch *owner =
                        watch->config->owner ? watch_find(&supervisor->controller, watch->config->owner)
                                             : NULL;

                if (owner && marks[watch_number(owner)])
                        marks[watch_number(watch)] = true;
        }
        return 0;
}

static void watch_keep(struct watch *watch, const struct config_watch *config)
{
        watch->config = config;
        queue_set_concurrency(watch->controller->queue, watch_number(watch),
                              watch_limit(watch->controller, config));
        limits_judge(watch);
}

/* ---- saying what follows */

static void add_name(struct text *text, const char *what, const char *name)
{
        if (text->size == 0)
                text_printf(text, "%s %s", what, name);
        else
                text_printf(text, ", %s", name);
}

static void add_part(struct text *text, const struct text *part)
{
        if (part->size > 0)
                text_printf(text, "%s; ", part->data);
}

/* Those of owned and related objects go without saying. */
static int describe(const struct supervisor *supervisor, const struct config *config, const bool *marks,
                    struct text *ret)
{
        _cleanup_text_ struct text added = TEXT_EMPTY, removed = TEXT_EMPTY, changed = TEXT_EMPTY;

        for (size_t i = 0; i < config->watch_count; i++)
                if (!config->watch[i].owner && !watch_find(&supervisor->controller, config->watch[i].name))
                        add_name(&added, "added", config->watch[i].name);
        FOREACH_WATCH(watch, &supervisor->controller) {
                if (watch->leaving || watch->config->owner || !marks[watch_number(watch)])
                        continue;
                if (config_watch_find(config, watch->config->name))
                        add_name(&changed, "started anew", watch->config->name);
                else
                        add_name(&removed, "removed", watch->config->name);
        }
        add_part(ret, &added);
        add_part(ret, &removed);
        add_part(ret, &changed);
        if (ret->size == 0)
                text_append_string(ret, "no watch is started or ended; ");
        return ret->failed || added.failed || removed.failed || changed.failed ? -ENOMEM : 0;
}

static int keep_old_config(struct supervisor *supervisor)
{
        struct config **grown =
                reallocarray(supervisor->reload.old_config, supervisor->reload.old_config_count + 1,
                             sizeof(struct config *));

        if (!grown)
                return -ENOMEM;
        supervisor->reload.old_config = grown;
        grown[supervisor->reload.old_config_count++] = supervisor->config;
        return 0;
}

static void take_over(struct supervisor *supervisor, struct config *config, const bool *marks)
{
        supervisor->config = config;
        supervisor->controller.config = config;
        supervisor->reload.refused[0] = '\0';
        FOREACH_WATCH(watch, &supervisor->controller) {
                if (watch->leaving)
                        continue;
                if (marks[watch_number(watch)])
                        watch_leave(watch, config->stop_grace_usec);
                else
                        watch_keep(watch, config_watch_find(config, watch->config->name));
        }
        /* A watch that stays may have new owned kinds to wait for, or none any more. */
        FOREACH_WATCH(watch, &supervisor->controller)
                if (!watch->leaving)
                        pause_apply(watch);
        for (size_t i = 0; i < supervisor->controller.worker_count; i++)
                supervisor->controller.worker[i].stale = true;
        assign_recall(&supervisor->controller, "the configuration is a new one");
        supervisor->reload.changing = supervisor->reload.owes_ready = true;
        supervisor->controller.reloads++;
}

int reload_apply(struct supervisor *supervisor, struct config *config)
{
        _cleanup_free_ bool *marks = calloc(supervisor->controller.watch_room, sizeof(bool));
        _cleanup_text_ struct text what = TEXT_EMPTY;
        int r = marks ? judge_watches(supervisor, config, marks) : -ENOMEM;

        if (r >= 0)
                r = describe(supervisor, config, marks, &what);
        if (r >= 0)
                r = keep_old_config(supervisor);
        if (r < 0)
                return r;
        take_over(supervisor, config, marks);
        log_write(LOG_NOTICE, MESSAGE_ID_RELOADED, NULL,
                  "operator %s takes its new configuration without a restart: %severy worker takes it after "
                  "its current run; nothing else is touched",
                  config->operator_name, what.data);
        tell_refresh(supervisor, &(struct message_refresh){.files = true});
        separation_warn(supervisor);
        secrets_warn(supervisor);
        if ((r = leftover_finalizers_review(supervisor)) < 0)
                log_warning("the state folder cannot keep which objects have a finalizer: %s", strerror(-r));
        handlers_take_up(supervisor);
        reload_continue(supervisor);
        return 0;
}

/* ---- carrying it out */

static void cannot_start(struct supervisor *supervisor, const struct child_slot *child, int status)
{
        supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                         "a %s cannot be started for the new configuration: %s",
                         child_binary(child->process.role), strerror(-status));
}

static void child_end(struct child_slot *child)
{
        if (child->process.state == CHILD_STOPPING || child->process.state == CHILD_GONE)
                return;
        child_stop(child, 0);
        child->end_by = clock_monotonic_usec() + END_USEC;
}

/* Also of its owner: its run shows them to the handler. */
static bool has_run(const struct watch *watch, const struct worker *worker)
{
        for (size_t i = 0; i < worker->given_count; i++) {
                const struct watch *other = &watch->controller->watch[worker->given[i].run.watch];

                if (other == watch || (other->leaving && watch->config->owner &&
                                       strcmp(watch->config->owner, other->config->name) == 0))
                        return true;
        }
        return false;
}

static bool has_runs(const struct watch *watch)
{
        const struct supervisor *supervisor = supervisor_of(watch);

        for (size_t i = 0; i < supervisor->controller.worker_count; i++)
                if (has_run(watch, &supervisor->controller.worker[i]))
                        return true;
        return false;
}

/* Only the run that has begun: the worker has given back the others. */
static void cancel_run(const struct watch *watch, const struct worker *worker)
{
        const struct queue_run *run = worker_run(worker);

        if (!run || worker->given[0].to_send || run->watch != watch_number(watch))
                return;
        log_warning("a run of %s has not ended within stop.grace although watch %s leaves; it is ended",
                    run->key, watch->config->name);
        (void)channel_send(worker_child(worker)->process.channel, MESSAGE_CANCEL,
                           &(struct message_cancel){.sequence = run->id, .reason = "its watch leaves"});
}

static void cancel_runs(struct watch *watch)
{
        const struct supervisor *supervisor = supervisor_of(watch);

        if (place_of(watch)->cancelled || clock_monotonic_usec() < place_of(watch)->leave_by)
                return;
        place_of(watch)->cancelled = true;
        for (size_t i = 0; i < supervisor->controller.worker_count; i++)
                cancel_run(watch, &supervisor->controller.worker[i]);
}

static int begin_watch(struct supervisor *supervisor, const struct config_watch *config, struct watch **ret)
{
        int r = watch_begin(supervisor, config, ret);

        if (r < 0)
                return r;
        /* Its due rows are looked for when it is in sync. */
        supervisor->controller.due.synced = SIZE_MAX;
        limits_judge(*ret);
        r = pause_load(*ret);
        if (r >= 0)
                r = access_apply(*ret);
        if (r >= 0)
                r = unsure_load(*ret);
        if (r >= 0)
                r = epoch_load(*ret);
        if (r >= 0)
                r = handler_take_up(*ret);
        return r < 0 ? r : child_start(child_of(*ret));
}

/* Counters go on where a watch of the same name follows: to people it is the same watch. */
static int begin_next(const struct watch *counted, const struct watch_place *former, const char *reason,
                      struct supervisor *supervisor, const struct config_watch *config)
{
        struct watch *next;
        int r = begin_watch(supervisor, config, &next);

        if (r < 0)
                return r;
        next->metrics = counted->metrics;
        next->successes = counted->successes;
        next->failures_total = counted->failures_total;
        return former->memory_retry.begun ? memory_retry_carry_over(former, counted->health, reason, next)
                                          : 0;
}

static void release(struct watch *watch)
{
        struct supervisor *supervisor = supervisor_of(watch);
        const char *name = watch->config->name;
        const struct config_watch *next = config_watch_find(supervisor->config, name);
        _cleanup_free_ char *reason =
                strdup(place_of(watch)->heard.reason ? place_of(watch)->heard.reason : "");
        const struct watch_place former = *place_of(watch);
        const struct watch counted = *watch;
        int r = reason ? watch_end(watch) : -ENOMEM;

        if (r == -EAGAIN) {
                turn_settle_soon(supervisor);
                return;
        }
        if (r >= 0 && next)
                r = begin_next(&counted, &former, reason, supervisor, next);
        if (r < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL, "watch %s cannot be %s: %s",
                                 name, next ? "started" : "removed", strerror(-r));
}

static void end_leaving(struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, &supervisor->controller) {
                if (!watch->leaving || supervisor->phase != PHASE_RUNNING)
                        continue;
                if (has_runs(watch))
                        cancel_runs(watch);
                else if (child_of(watch)->process.state == CHILD_GONE)
                        release(watch);
                else
                        child_end(child_of(watch));
        }
}

static bool has_place(const struct supervisor *supervisor, const char *name)
{
        FOREACH_WATCH(watch, &supervisor->controller)
                if (strcmp(watch->config->name, name) == 0)
                        return true;
        return false;
}

/* A watch that leaves for a successor of the same name still has its place: the successor waits. */
static void begin_wanted(struct supervisor *supervisor)
{
        const struct config *config = supervisor->config;

        for (size_t i = 0; i < config->watch_count && supervisor->phase == PHASE_RUNNING; i++) {
                struct watch *watch;
                int r = has_place(supervisor, config->watch[i].name)
                                ? 0
                                : begin_watch(supervisor, &config->watch[i], &watch);

                if (r < 0 && r != -ENOSPC)
                        supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                         "watch %s cannot be started: %s", config->watch[i].name,
                                         strerror(-r));
        }
}

static void renew_workers(struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->controller.worker_count && supervisor->phase == PHASE_RUNNING;
             i++) {
                struct worker *worker = &supervisor->controller.worker[i];
                int r = 0;

                if (worker->stale && worker->given_count == 0 &&
                    worker_child(worker)->process.state == CHILD_RUNNING)
                        child_end(worker_child(worker));
                if (worker_child(worker)->process.state == CHILD_GONE)
                        r = child_start(worker_child(worker));
                if (r < 0)
                        cannot_start(supervisor, worker_child(worker), r);
        }
}

/* ---- how far it is */

/* systemd waits for this: every watch as it should be, and all workers up. */
static bool is_in_force(const struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, &supervisor->controller)
                if (watch->leaving || child_of(watch)->process.state != CHILD_RUNNING)
                        return false;
        if (watches_in_force(supervisor) < supervisor->config->watch_count)
                return false;
        for (size_t i = 0; i < supervisor->controller.worker_count; i++)
                if (worker_child(&supervisor->controller.worker[i])->process.state != CHILD_RUNNING)
                        return false;
        return true;
}

static bool has_stale_workers(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->controller.worker_count; i++)
                if (supervisor->controller.worker[i].stale)
                        return true;
        return false;
}

static void forget_old_configs(struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, &supervisor->controller)
                if (watch->leaving)
                        return;
        while (supervisor->reload.old_config_count > 0)
                config_free(supervisor->reload.old_config[--supervisor->reload.old_config_count]);
}

/* ---- what takes too long */

static void end_late(struct child_slot *child)
{
        char who[128];

        if (child->end_by == 0 || clock_monotonic_usec() < child->end_by)
                return;
        child_describe(child, who, sizeof(who));
        if (child->killed) {
                supervisor_fatal(child->supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "the %s cannot be ended, not even by SIGKILL", who);
                return;
        }
        log_warning("the %s did not end in time and is killed", who);
        child->killed = true;
        child->end_by = clock_monotonic_usec() + KILL_USEC;
        child_signal(child, SIGKILL);
}

static int on_late(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        for (size_t i = 0; i < supervisor->child_count && supervisor->phase == PHASE_RUNNING; i++)
                end_late(&supervisor->child[i]);
        reload_continue(supervisor);
        return 0;
}

static uint64_t next_time(const struct supervisor *supervisor)
{
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < supervisor->child_count; i++) {
                const struct child_slot *child = &supervisor->child[i];

                if (child->end_by > 0 && child->end_by < next)
                        next = child->end_by;
        }
        FOREACH_WATCH(watch, &supervisor->controller)
                if (watch->leaving && !place_of(watch)->cancelled && place_of(watch)->leave_by < next)
                        next = place_of(watch)->leave_by;
        return next;
}

static void arm(struct supervisor *supervisor)
{
        uint64_t next = next_time(supervisor);
        int r = 0;

        supervisor->reload.timer = sd_event_source_disable_unref(supervisor->reload.timer);
        if (next != UINT64_MAX)
                r = sd_event_add_time(supervisor->event, &supervisor->reload.timer, CLOCK_MONOTONIC, next, 1,
                                      on_late, supervisor);
        if (r < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL, "no timer for a reload: %s",
                                 strerror(-r));
}

void reload_continue(struct supervisor *supervisor)
{
        if (!supervisor->reload.changing || supervisor->phase != PHASE_RUNNING)
                return;
        end_leaving(supervisor);
        begin_wanted(supervisor);
        renew_workers(supervisor);
        if (supervisor->phase != PHASE_RUNNING)
                return;
        forget_old_configs(supervisor);
        if (is_in_force(supervisor)) {
                if (supervisor->reload.owes_ready)
                        notify_ready(supervisor);
                supervisor->reload.owes_ready = false;
                supervisor->reload.changing = has_stale_workers(supervisor);
        }
        arm(supervisor);
}
