/* SPDX-License-Identifier: Apache-2.0 */
#include "process/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "os/cgroup.h"
#include "os/descendants.h"
#include "os/syscall.h"
#include "process/group.h"
#include "process/internal.h"
#include "process/spawn-program.h"
#include "process/streams.h"

#define LINGER_USEC      (100 * USEC_PER_MSEC) /* time for what the handler left behind to end by itself */
#define ANSWER_USEC      (2 * USEC_PER_SEC) /* the same, while it holds stdout: the answer may not be over */
#define SWEEP_USEC       (10 * USEC_PER_MSEC)
#define STUCK_USEC       (5 * USEC_PER_SEC)
#define STUCK_SWEEP_USEC USEC_PER_SEC
#define FREE_USEC        (500 * USEC_PER_MSEC)
#define EXIT_PRIORITY    (-1) /* before the streams */
#define KILLS_USEC       (100 * USEC_PER_MSEC)
#define UNHEARD_USEC     (5 * USEC_PER_MSEC) /* how long the output of a short one may wait in its pipes */

/* The processes that have not been reaped. They share one source for their ends, and one timer for listening to
 * their output: most end within a millisecond, and a descriptor and a timer for each would be a tenth of what
 * such a run costs. Both stay for later runs. */
static struct {
        struct process *first;
        bool last; /* no process is started any more */
        sd_event_source *ends, *clock;
} under_way;

uint64_t process_memory(const struct process *process)
{
        return process->pid > 0 ? usage_memory(process->pid) : 0;
}

void process_usage(const struct process *process, struct process_usage *ret)
{
        *ret = process->usage;
        if (process->pid > 0) {
                ret->cpu_usec = usage_cpu(process->pid);
                ret->memory_peak = usage_peak(process->pid);
        }
        if (process->group)
                group_usage(process->group, ret);
}

/* Reaps the process, and notes the resources that it and its reaped children have used. 0; -EAGAIN if it still
 * runs. */
static int reap(struct process *process)
{
        struct rusage usage;
        siginfo_t info = {0};

        if (syscall(SYS_waitid, P_PID, process->pid, &info, WEXITED | WNOHANG, &usage) < 0) {
                process->wait_status = SIGKILL; /* counts as failed: how it ended is unknown */
                return -errno;
        }
        if (info.si_pid == 0)
                return -EAGAIN;
        process->wait_status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status & 0x7f;
        process->usage = usage_of(&usage);
        return 0;
}

/* ---- the end */

/* Why its program was not executed; 0 if it was. Reported as its last line as well. */
static int start_error(struct process *process)
{
        int r = process->failure_fd >= 0 ? spawn_failure(process->failure_fd) : 0;
        char line[160];

        if (r < 0) {
                snprintf(line, sizeof(line), "it cannot be started: %s", strerror(-r));
                free(process->lines.last);
                process->lines.last = strdup(line);
        }
        return r;
}

bool process_has_ended(const struct process *process)
{
        return process->pid == 0;
}

static void process_finish(struct process *process)
{
        struct process_result result;
        int error;

        if (process->finished)
                return;
        process->finished = true;
        stream_drain(process, STDOUT);
        stream_drain(process, STDERR);
        for (int i = 0; i < STREAMS; i++)
                stream_close(process, i);
        process->timer = sd_event_source_disable_unref(process->timer);
        process->sweep = sd_event_source_disable_unref(process->sweep);
        if (process->options.on_output)
                stream_tell_rest(process);
        lines_finish(&process->before);
        lines_finish(&process->lines);
        error = start_error(process);
        if (process->group)
                process->memory_end = group_memory_end(process->group);
        else if (process->kills_before >= 0 && usage_memory_kills(0) > process->kills_before)
                process->memory_end = MEMORY_SYSTEM;
        result = (struct process_result){
                .end = process->end,
                .wait_status = process->wait_status,
                .start_error = error,
                .output = &process->output,
                .output_too_large = process->output_too_large,
                .output_error = process->output_error,
                .last_line = process->lines.last ? process->lines.last : "",
                .left_over = process->left_over,
                .memory_end = process->memory_end,
        };
        process_usage(process, &result.usage);
        group_free(TAKE_PTR(process->group));
        process->options.on_done(&result, process->options.userdata);
}

