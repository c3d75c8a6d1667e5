/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A child process and its channel, for the process that has started it (the supervisor, reconciledctl): from
 * its start to its end. A slot may hold one process after another.
 */
#include <stddef.h>
#include <sys/types.h>

#include "ipc/channel.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "ipc/spawner/spawner-program.h"

struct child_process {
        enum role role;
        enum child_state state;  /* CHILD_GONE: reaped, or not started yet */
        pid_t pid;               /* the last one's, when it is gone */
        struct channel *channel; /* NULL before the first start */
};

/* The process has been started as process->pid, and fd is our end of its channel, which is taken over: it is
 * CHILD_STARTING. The channel of the process that was here before is freed. Negative errno. */
int child_process_open(struct child_process *process, sd_event *event, int fd,
                       const struct channel_callbacks *callbacks, void *userdata);
/* Sets the state of the process and of its channel, which permits messages by the state. */
void child_process_set_state(struct child_process *process, enum child_state state);
/* Asks the process to end: CHILD_STOPPING. grace: for the runs of a worker. */
void child_process_stop(struct child_process *process, uint64_t grace_usec);
/* Sends a signal, unless the process is gone. */
void child_process_signal(const struct child_process *process, int signal);
/* Frees the channel. */
void child_process_done(struct child_process *process);

/* The program of each role of a child. */
enum spawner_program child_program(enum role role); /* one of ROLE_CHILDREN */
const char *child_binary(enum role role);           /* "reconciled-watcher" */

/* The caller owns the path; NULL: no memory. */
char *child_program_path(enum role role);

/* The lifecycle of a child: state x event -> action, one table; every cell is defined. */
enum child_event {
        EVENT_HELLO,
        EVENT_READY,
        EVENT_MESSAGE,   /* any other message, as far as the message table permits it */
        EVENT_FATAL,     /* it says that it ends, and why */
        EVENT_EOF,       /* its channel is closed */
        EVENT_VIOLATION, /* it sent a message that it may not send */
        EVENT_EXIT,      /* it was reaped */
        EVENT_SILENCE,   /* no heartbeat for the deadline */
        CHILD_EVENT_COUNT
};

enum child_action {
        ACT_BUG,       /* cannot happen: fatal */
        ACT_CONFIGURE, /* send its CONFIG */
        ACT_START,     /* it is ready */
        ACT_DELIVER,
        ACT_DIE,   /* the operator ends, and this is the cause */
        ACT_AWAIT, /* its exit will tell the cause; a moment is granted */
        ACT_BURY,  /* it ended because it was told to */
        ACT_IGNORE,
};

enum child_event child_event_of(enum message_type type);
enum child_action child_reaction(enum child_state state, enum child_event event);

/* How a process ended, in words. */

/* "was killed by signal SEGV (core dumped)", "exited by itself with code 1". status: of waitpid();
 * killed_why: appended to the signal, such as ", by the kernel for lack of memory"; "" if the reason is unknown. */
void child_death_describe(int status, const char *killed_why, char *buffer, size_t size);
