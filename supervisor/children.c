/* SPDX-License-Identifier: Apache-2.0 */
/* The children: slots, what they say, how they end. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/change/change.h"
#include "controller/change/finalizer.h"
#include "controller/change/owed.h"
#include "controller/run/assign.h"
#include "controller/run/outcome.h"
#include "ipc/spawner/client.h"
#include "os/syscall.h"
#include "store/suspect.h"
#include "supervisor/child-state.h"
#include "supervisor/supervisor.h"

#define EOF_GRACE_USEC (2 * USEC_PER_SEC)

static struct watch *watch_of(const struct child_slot *child)
{
        return child->kind == KIND_WATCHER ? &child->supervisor->controller.watch[child->index] : NULL;
}

void child_describe(const struct child_slot *child, char *buffer, size_t size)
{
        const char *name = role_name(child_role(child->kind));

        if (child->kind == KIND_WATCHER)
                snprintf(buffer, size, "%s of watch %s (pid %d)", name, watch_of(child)->config->name,
                         child->pid);
        else if (child->kind == KIND_WORKER)
                snprintf(buffer, size, "%s %zu (pid %d)", name, child->index, child->pid);
        else
                snprintf(buffer, size, "%s (pid %d)", name, child->pid);
}

struct child_slot *worker_child(const struct worker *worker)
{
        struct supervisor *supervisor = worker->controller->userdata;

        return &supervisor->worker_child[worker - worker->controller->worker];
}

void child_set_state(struct child_slot *child, enum child_state state)
{
        struct controller *controller = &child->supervisor->controller;

        child->state = state;
        if (child->kind == KIND_WATCHER)
                controller->watch[child->index].is_up = state == CHILD_RUNNING;
        if (child->kind == KIND_WORKER)
                controller->worker[child->index].is_up = state == CHILD_RUNNING;
        if (child->channel)
                channel_set_state(child->channel, state);
}

/* ---- how it ended */

const char *child_busy_with(const struct child_slot *child)
{
        const struct queue_run *run;

        if (child->kind != KIND_WORKER)
                return NULL;
        run = worker_run(&child->supervisor->controller.worker[child->index]);
        return run ? run->key : NULL;
}

