/* SPDX-License-Identifier: Apache-2.0 */
#include "children/child-state.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { ROW_STARTING, ROW_CONFIGURED, ROW_RUNNING, ROW_STOPPING, ROW_GONE, ROW_COUNT };

static const enum child_action table[ROW_COUNT][CHILD_EVENT_COUNT] = {
        [ROW_STARTING] =
                {
                        [EVENT_HELLO] = ACT_CONFIGURE,
                        [EVENT_READY] = ACT_DIE,
                        [EVENT_MESSAGE] = ACT_DIE,
                        [EVENT_FATAL] = ACT_DIE,
                        [EVENT_EOF] = ACT_AWAIT,
                        [EVENT_VIOLATION] = ACT_DIE,
                        [EVENT_EXIT] = ACT_DIE,
                        [EVENT_SILENCE] = ACT_DIE,
                },
        [ROW_CONFIGURED] =
                {
                        [EVENT_HELLO] = ACT_DIE,
                        [EVENT_READY] = ACT_START,
                        [EVENT_MESSAGE] = ACT_DELIVER,
                        [EVENT_FATAL] = ACT_DIE,
                        [EVENT_EOF] = ACT_AWAIT,
                        [EVENT_VIOLATION] = ACT_DIE,
                        [EVENT_EXIT] = ACT_DIE,
                        [EVENT_SILENCE] = ACT_DIE,
                },
        [ROW_RUNNING] =
                {
                        [EVENT_HELLO] = ACT_DIE,
                        [EVENT_READY] = ACT_DIE,
                        [EVENT_MESSAGE] = ACT_DELIVER,
                        [EVENT_FATAL] = ACT_DIE,
                        [EVENT_EOF] = ACT_AWAIT,
                        [EVENT_VIOLATION] = ACT_DIE,
                        [EVENT_EXIT] = ACT_DIE,
                        [EVENT_SILENCE] = ACT_DIE,
                },
        /* A child that was told to end may still say what was in flight; how it ends changes nothing. */
        [ROW_STOPPING] =
                {
                        [EVENT_HELLO] = ACT_IGNORE,
                        [EVENT_READY] = ACT_IGNORE,
                        [EVENT_MESSAGE] = ACT_DELIVER,
                        [EVENT_FATAL] = ACT_IGNORE,
                        [EVENT_EOF] = ACT_IGNORE,
                        [EVENT_VIOLATION] = ACT_IGNORE,
                        [EVENT_EXIT] = ACT_BURY,
                        [EVENT_SILENCE] = ACT_IGNORE,
                },
        [ROW_GONE] =
                {
                        [EVENT_HELLO] = ACT_BUG,
                        [EVENT_READY] = ACT_BUG,
                        [EVENT_MESSAGE] = ACT_BUG,
                        [EVENT_FATAL] = ACT_BUG,
                        [EVENT_EOF] = ACT_IGNORE,
                        [EVENT_VIOLATION] = ACT_IGNORE,
                        [EVENT_EXIT] = ACT_BUG,
                        [EVENT_SILENCE] = ACT_IGNORE,
                },
};

enum child_event child_event_of(enum message_type type)
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

static int row_of(enum child_state state)
{
        switch (state) {
        case CHILD_STARTING:
                return ROW_STARTING;
        case CHILD_CONFIGURED:
                return ROW_CONFIGURED;
        case CHILD_RUNNING:
                return ROW_RUNNING;
        case CHILD_STOPPING:
                return ROW_STOPPING;
        case CHILD_GONE:
                return ROW_GONE;
        }
        return -1;
}

enum child_action child_reaction(enum child_state state, enum child_event event)
{
        int row = row_of(state);

        return row < 0 || (unsigned)event >= CHILD_EVENT_COUNT ? ACT_BUG : table[row][event];
}

void child_death_describe(int status, const char *killed_why, char *buffer, size_t size)
{
        if (WIFSIGNALED(status))
                snprintf(buffer, size, "was killed by signal %s%s%s", sigabbrev_np(WTERMSIG(status)),
                         WCOREDUMP(status) ? " (core dumped)" : "", killed_why);
        else if (WEXITSTATUS(status) == 127)
                snprintf(buffer, size, "could not be executed (exit code 127)");
        else
                snprintf(buffer, size, "exited by itself with code %d", WEXITSTATUS(status));
}
