/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A process's standard input and outputs. */
#include "process/process.h"

/* More for its stdin; only with on_output. `more` is taken over. */
int process_write(struct process *process, struct text *more);
/* Logs a line of its stdout like those of stderr: on_line gets it, cleaned. */
void process_log(struct process *process, const char *line, size_t size);
/* The next output belongs to another run: lines of this run that were left out are reported, and the bounds
 * begin again. */
void process_next_run(struct process *process);
/* Forgets the last line of its output, which explains no failure of a later request. */
void process_forget_last_line(struct process *process);

/* ---- for process.c. which: STDIN, STDOUT or STDERR (internal.h). */

void stream_close(struct process *process, int which);
/* Sends as much of the input as the pipe takes now, and the rest when it has room. 0, or a negative
 * errno. */
int stream_send_input(struct process *process);
/* From now on the process's output is read as it comes. A second call does what could not be done before. */
int stream_listen(struct process *process);
/* When the process is gone: what it has written after the last newline is a line if its input was closed, else
 * only output for the log. */
void stream_tell_rest(struct process *process);
/* Reads what is left in the pipe when the last writer is gone. */
void stream_drain(struct process *process, int which);