/* Of a child; those of handlers are told with their runs. */
static const char *why_killed(struct supervisor *supervisor, int status)
{
        int64_t before = supervisor->memory_kills;

        if (before < 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                return "";
        supervisor->memory_kills = cgroup_memory_kills();
        return supervisor->memory_kills > before ? ", by the kernel for lack of memory" : "";
}

static void describe_exit(struct supervisor *supervisor, int status, char *buffer, size_t size)
{
        if (WIFSIGNALED(status))
                snprintf(buffer, size, "was killed by signal %s%s%s", sigabbrev_np(WTERMSIG(status)),
                         WCOREDUMP(status) ? " (core dumped)" : "", why_killed(supervisor, status));
        else if (WEXITSTATUS(status) == 127)
                snprintf(buffer, size, "could not be executed (exit code 127)");
        else
                snprintf(buffer, size, "exited by itself with code %d", WEXITSTATUS(status));
}

static const struct watch *store_in_use(const struct child_slot *child)
{
        const struct supervisor *supervisor = child->supervisor;
        const struct queue_run *run;

        if (child->kind == KIND_WATCHER)
                return &supervisor->controller.watch[child->index];
        run = child->kind == KIND_WORKER ? worker_run(&supervisor->controller.worker[child->index]) : NULL;
        return run ? &supervisor->controller.watch[run->watch] : NULL;
}

/* These are the signals of one who walks through damaged pages; if the pages are to blame, the next one to
 * walk there would die as well, and so at every start. A list of the API server is cheaper than that. */
static void suspect_store(const struct child_slot *child, int status)
{
        const struct watch *watch = store_in_use(child);
        int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0, r;
        char why[128];

        if (!watch || (signal != SIGSEGV && signal != SIGBUS && signal != SIGABRT))
                return;
        snprintf(why, sizeof(why), "a %s died of SIG%s while it used the store",
                 role_name(child_role(child->kind)), sigabbrev_np(signal));
        r = store_suspect_mark(place_of(watch)->store_folder, why);
        if (r < 0 && r != -ENOENT)
                log_error(
                        "the object store %s cannot be marked as suspect: %s; if the operator dies the same "
                        "way again, remove this folder",
                        place_of(watch)->store_folder, strerror(-r));
}

/* In an orderly end it changes nothing any more, but somebody should know of it. Our own SIGKILL is said. */
static void tell_bad_end(const struct child_slot *child, int status, const char *who, const char *how)
{
        bool ours = child->killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

        if (child->supervisor->phase != PHASE_TEARDOWN && status != 0 && !ours)
                log_warning("the %s was told to end, and %s", who, how);
}

static void child_exited(struct child_slot *child, int status)
{
        enum child_action action;
        char how[128], who[128];

        /* What it said before it ended says more than how it ended, but may come to us later. */
        if (child->channel)
                channel_read_rest(child->channel);
        action = child_reaction(child->state, EVENT_EXIT);
        suspect_store(child, status);
        child_describe(child, who, sizeof(who));
        describe_exit(child->supervisor, status, how, sizeof(how));
        if (action == ACT_DIE)
                supervisor_fatal(child->supervisor, EXIT_CODE_SOFTWARE, child, NULL, "the %s %s", who, how);
        else
                tell_bad_end(child, status, who, how);
        child_set_state(child, CHILD_GONE);
        child->eof_timer = sd_event_source_disable_unref(child->eof_timer);
        child->end_by = 0;
        teardown_continue(child->supervisor);
}

static void spawner_died(struct supervisor *supervisor, int status)
{
        char how[128];

        describe_exit(supervisor, status, how, sizeof(how));
        spawner_exited(supervisor, how);
}

void spawner_reap(struct supervisor *supervisor)
{
        int status;

        if (spawner_pid() > 0 && sys_reap(spawner_pid(), &status) > 0)
                spawner_died(supervisor, status);
}

/* SIGCHLD coalesces, and as PID 1 or subreaper we also get processes that are not ours: drain. */
void children_reap(struct supervisor *supervisor)
{
        int status;
        pid_t pid;

        while ((pid = sys_reap(-1, &status)) > 0) {
                if (spawner_is(pid))
                        spawner_died(supervisor, status);
                for (size_t i = 0; i < supervisor->child_count; i++)
                        if (supervisor->child[i].pid == pid && supervisor->child[i].state != CHILD_GONE)
                                child_exited(&supervisor->child[i], status);
        }
        teardown_continue(supervisor);
        reload_continue(supervisor);
}

/* ---- what it says */

static int watch_synced(struct watch *watch, const struct message_synced *synced)
{
        int r = change_synced(watch, synced);

        return r < 0 ? r : room_found(watch);
}

static int deliver_watcher(struct watch *watch, struct message *message)
{
        if (watch->leaving)
                return 0;
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

static int run_ended(struct worker *worker, const struct message_done *done)
{
        struct supervisor *supervisor = ((struct supervisor *)worker->controller->userdata);
        struct assignment given;
        int r = assign_take(worker, done, &given);

        if (r >= 0)
                r = outcome_done(&supervisor->controller, &given, done);
        if (done->handler_out_of_memory)
                supervisor->memory_kills = cgroup_memory_kills();
        if (r >= 0 && !finalizer_is_reason(given.run.reason))
                explain_ended(supervisor, given.run.watch, done, run_reason_name(given.run.reason),
                              given.took_usec);
        return r;
}

static int deliver(struct child_slot *child, struct message **message)
{
        struct supervisor *supervisor = child->supervisor;

        switch ((*message)->type) {
        case MESSAGE_HEARTBEAT:
                heartbeat_note(child, &(*message)->heartbeat);
                return 0;
        case MESSAGE_CREDENTIAL:
                return feed_credential(supervisor, message);
        case MESSAGE_ACCESS:
                return access_take(supervisor, &(*message)->access);
        case MESSAGE_THROTTLE:
                feed_throttle(child, &(*message)->throttle);
                return 0;
        case MESSAGE_REFRESH:
                feed_refresh(supervisor, &(*message)->refresh);
                return 0;
        case MESSAGE_DONE:
                return run_ended(&supervisor->controller.worker[child->index], &(*message)->done);
        case MESSAGE_REPORT:
                report_pass_on(&supervisor->controller.worker[child->index], &(*message)->report);
                return 0;
        default:
                return child->kind == KIND_WATCHER ? deliver_watcher(watch_of(child), *message) : -EPROTO;
        }
}

static int child_configure(struct child_slot *child, const struct message_hello *hello)
{
        int r;

        if (hello->version != PROTOCOL_VERSION ||
            strcmp(hello->role, role_name(child_role(child->kind))) != 0)
                return -EPROTO;
        r = feed_config(child);
        if (r >= 0)
                child_set_state(child, CHILD_CONFIGURED);
        return r;
}

static void child_ready(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;

        child_set_state(child, CHILD_RUNNING);
        feed_ready(child);
        if (supervisor->phase != PHASE_STARTING)
                return;
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (child_is_used(&supervisor->child[i]) && supervisor->child[i].state != CHILD_RUNNING)
                        return;
        supervisor_set_phase(supervisor, PHASE_RUNNING);
        notify_ready(supervisor);
        metrics_push_change(supervisor);
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
        supervisor_fatal(child->supervisor, code, child, fatal->key, "the %s gives up: %s", who,
                         fatal->reason);
}

/* If the whole control group was signalled (`systemctl kill`), the supervisor gets a SIGTERM of its own. */
static void child_was_signalled(struct child_slot *child, const struct message_signalled *signalled)
{
        char who[128];

        if (child->state == CHILD_STOPPING)
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

static enum child_event event_of(enum message_type type)
{
        switch (type) {
        case MESSAGE_HELLO:
                return EVENT_HELLO;
        case MESSAGE_READY:
                return EVENT_READY;
        case MESSAGE_FATAL:
                return EVENT_FATAL;
        default:
                return EVENT_MESSAGE;
        }
}

static int on_message(struct channel *channel _unused_, struct message **message, void *userdata)
{
        struct child_slot *child = userdata;

        turn_is(child->supervisor, message_name((*message)->type));
        child->last_heartbeat = child->supervisor->controller.now.monotonic;
        if ((*message)->type == MESSAGE_SIGNALLED) {
                child_was_signalled(child, &(*message)->signalled);
                return 0;
        }
        switch (child_reaction(child->state, event_of((*message)->type))) {
        case ACT_CONFIGURE:
                return child_configure(child, &(*message)->hello);
        case ACT_START:
                child_ready(child);
                return 0;
        case ACT_DELIVER:
                return child->supervisor->controller.is_over ? 0 : deliver(child, message);
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

/* ---- the channel's end */

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

static void on_error(struct channel *channel _unused_, int status, const char *reason, void *userdata)
{
        struct child_slot *child = userdata;
        enum child_event event = status == -ECONNRESET ? EVENT_EOF : EVENT_VIOLATION;
        char who[128];

        child_describe(child, who, sizeof(who));
        switch (child_reaction(child->state, event)) {
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

        if (child->kind == KIND_WATCHER)
                owed_continue(watch_of(child));
}

static const struct channel_callbacks callbacks = {
        .on_message = on_message,
        .on_error = on_error,
        .on_drained = on_drained,
};

/* ---- slots */

int children_new(struct supervisor *supervisor)
{
        bool gateway = supervisor->config->gateway;
        size_t count = 1 + supervisor->controller.watch_room + supervisor->config->workers + gateway,
               next = 1;

        supervisor->child = calloc(count, sizeof(struct child_slot));
        if (!supervisor->child)
                return -ENOMEM;
        supervisor->child[0] = (struct child_slot){.kind = KIND_CREDENTIAL};
        for (size_t i = 0; i < supervisor->controller.watch_room; i++) {
                supervisor->child[next] = (struct child_slot){.kind = KIND_WATCHER, .index = i};
                supervisor->place[i].child = &supervisor->child[next++];
        }
        supervisor->worker_child = &supervisor->child[next];
        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                supervisor->child[next++] = (struct child_slot){.kind = KIND_WORKER, .index = i};
        }
        if (gateway)
                supervisor->child[next] = (struct child_slot){.kind = KIND_GATEWAY};
        for (size_t i = 0; i < count; i++) {
                supervisor->child[i].supervisor = supervisor;
                supervisor->child[i].state = CHILD_GONE;
        }
        supervisor->child_count = count;
        return 0;
}

bool child_is_used(const struct child_slot *child)
{
        return child->kind != KIND_WATCHER || watch_of(child)->config;
}

int child_start(struct child_slot *child)
{
        int fd, r = spawn_child(child, &fd);

        if (r < 0)
                return r;
        channel_free(child->channel); /* of the one that was here before */
        child->channel = NULL;
        counters_keep(&child->past, &child->counters);
        child->counters.count = 0;
        child_set_state(child, CHILD_STARTING);
        child->last_heartbeat = clock_monotonic_usec();
        child->end_by = 0;
        child->killed = child->blameless = false;
        return channel_new(child->supervisor->event, fd, ROLE_SUPERVISOR, child_role(child->kind),
                           &callbacks, child, &child->channel);
}

int children_start(struct supervisor *supervisor)
{
        int r = 0;

        for (size_t i = 0; i < supervisor->child_count && r >= 0; i++)
                if (child_is_used(&supervisor->child[i]))
                        r = child_start(&supervisor->child[i]);
        return r;
}

bool children_all(const struct supervisor *supervisor, enum child_kind kind, enum child_state state)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].kind == kind && supervisor->child[i].state != state)
                        return false;
        return true;
}

bool children_gone(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].state != CHILD_GONE)
                        return false;
        return true;
}

void child_signal(struct child_slot *child, int signal)
{
        if (child->state == CHILD_GONE || child->pid <= 0)
                return;
        child_set_state(child, CHILD_STOPPING);
        child->killed = child->killed || signal == SIGKILL;
        (void)sys_kill(child->pid, signal); /* not reaped yet, so the pid is its own */
}
