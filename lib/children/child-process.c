/* SPDX-License-Identifier: Apache-2.0 */
#include "children/child-process.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "os/file.h"
#include "os/syscall.h"

int child_process_open(struct child_process *process, sd_event *event, int fd,
                       const struct channel_callbacks *callbacks, void *userdata)
{
        child_process_done(process);
        process->state = CHILD_STARTING;
        return channel_new(event, fd, ROLE_SUPERVISOR, process->role, callbacks, userdata,
                           &process->channel);
}

void child_process_set_state(struct child_process *process, enum child_state state)
{
        process->state = state;
        if (process->channel)
                channel_set_state(process->channel, state);
}

void child_process_stop(struct child_process *process, uint64_t grace_usec)
{
        assert(process->channel);
        (void)channel_send(process->channel, MESSAGE_STOP, &(struct message_stop){.grace_usec = grace_usec});
        child_process_set_state(process, CHILD_STOPPING);
}

void child_process_signal(const struct child_process *process, int signal)
{
        if (process->state != CHILD_GONE && process->pid > 0)
                (void)sys_kill(process->pid, signal); /* not reaped yet, so the pid is its own */
}

void child_process_done(struct child_process *process)
{
        channel_free(process->channel);
        process->channel = NULL;
}

enum spawner_program child_program(enum role role)
{
        switch (role) {
        case ROLE_CREDENTIAL:
                return SPAWNER_CREDENTIAL;
        case ROLE_WATCHER:
                return SPAWNER_WATCHER;
        case ROLE_WORKER:
                return SPAWNER_WORKER;
        case ROLE_GATEWAY:
                return SPAWNER_GATEWAY;
        case ROLE_LEASE:
                return SPAWNER_LEASE;
        case ROLE_SUPERVISOR:
        case ROLE_CONTROL:
                break;
        }
        return SPAWNER_PROGRAM_COUNT;
}

const char *child_binary(enum role role)
{
        return spawner_program(child_program(role))->binary;
}

char *child_program_path(enum role role)
{
        const struct spawner_program_info *program = spawner_program(child_program(role));

        return program_path(program->folder, program->binary);
}

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
