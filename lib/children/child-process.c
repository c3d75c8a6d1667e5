/* SPDX-License-Identifier: Apache-2.0 */
#include "children/child-process.h"

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