static uid_t user_of(const struct process *process)
{
        return process->options.user ? process->options.user->uid : geteuid();
}

static void kill_handler(struct process *process)
{
        if (process->group)
                group_kill(process->group);
        if (process->pid > 0) {
                descendants_spare_no_more(process->pid);
                (void)sys_kill(-process->pid, SIGKILL);
        }
}

/* KILL to everything, again at each sweep: what is forking while we look is found the next time. */
static void kill_all(struct process *process)
{
        ssize_t count;

        kill_handler(process);
        count = descendants_kill(user_of(process));
        if (process->pid == 0 && process->end == PROCESS_EXITED && count > 0)
                process->left_over = true;
}

/* Kills the others whose grace has ended, as at a stop: all of /proc is read once for all of them. */
static void kill_others(const struct process *but, uint64_t now)
{
        for (struct process *process = under_way.first; process; process = process->next)
                if (process != but && process->killed_since == 0 && process->kill_at > 0 &&
                    process->kill_at <= now) {
                        process->killed_since = now;
                        kill_handler(process);
                }
}

static int on_kill_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct process *process = userdata;

        if (process->killed_since > 0)
                return 0;
        process->killed_since = clock_boottime_usec();
        kill_others(process, process->killed_since);
        kill_all(process);
        return 0;
}

/* Kills at the latest after `grace_usec`; an earlier time stays. */
static void kill_after(struct process *process, uint64_t grace_usec)
{
        uint64_t at = clock_boottime_usec() + grace_usec;

        if (process->kill_at > 0 && process->kill_at <= at)
                return;
        (void)stream_listen(process); /* all its timers are disarmed */
        process->listen_at = 0;
        process->kill_at = at;
        process->timer = sd_event_source_disable_unref(process->timer);
        if (grace_usec == 0 || sd_event_add_time_relative(process->event, &process->timer, CLOCK_MONOTONIC,
                                                          grace_usec, 1, on_kill_time, process) < 0)
                on_kill_time(NULL, 0, process);
}

static void end_process_with(struct process *process, enum process_end end, uint64_t grace_usec);

/* Ends processes that serve beside it as the same user. They may make more of what is left, without a pause:
 * then nothing but their end helps. */
static bool end_servers(const struct process *process)
{
        bool any = false;

        for (struct process *other = under_way.first; other; other = other->next)
                if (other != process && other->options.on_output && other->end == PROCESS_EXITED &&
                    user_of(other) == user_of(process)) {
                        other->options.on_line("(it is ended: processes that have lost their parent keep "
                                               "another handler's run from its end, and may be its own)",
                                               other->options.userdata);
                        end_process_with(other, PROCESS_ENDED, 0);
                        any = true;
                }
        return any;
}

/* A process that KILL does not end (of another user by a setuid program, or stuck in the kernel) keeps the
 * run: two of one object must not meet. But that is reported, and the process is looked at less often. */
static uint64_t sweep_pause(struct process *process)
{
        if (process->killed_since == 0 || clock_boottime_usec() - process->killed_since < STUCK_USEC)
                return SWEEP_USEC;
        if (!process->stuck && end_servers(process)) {
                process->killed_since = clock_boottime_usec();
                return SWEEP_USEC;
        }
        if (!process->stuck)
                process->options.on_line("(a process that the handler started survives SIGKILL: does it run "
                                         "as another user? The run waits for its end)",
                                         process->options.userdata);
        process->stuck = true;
        return STUCK_SWEEP_USEC;
}

