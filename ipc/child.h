/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What every child of the supervisor does alike: takes over fd 3, becomes non-dumpable, dies with its parent
 * (PDEATHSIG, checked against the parent afterwards; EOF on the channel), says HELLO, waits for its
 * CONFIG_*, says READY, beats its heart, ends on STOP or SIGTERM.
 *
 * main() of a child: child_init(), child_run(), child_done().
 */
#include "ipc/channel.h"
#include "ipc/log.h"

#define CHILD_CHANNEL_FD 3

struct child;

struct child_operations {
        enum role role;
        const char *log_role;    /* RECONCILED_ROLE in logs, "watcher" */
        int parent_death_signal; /* SIGKILL; SIGTERM for workers, which end their handlers first */
        /* The CONFIG_* of this role. Take the message (TAKE_PTR) to keep it. 0, or negative after
         * child_fatal(). 1: the role is set up, and child.c sends READY. */
        int (*on_config)(struct child *child, struct message **config);
        /* Any other message permitted by the table, except STOP. */
        int (*on_message)(struct child *child, struct message **message);
        /* STOP, SIGTERM or EOF; grace 0 for EOF. Ends with child_exit(). NULL: exits at once with 0. */
        void (*on_stop)(struct child *child, uint64_t grace_usec);
        /* Optional: fills counters for the heartbeat; returns how many (at most max). */
        size_t (*count)(struct child *child, struct record_counter *counter, size_t max);
        /* Optional: the process is at rest, and gives back what only work needs. */
        void (*at_rest)(struct child *child);
};

/* Memory and CPU time of this process, as every heartbeat carries them. Returns how many. */
#define CHILD_PROCESS_COUNTERS 2
size_t child_count_process(struct record_counter *counter, size_t max);

struct child {
        const struct child_operations *operations;
        sd_event *event;
        struct channel *channel;
        void *userdata; /* the role's own state */
        sd_event_source *heartbeat;
        uint64_t heartbeat_usec;
        uint64_t beaten;   /* when the last heartbeat left, CLOCK_MONOTONIC */
        uint64_t cpu_usec; /* used until then */
        bool rested;       /* spare memory was given back */
        pid_t parent;      /* the supervisor, as this process sees it */
        bool ready, stopping;
};

/* Parses the common command line of children (`--log`, `--help`, `--version`; run by hand they explain that
 * the supervisor starts them: 64). Returns 0 or a negative errno after having said why. */
int child_init(struct child *child, const struct child_operations *operations, int argc, char **argv);
int child_init_exit_code(int status); /* the exit code of a process that ends for it */
/* Runs the loop; returns the exit code of the process. */
int child_run(struct child *child);
void child_done(struct child *child);

/* A sign of life from work before READY that may take long, and is done in one piece. */
void child_beat(struct child *child);
/* Within work that may take long in one piece, as it adds up: a heartbeat, if one is due. */
void child_beat_if_due(struct child *child);
int child_send(struct child *child, enum message_type type, const void *fields);
/* Ends the loop with this exit code. */
void child_exit(struct child *child, int exit_code);
/* Tells the supervisor why (FATAL; it does the logging) and ends the loop with this exit code. Returns -ECANCELED, so that callbacks can `return child_fatal(...)`. */
int child_fatal(struct child *child, int exit_code, const char *format, ...) _printf_(3, 4);
