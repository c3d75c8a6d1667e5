/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "base/syscall.h"
#include "worker/lines.h"
#include "worker/spawn.h"

#define READ_SIZE  ((size_t)65536)
#define SWEEP_USEC (20 * USEC_PER_MSEC)

enum { STDIN, STDOUT, STDERR, STREAMS };

struct process {
        sd_event *event;
        struct process_options options;
        pid_t pid; /* 0: reaped */
        int wait_status;
        enum process_end end;
        int fd[STREAMS];
        sd_event_source *source[STREAMS];
        sd_event_source *child, *timer, *sweep;
        struct text input, output;
        size_t input_sent;
        bool output_too_large, left_over, finished;
        struct lines lines;
};

/* ---- descendants */

size_t process_kill_descendants(void)
{
        _cleanup_fclose_ FILE *file = NULL;
        char path[64];
        size_t count = 0;
        int pid;

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        file = fopen(path, "re");
        if (!file)
                return 0;
        while (fscanf(file, "%d", &pid) == 1) {
                (void)sys_kill(pid, SIGKILL);
                count++;
        }
        return count;
}

static void reap_descendants(void)
{
        int status;

        while (sys_reap(-1, &status) > 0)
                ;
}

/* ---- streams */

static void stream_close(struct process *process, int which)
{
        process->source[which] = sd_event_source_disable_unref(process->source[which]);
        if (process->fd[which] >= 0)
                close(process->fd[which]);
        process->fd[which] = -1;
}

static int on_stdin(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        struct process *process = userdata;
        size_t left = process->input.size - process->input_sent;
        ssize_t r = sys_write(fd, process->input.data + process->input_sent, left);

        if (r == -EAGAIN)
                return 0;
        if (r > 0)
                process->input_sent += (size_t)r;
        /* A handler that does not want to read its request need not. */
        if (r < 0 || process->input_sent == process->input.size) {
                text_done(&process->input);
                stream_close(process, STDIN);
        }
        return 0;
}

static void take_output(struct process *process, int which, const char *bytes, size_t size)
{
        size_t room = PROCESS_ANSWER_MAX - process->output.size;

        if (which == STDERR) {
                lines_feed(&process->lines, bytes, size);
                return;
        }
        if (size > room) {
                process->output_too_large = true;
                size = room;
        }
        text_append(&process->output, bytes, size);
}

/* One piece a turn: a handler that writes without end is a guest in this loop, not its owner. */
static bool read_piece(struct process *process, int which)
{
        static char buffer[READ_SIZE];
        ssize_t r = sys_read(process->fd[which], buffer, sizeof(buffer));

        if (r == -EAGAIN)
                return false;
        if (r <= 0) {
                stream_close(process, which);
                return false;
        }
        take_output(process, which, buffer, (size_t)r);
        return true;
}

static int on_stdout(sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_,
                     void *userdata)
{
        (void)read_piece(userdata, STDOUT);
        return 0;
}

static int on_stderr(sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_,
                     void *userdata)
{
        (void)read_piece(userdata, STDERR);
        return 0;
}

/* What stands in the pipes when the last writer is gone: at most their capacity. */
static void drain(struct process *process, int which)
{
        while (process->fd[which] >= 0 && read_piece(process, which))
                ;
}

/* ---- the end */

static void finish(struct process *process)
{
        struct process_result result;

        if (process->finished)
                return;
        process->finished = true;
        drain(process, STDOUT);
        drain(process, STDERR);
        for (int i = 0; i < STREAMS; i++)
                stream_close(process, i);
        process->timer = sd_event_source_disable_unref(process->timer);
        process->sweep = sd_event_source_disable_unref(process->sweep);
        lines_finish(&process->lines);
        result = (struct process_result){
                .end = process->end,
                .wait_status = process->wait_status,
                .output = &process->output,
                .output_too_large = process->output_too_large,
                .last_line = process->lines.last ? process->lines.last : "",
                .left_over = process->left_over,
        };
        process->options.on_done(&result, process->options.userdata);
}

