/* SPDX-License-Identifier: Apache-2.0 */
/* A process's standard input and outputs: what is written to it and read from it, a piece a turn. */
#include "process/streams.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "os/syscall.h"
#include "process/internal.h"

#define READ_SIZE    ((size_t)65536)
#define DRAIN_PIECES 32

void stream_close(struct process *process, int which)
{
        process->source[which] = sd_event_source_disable_unref(process->source[which]);
        if (process->fd[which] >= 0)
                close(process->fd[which]);
        process->fd[which] = -1;
}

static bool keeps_input(const struct process *process)
{
        return process->options.on_output && !process->options.input_ends;
}

/* true: there is more, for when the pipe has room again. */
static bool write_input(struct process *process)
{
        size_t left = process->input.size - process->input_sent;
        ssize_t r = sys_write(process->fd[STDIN], process->input.data + process->input_sent, left);

        if (r == -EAGAIN)
                return true;
        if (r > 0)
                process->input_sent += (size_t)r;
        if (r >= 0 && process->input_sent < process->input.size)
                return true;
        text_done(&process->input);
        process->input_sent = 0;
        /* A handler that does not want to read its request need not; one that serves must. */
        if (r < 0 || !keeps_input(process))
                stream_close(process, STDIN);
        if (r < 0 && keeps_input(process))
                process->on_broken(process);
        return false;
}

static int on_stdin(sd_event_source *source, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
        struct process *process = userdata;

        if (!write_input(process) && process->source[STDIN])
                sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

/* Usually the pipe has room for all of it, and the loop need not be asked. */
int stream_send_input(struct process *process)
{
        if (!write_input(process) || process->fd[STDIN] < 0)
                return 0;
        if (process->source[STDIN])
                return sd_event_source_set_enabled(process->source[STDIN], SD_EVENT_ON);
        return sd_event_add_io(process->event, &process->source[STDIN], process->fd[STDIN], EPOLLOUT,
                               on_stdin, process);
}

int process_write(struct process *process, struct text *more)
{
        int r;

        if (process->fd[STDIN] < 0 || process->pid == 0)
                return -EPIPE;
        r = 0;
        if (process->input.size == 0) {
                text_done(&process->input);
                process->input = *more;
                *more = TEXT_EMPTY;
        } else {
                r = text_append(&process->input, more->data, more->size);
        }
        text_done(more);
        return r < 0 ? r : stream_send_input(process);
}

static void tell_line(struct process *process, char *line, size_t size)
{
        bool cut = size > PROCESS_ANSWER_MAX;

        if (cut)
                size = PROCESS_ANSWER_MAX;
        line[size] = '\0';
        process->options.on_output(line, size, cut, process->options.userdata);
}

/* Passes on whole lines; the rest waits for its newline. Of a line that is too long already, one byte beyond
 * the maximum is kept. */
static void tell_lines(struct process *process)
{
        struct text *output = &process->output;
        size_t start = 0, looked = process->looked;
        const char *end;

        while (looked < output->size && (end = memchr(output->data + looked, '\n', output->size - looked))) {
                size_t size = (size_t)(end - output->data) - start;

                tell_line(process, output->data + start, size);
                start = looked = start + size + 1;
        }
        text_consume(output, start);
        if (output->size > PROCESS_ANSWER_MAX + 1)
                output->size = PROCESS_ANSWER_MAX + 1;
        process->looked = output->size;
}

void stream_tell_rest(struct process *process)
{
        struct text *output = &process->output;

        if (output->size == 0)
                return;
        if (process->options.input_ends)
                tell_line(process, output->data, output->size);
        else
                process_log(process, output->data, output->size);
}

void process_log(struct process *process, const char *line, size_t size)
{
        lines_feed(&process->before, line, size);
        lines_feed(&process->before, "\n", 1);
}

void process_next_run(struct process *process)
{
        lines_renew(&process->before);
        lines_renew(&process->lines);
}

void process_forget_last_line(struct process *process)
{
        free(TAKE_PTR(process->lines.last));
}

static void stream_take_output(struct process *process, int which, const char *bytes, size_t size)
{
        size_t room = PROCESS_ANSWER_MAX - process->output.size, log = 0;

        if (which == STDERR) {
                lines_feed(&process->lines, bytes, size);
                return;
        }
        if (process->options.finds_answer && !process->answering)
                log = lines_feed_to_brace(&process->before, bytes, size);
        bytes += log;
        size -= log;
        process->answering = process->answering || size > 0;
        /* Lines are cut later, when they are passed on: a newline beyond the maximum must not be lost. */
        if (size > room && !process->options.on_output) {
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
        if (r < 0 && which == STDOUT)
                process->output_error = (int)r;
        if (r <= 0) {
                stream_close(process, which);
                /* A serving handler whose output failed is of no use any more. */
                if (process->output_error < 0 && process->options.on_output)
                        process->on_broken(process);
                return false;
        }
        stream_take_output(process, which, buffer, (size_t)r);
        return true;
}

/* The stderr of a serving handler from before its answer is in its pipe by now, and is of the same run. */
static bool read_output(struct process *process)
{
        if (!read_piece(process, STDOUT))
                return false;
        if (process->options.on_output && process->fd[STDERR] >= 0)
                (void)read_piece(process, STDERR);
        if (process->options.on_output)
                tell_lines(process);
        return true;
}

static int on_readable(sd_event_source *source, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
        struct process *process = userdata;

        (void)(source == process->source[STDOUT] ? read_output(process) : read_piece(process, STDERR));
        return 0;
}

/* From now on the process's output is read as it comes. A second call does what could not be done before. */
int stream_listen(struct process *process)
{
        int r = 0;

        if (process->fd[STDOUT] >= 0 && !process->source[STDOUT])
                r = sd_event_add_io(process->event, &process->source[STDOUT], process->fd[STDOUT], EPOLLIN,
                                    on_readable, process);
        if (r >= 0 && process->fd[STDERR] >= 0 && !process->source[STDERR])
                r = sd_event_add_io(process->event, &process->source[STDERR], process->fd[STDERR], EPOLLIN,
                                    on_readable, process);
        return r;
}

/* Reads what is left in the pipe when the last writer is gone: at most its capacity. More can come only from
 * a process that is not ours but was given the pipe, and that one is not waited for. */
void stream_drain(struct process *process, int which)
{
        for (int i = 0; i < DRAIN_PIECES && process->fd[which] >= 0; i++)
                if (!(which == STDOUT ? read_output(process) : read_piece(process, which)))
                        return;
}
