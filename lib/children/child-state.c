/* SPDX-License-Identifier: Apache-2.0 */
#include "children/child-state.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"

static const enum child_state state_of_column[] = {CHILD_STARTING, CHILD_CONFIGURED, CHILD_RUNNING,
                                                   CHILD_STOPPING, CHILD_GONE};

#define ROW(event, starting, configured, running, stopping, gone)                                           \
        [EVENT_##event] = {ACT_##starting, ACT_##configured, ACT_##running, ACT_##stopping, ACT_##gone}

/* A child that was told to end may still say what was in flight; how it ends changes nothing. */
static const enum child_action table[CHILD_EVENT_COUNT][ELEMENTS(state_of_column)] = {
        /* While it is: starting, configured, running, stopping, gone */
        ROW(HELLO, CONFIGURE, DIE, DIE, IGNORE, BUG),
        ROW(READY, DIE, START, DIE, IGNORE, BUG),
        ROW(MESSAGE, DIE, DELIVER, DELIVER, DELIVER, BUG),
        ROW(FATAL, DIE, DIE, DIE, IGNORE, BUG),
        ROW(EOF, AWAIT, AWAIT, AWAIT, IGNORE, IGNORE),
        ROW(VIOLATION, DIE, DIE, DIE, IGNORE, IGNORE),
        ROW(EXIT, DIE, DIE, DIE, BURY, BUG),
        ROW(SILENCE, DIE, DIE, DIE, IGNORE, IGNORE),
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

enum child_action child_reaction(enum child_state state, enum child_event event)
{
        for (size_t i = 0; i < ELEMENTS(state_of_column) && (unsigned)event < CHILD_EVENT_COUNT; i++)
                if (state_of_column[i] == state)
                        return table[event][i];
        return ACT_BUG;
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