/* The handler itself is gone; what it left behind is ended, and reaped as it comes. */
static int on_sweep(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct process *process = userdata;

        reap_descendants();
        if (process_kill_descendants() == 0) {
                finish(process);
                return 0;
        }
        process->left_over = true;
        if (sd_event_source_set_time_relative(process->sweep, SWEEP_USEC) < 0)
                return 0;
        return sd_event_source_set_enabled(process->sweep, SD_EVENT_ONESHOT);
}

static int on_handler_exit(sd_event_source *source _unused_, const siginfo_t *info, void *userdata)
{
        struct process *process = userdata;
        int r;

        process->wait_status = info->si_code == CLD_EXITED ? info->si_status << 8 : info->si_status & 0x7f;
        process->pid = 0;
        process->child = sd_event_source_disable_unref(process->child);
        process->timer = sd_event_source_disable_unref(process->timer);
        r = sd_event_add_time_relative(process->event, &process->sweep, CLOCK_MONOTONIC, 0, 1, on_sweep,
                                       process);
        if (r < 0)
                finish(process);
        return 0;
}

static int on_kill(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct process *process = userdata;

        if (process->pid > 0)
                (void)sys_kill(-process->pid, SIGKILL);
        (void)process_kill_descendants();
        return 0;
}

static void end_with(struct process *process, enum process_end end, uint64_t grace_usec)
{
        if (process->pid == 0 || process->end != PROCESS_EXITED)
                return;
        process->end = end;
        (void)sys_kill(-process->pid, SIGTERM);
        process->timer = sd_event_source_disable_unref(process->timer);
        if (grace_usec == 0 || sd_event_add_time_relative(process->event, &process->timer, CLOCK_MONOTONIC,
                                                          grace_usec, 1, on_kill, process) < 0)
                on_kill(NULL, 0, process);
}

static int on_timeout(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct process *process = userdata;

        end_with(process, PROCESS_TIMED_OUT, process->options.grace_usec);
        return 0;
}

void process_end(struct process *process, uint64_t grace_usec)
{
        end_with(process, PROCESS_ENDED, grace_usec);
}

void process_free(struct process *process)
{
        if (!process)
                return;
        if (process->pid > 0)
                on_kill(NULL, 0, process);
        for (int i = 0; i < STREAMS; i++)
                stream_close(process, i);
        sd_event_source_disable_unref(process->child);
        sd_event_source_disable_unref(process->timer);
        sd_event_source_disable_unref(process->sweep);
        text_done(&process->input);
        text_done(&process->output);
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
                r = sys_set_nonblocking(process->fd[i], true);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_sources(struct process *process)
{
        static const sd_event_io_handler_t handler[STREAMS] = {on_stdin, on_stdout, on_stderr};
        int r = 0;

        for (int i = 0; i < STREAMS && r >= 0; i++)
                r = sd_event_add_io(process->event, &process->source[i], process->fd[i],
                                    i == STDIN ? EPOLLOUT : EPOLLIN, handler[i], process);
        if (r >= 0)
                r = sd_event_add_child(process->event, &process->child, process->pid, WEXITED,
                                       on_handler_exit, process);
        if (r >= 0)
                r = sd_event_add_time_relative(process->event, &process->timer, CLOCK_MONOTONIC,
                                               process->options.timeout_usec, 1, on_timeout, process);
        return r;
}

static int process_launch(struct process *process)
{
        int child[STREAMS] = {-1, -1, -1};
        int r = open_pipes(process, child);

        if (r >= 0)
                r = spawn_program(process->options.argument, process->options.environment, child,
                                  &process->pid);
        for (int i = 0; i < STREAMS; i++)
                if (child[i] >= 0)
                        close(child[i]);
        return r < 0 ? r : add_sources(process);
}

int process_start(sd_event *event, const struct process_options *options, struct process **ret)
{
        struct process *process = calloc(1, sizeof(*process));
        int r;

        if (!process)
                return -ENOMEM;
        process->event = sd_event_ref(event);
        process->options = *options;
        process->input = *options->input;
        *options->input = TEXT_EMPTY;
        process->lines.on_line = options->on_line;
        process->lines.userdata = options->userdata;
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
