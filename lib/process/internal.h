/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by process.c and streams.c: one process. */
#include "process/lines.h"
#include "process/process.h"

enum { STDIN, STDOUT, STDERR, STREAMS };

struct process {
        sd_event *event;
        struct process *next; /* next of the processes in flight */
        struct process_options options;
        pid_t pid; /* 0: reaped */
        int wait_status;
        enum process_end end;
        int fd[STREAMS];
        int failure_fd; /* reports that a program of another user was not executed; -1 if unused */
        sd_event_source *source[STREAMS];
        sd_event_source *sweep;
        sd_event_source *timer; /* the timeout, then the time until KILL */
        /* A pipe of a process that serves is broken: the process is of no use any more. */
        void (*on_broken)(struct process *process);
        uint64_t listen_at;    /* CLOCK_MONOTONIC: it is not listened to, and has no timer, until then; 0 */
        uint64_t timeout_at;   /* CLOCK_MONOTONIC; 0 if there is none */
        uint64_t kill_at;      /* CLOCK_BOOTTIME; 0: not planned */
        uint64_t killed_since; /* CLOCK_BOOTTIME; 0: not yet */
        struct text input, output;
        size_t input_sent;
        bool started, output_too_large, left_over, stuck, finished;
        int output_error;
        struct lines lines, before; /* stderr; stdout before the answer */
        bool answering;
        size_t looked; /* bytes of `output` in which there is no newline */
        char *group;   /* NULL if there is none */
        int64_t kills_before;
        enum process_memory_end memory_end;
        struct process_usage usage; /* used by processes that are gone */
};
