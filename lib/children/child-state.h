/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lifecycle of a child: state x event -> action, one table; every cell is defined. */
#include <stddef.h>

#include "ipc/message.h"
#include "ipc/role.h"

enum child_event {
        EVENT_HELLO,
        EVENT_READY,
        EVENT_MESSAGE,   /* any other message; which ones, the message table says */
        EVENT_FATAL,     /* it says that it ends, and why */
        EVENT_EOF,       /* its channel is closed */
        EVENT_VIOLATION, /* it said what it may not */
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
        CHILD_ACTION_COUNT
};

enum child_event child_event_of(enum message_type type);
enum child_action child_reaction(enum child_state state, enum child_event event);

/* How a process ended, in words. */

/* "was killed by signal SEGV (core dumped)", "exited by itself with code 1". status: of waitpid();
 * killed_why: behind the signal, ", by the kernel for lack of memory"; "": nothing is known. */
void child_death_describe(int status, const char *killed_why, char *buffer, size_t size);
