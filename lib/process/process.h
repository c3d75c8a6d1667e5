/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One program (a handler, a plugin) and everything it starts. Its stdin is fed and its outputs are read
 * without waiting; it has a process group of its own, and where its parent is a subreaper nothing it starts
 * escapes: setsid and double forks end up as our children. It is over only when no descendant is left. While
 * it lives, it and its descendants are spared when another program is cleaned up.
 */
#include <systemd/sd-event.h>

#include "base/text.h"

#define PROCESS_ANSWER_MAX ((size_t)1024 * 1024)
#define PROCESS_LINE_MAX   ((size_t)2048)
#define PROCESS_LINES_MAX  1000 /* of output logged for one run; more is counted */
#define PROCESS_BYTES_MAX  ((size_t)256 * 1024)

struct process;

enum process_end {
        PROCESS_EXITED, /* by itself */
        PROCESS_TIMED_OUT,
        PROCESS_ENDED, /* by process_end() */
};

/* Whether the kernel has ended a process of it for lack of memory. */
enum process_memory_end {
        MEMORY_ENOUGH,
        MEMORY_LIMIT,  /* its own limit */
        MEMORY_SYSTEM, /* that of everything we are part of: a container, the machine */
};

/* memory_peak: of its group if there is one, else of its largest process. */
struct process_usage {
        uint64_t cpu_usec, memory_peak;
};

/* Each is 0 if there is no limit. Where no control group holds them, memory is a limit to the data of each
 * process (RLIMIT_DATA), cpu to the time that a process could have had until the timeout (RLIMIT_CPU), and
 * user_pids stands for pids (RLIMIT_NPROC). */
struct process_limits {
        uint64_t memory;    /* bytes */
        uint64_t pids;      /* processes and threads */
        uint64_t user_pids; /* processes of its user, if that is another one */
        uint64_t cpu_milli;
};

struct process_result {
        enum process_end end;
        struct process_usage usage;
        enum process_memory_end memory_end;
        int wait_status;
        int start_error;           /* negative errno: the program was not executed after all; 0 */
        const struct text *output; /* stdout, at most PROCESS_ANSWER_MAX */
        bool output_too_large;
        int output_error;      /* negative errno: stdout could not be read to its end; 0 */
        const char *last_line; /* the last line of stderr; "" */
        bool left_over;        /* descendants were still there and were ended */
};
#define PROCESS_LEFT_OVER "(processes that the handler left behind were ended)"

/* Another user to run as. */
struct process_user {
        uid_t uid;
        gid_t gid;
        gid_t *group; /* supplementary ones */
        size_t group_count;
};

struct process_options {
        char *const *argument; /* argument[0]: the program */
        char *const *environment;
        struct text *input;                /* taken over */
        uint64_t timeout_usec, grace_usec; /* timeout 0 if there is none */
        struct process_limits limits;
        const struct process_user *user; /* NULL: as we do; lives as long as the process */
        const char *group_folder;        /* control groups are made here; NULL or "": none */
        unsigned group_controllers;      /* the groups' controllers (lib/os/cgroup.h) */
        /* NULL: stdout is collected for the result. Otherwise each line of it as it comes, without its
         * newline and NUL-terminated; there may be more NULs in it. cut: the line is longer than
         * PROCESS_ANSWER_MAX, and these are as many bytes of it. stdin then stays
         * open for process_write(), but for: */
        void (*on_output)(const char *line, size_t size, bool cut, void *userdata);
        bool input_ends; /* `input` is all that it gets, and it need not read it */
        /* Lines of stdout are passed on like those of stderr, up to the first one that begins with a brace;
         * from there on stdout is collected. Only without on_output. */
        bool finds_answer;
        /* A line of stderr, cleaned. */
        void (*on_line)(const char *line, void *userdata);
        /* Once. May free the process. */
        void (*on_done)(const struct process_result *result, void *userdata);
        void *userdata;
};

/* 0, or the negative errno of what could not be done (-ENOENT, -EACCES: the program). With `user`, errors of
 * the program itself are in the result alone, because that user may delay its start. */
int process_start(sd_event *event, const struct process_options *options, struct process **ret);
/* The resources that it has used until now. */
void process_usage(const struct process *process, struct process_usage *ret);
/* It has ended, but perhaps not all that it started. */
bool process_has_ended(const struct process *process);
/* Its memory in bytes, 0 when it has ended. */
uint64_t process_memory(const struct process *process);
/* TERM to the group now, KILL to everything after `grace_usec`. Asked again, the earlier KILL counts. */
void process_end(struct process *process, uint64_t grace_usec);
/* No process is started from now on. Each end is reported at once; leftovers are killed after the last end. */
void process_no_more(void);
/* Kills what is left, and waits for it half a second at most. NULL is allowed. */
void process_free(struct process *process);