/* The handler itself is gone; what it left behind ends by itself or is ended, and is reaped. */
static int on_sweep(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct process *process = userdata;
        int r;

        if (!descendants_reap_of(user_of(process))) {
                process_finish(process);
                return 0;
        }
        if (process->killed_since > 0)
                kill_all(process);
        r = sd_event_source_set_time_relative(source, sweep_pause(process));
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int sweep_later(struct process *process, uint64_t usec)
{
        return sd_event_add_time_relative(process->event, &process->sweep, CLOCK_MONOTONIC, usec, 1,
                                          on_sweep, process);
}

/* Usually nothing is left behind, and no timer is needed. */
static void end_descendants(struct process *process)
{
        if (!descendants_reap_of(user_of(process))) {
                process_finish(process);
                return;
        }
        if (sweep_later(process, SWEEP_USEC) < 0) {
                descendants_end(STUCK_USEC);
                process_finish(process);
                return;
        }
        /* The timeout is over; the last `tee` of a script may need a moment after it. */
        if (process->end == PROCESS_EXITED) {
                process->timer = sd_event_source_disable_unref(process->timer);
                stream_drain(process, STDOUT);
                kill_after(process, process->fd[STDOUT] >= 0 ? ANSWER_USEC : LINGER_USEC);
        }
}

static void end_process_with(struct process *process, enum process_end end, uint64_t grace_usec)
{
        if (process->finished)
                return;
        if (process->pid > 0 && process->end == PROCESS_EXITED) {
                process->end = end;
                (void)sys_kill(-process->pid, SIGTERM);
        }
        kill_after(process, grace_usec);
}

static int on_timeout(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct process *process = userdata;

        end_process_with(process, PROCESS_TIMED_OUT, process->options.grace_usec);
        return 0;
}

static int add_timeout(struct process *process)
{
        if (process->timeout_at == 0)
                return 0;
        return sd_event_add_time(process->event, &process->timer, CLOCK_MONOTONIC, process->timeout_at, 1,
                                 on_timeout, process);
}

/* ---- all that are in flight */

static void no_more_under_way(struct process *process)
{
        for (struct process **each = &under_way.first; *each; each = &(*each)->next)
                if (*each == process) {
                        *each = process->next;
                        return;
                }
}

/* One signal may stand for several ends. */
static int on_ends(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                   void *userdata _unused_)
{
        struct process *process = under_way.first;

        while (process) {
                if (reap(process) == -EAGAIN) {
                        process = process->next;
                        continue;
                }
                no_more_under_way(process);
                descendants_spare_no_more(process->pid);
                process->pid = 0;
                if (under_way.last && under_way.first)
                        process_finish(process); /* leftovers are killed after the last end */
                else
                        end_descendants(process);
                process = under_way.first; /* the callback may have freed or started another one */
        }
        descendants_reap_ended();
        return 0;
}

/* The process has run for a while and is listened to from now on, or its timeout has come. If memory for
 * listening is short, the next try comes later, until the timeout. */
static void clock_has_come(struct process *process, uint64_t now)
{
        process->listen_at = 0;
        if (process->timeout_at > 0 && now >= process->timeout_at)
                end_process_with(process, PROCESS_TIMED_OUT, process->options.grace_usec);
        else if (stream_listen(process) < 0 || add_timeout(process) < 0)
                process->listen_at = now + UNHEARD_USEC;
}

static int clock_at(uint64_t usec)
{
        int r = sd_event_source_set_time(under_way.clock, usec);

        return r < 0 ? r : sd_event_source_set_enabled(under_way.clock, SD_EVENT_ONESHOT);
}

static int on_clock(sd_event_source *source _unused_, uint64_t usec, void *userdata _unused_)
{
        uint64_t next = UINT64_MAX;

        for (struct process *process = under_way.first; process; process = process->next) {
                if (process->listen_at > 0 && process->listen_at <= usec)
                        clock_has_come(process, usec);
                if (process->listen_at > 0 && process->listen_at < next)
                        next = process->listen_at;
        }
        return clock_at(next);
}

/* A timer that was set for an earlier run fires no later, and is then set for this one. */
static int clock_until(uint64_t usec)
{
        uint64_t at;
        int r = sd_event_source_get_time(under_way.clock, &at);

        return r < 0 || at <= usec ? r : clock_at(usec);
}

static void on_freed(void *userdata)
{
        *(sd_event_source **)userdata = NULL;
}

/* The source lives as long as the loop does; its userdata is its place here. */
static int source_leave_to_loop(sd_event_source *source)
{
        int r = sd_event_source_set_destroy_callback(source, on_freed);

        if (r >= 0)
                r = sd_event_source_set_floating(source, true);
        sd_event_source_unref(source);
        return r;
}

/* A process has one loop. */
static int watch_ends(sd_event *event)
{
        int r;

        if (under_way.ends && sd_event_source_get_event(under_way.ends) == event)
                return 0;
        sd_event_source_disable_unref(under_way.ends);
        sd_event_source_disable_unref(under_way.clock);
        r = sd_event_add_time(event, &under_way.clock, CLOCK_MONOTONIC, UINT64_MAX, 1, on_clock,
                              &under_way.clock);
        if (r >= 0)
                r = source_leave_to_loop(under_way.clock);
        if (r >= 0)
                r = sd_event_add_signal(event, &under_way.ends, SIGCHLD, on_ends, &under_way.ends);
        if (r >= 0)
                r = source_leave_to_loop(under_way.ends);
        /* process_finish() reads what is left in the pipes, all at once */
        return r < 0 ? r : sd_event_source_set_priority(under_way.ends, EXIT_PRIORITY);
}

/* ---- ends from outside */

void process_end(struct process *process, uint64_t grace_usec)
{
        end_process_with(process, PROCESS_ENDED, grace_usec);
}

static void on_broken(struct process *process)
{
        end_process_with(process, PROCESS_ENDED, process->options.grace_usec);
}

/* A search for what one process left behind reads all of /proc, to spare the others: after the end of each
 * of many, the time would grow with their square. After the last end no process is spared any more, and the
 * kernel says at once whether any is left. */
void process_no_more(void)
{
        under_way.last = true;
}

void process_free(struct process *process)
{
        if (!process)
                return;
        no_more_under_way(process);
        sd_event_source_disable_unref(process->timer);
        sd_event_source_disable_unref(process->sweep);
        if (process->pid > 0)
                descendants_spare_no_more(process->pid);
        if (process->started && !process->finished)
                descendants_end(FREE_USEC);
        group_free(process->group);
        if (process->failure_fd >= 0)
                close(process->failure_fd);
        for (int i = 0; i < STREAMS; i++)
                stream_close(process, i);
        text_done(&process->input);
        text_done(&process->output);
        lines_done(&process->before);
        lines_done(&process->lines);
        sd_event_unref(process->event);
        free(process);
}

/* ---- the start */

static int open_pipes(struct process *process, int ret_child[STREAMS])
{
        for (int i = 0; i < STREAMS; i++) {
                int pair[2], r = sys_pipe(pair), ours = i == STDIN ? 1 : 0;

                if (r < 0)
                        return r;
                process->fd[i] = pair[ours];
                ret_child[i] = pair[!ours];
                if (fcntl(process->fd[i], F_SETFL, O_NONBLOCK) < 0) /* a new one has no other flags */
                        return -errno;
        }
        return 0;
}

/* Most runs are over after some milliseconds, and process_finish() finds all that they have written in their pipes:
 * to be woken by each of those first is half of what such a run costs the loop. One that serves is waited
 * for. */
static int add_sources(struct process *process)
{
        uint64_t now;
        int r = sd_event_now(process->event, CLOCK_MONOTONIC, &now);

        if (r < 0)
                return r;
        if (process->options.timeout_usec > 0)
                process->timeout_at = now + process->options.timeout_usec;
        if (process->options.on_output) {
                r = stream_listen(process);
                return r < 0 ? r : add_timeout(process);
        }
        process->listen_at = now + UNHEARD_USEC;
        if (process->timeout_at > 0 && process->timeout_at < process->listen_at)
                process->listen_at = process->timeout_at;
        return clock_until(process->listen_at);
}

/* ret_told: the end that the new process gets. It goes away when the program is executed; so nothing of a handler
 * holds it, and what is read of it when the process has ended makes nobody wait. */
static int open_failure_pipe(struct process *process, int *ret_told)
{
        int pair[2], r;

        if (!process->options.user)
                return 0;
        r = sys_pipe(pair);
        if (r < 0)
                return r;
        process->failure_fd = pair[0];
        *ret_told = pair[1];
        return fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* Starts the process. Limits that no control group holds become rlimits, where one exists. */
static int process_spawn(struct process *process, const int stdio[STREAMS])
{
        const struct process_options *options = &process->options;
        _cleanup_close_ int told = -1;
        unsigned held = process->group ? options->group_controllers : 0;
        struct spawn_options spawn = {
                .argument = options->argument,
                .environment = options->environment,
                .stdio = {stdio[STDIN], stdio[STDOUT], stdio[STDERR]},
                .user = options->user,
                .group_fd = process->group ? cgroup_open(process->group, "cgroup.procs", O_WRONLY) : -1,
        };
        int r;

        if (process->group && spawn.group_fd < 0)
                return spawn.group_fd;
        r = open_failure_pipe(process, &told);
        spawn.failure_fd = told;
        if (!(held & CGROUP_BIT(CGROUP_MEMORY)))
                spawn.memory_data = options->limits.memory;
        if (!(held & CGROUP_BIT(CGROUP_PIDS)) && options->user)
                spawn.processes = options->limits.user_pids;
        if (!(held & CGROUP_BIT(CGROUP_CPU)) && options->limits.cpu_milli > 0)
                spawn.cpu_seconds =
                        (options->limits.cpu_milli * (options->timeout_usec / 1000) + 999999) / 1000000;
        if (r >= 0)
                r = spawn_program(&spawn, &process->pid);
        if (spawn.group_fd >= 0)
                close(spawn.group_fd);
        return r;
}

/* Another user may still open /dev/stdin and /dev/stderr by name; no other process can reach a pipe. */
static void open_to_others(const int child[STREAMS])
{
        for (int i = 0; i < STREAMS; i++)
                if (child[i] >= 0)
                        (void)fchmod(child[i], 0666);
}

static int process_launch(struct process *process)
{
        int child[STREAMS] = {-1, -1, -1};
        int r = watch_ends(process->event);

        if (r >= 0)
                r = open_pipes(process, child);
        process->kills_before = usage_memory_kills(KILLS_USEC);
        if (r >= 0)
                r = group_new(&process->options, &process->group);
        if (process->options.user)
                open_to_others(child);
        if (r >= 0)
                r = process_spawn(process, child);
        for (int i = 0; i < STREAMS; i++)
                if (child[i] >= 0)
                        close(child[i]);
        process->started = process->pid > 0;
        if (process->started) {
                process->next = under_way.first;
                under_way.first = process;
        }
        /* From the end of others: one that serves another watch may die while this one runs. */
        if (r >= 0)
                r = descendants_spare(process->pid, user_of(process));
        if (r >= 0)
                r = add_sources(process);
        return r < 0 ? r : stream_send_input(process);
}

int process_start(sd_event *event, const struct process_options *options, struct process **ret)
{
        struct process *process = calloc(1, sizeof(*process));
        int r;

        assert(options->argument && options->argument[0]);
        if (!process)
                return -ENOMEM;
        process->event = sd_event_ref(event);
        process->options = *options;
        process->on_broken = on_broken;
        process->failure_fd = -1;
        if (options->input) {
                process->input = *options->input;
                *options->input = TEXT_EMPTY;
        }
        process->lines.on_line = process->before.on_line = options->on_line;
        process->lines.userdata = process->before.userdata = options->userdata;
        for (int i = 0; i < STREAMS; i++)
                process->fd[i] = -1;
        r = process_launch(process);
        if (r < 0) {
                process_free(process);
                return r;
        }
        *ret = process;
        return 0;
}
