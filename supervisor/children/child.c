/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. */
#include "supervisor/children/child.h"

#include <signal.h>

#include "controller/run/assign.h"
#include "ipc/spawner/program.h"
#include "os/syscall.h"
#include "supervisor/supervisor.h"

static const struct {
        enum spawner_program program;
        enum role role;
} kind_table[KIND_COUNT] = {
        [KIND_CREDENTIAL] = {SPAWNER_CREDENTIAL, ROLE_CREDENTIAL},
        [KIND_WATCHER] = {SPAWNER_WATCHER, ROLE_WATCHER},
        [KIND_WORKER] = {SPAWNER_WORKER, ROLE_WORKER},
        [KIND_GATEWAY] = {SPAWNER_GATEWAY, ROLE_GATEWAY},
};

const char *child_binary(enum child_kind kind)
{
        return spawner_program(kind_table[kind].program)->binary;
}

enum spawner_program child_program(enum child_kind kind)
{
        return kind_table[kind].program;
}

enum role child_role(enum child_kind kind)
{
        return kind_table[kind].role;
}

void child_describe(const struct child_slot *child, char *buffer, size_t size)
{
        const char *name = role_name(child_role(child->kind));

        if (child->kind == KIND_WATCHER)
                snprintf(buffer, size, "%s of watch %s (pid %d)", name,
                         child->supervisor->controller.watch[child->index].config->name, child->pid);
        else if (child->kind == KIND_WORKER)
                snprintf(buffer, size, "%s %zu (pid %d)", name, child->index, child->pid);
        else
                snprintf(buffer, size, "%s (pid %d)", name, child->pid);
}

struct child_slot *worker_child(const struct worker *worker)
{
        struct supervisor *supervisor = worker->controller->userdata;

        return &supervisor->worker_child[worker - worker->controller->worker];
}

void child_set_state(struct child_slot *child, enum child_state state)
{
        struct controller *controller = &child->supervisor->controller;

        child->state = state;
        if (child->kind == KIND_WATCHER)
                controller->watch[child->index].is_up = state == CHILD_RUNNING;
        if (child->kind == KIND_WORKER)
                controller->worker[child->index].is_up = state == CHILD_RUNNING;
        if (child->channel)
                channel_set_state(child->channel, state);
}

const char *child_busy_with(const struct child_slot *child)
{
        const struct queue_run *run;

        if (child->kind != KIND_WORKER)
                return NULL;
        run = worker_run(&child->supervisor->controller.worker[child->index]);
        return run ? run->key : NULL;
}

bool child_is_used(const struct child_slot *child)
{
        return child->kind != KIND_WATCHER || child->supervisor->controller.watch[child->index].config;
}

bool children_all(const struct supervisor *supervisor, enum child_kind kind, enum child_state state)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].kind == kind && supervisor->child[i].state != state)
                        return false;
        return true;
}

bool children_gone(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].state != CHILD_GONE)
                        return false;
        return true;
}

void child_signal(struct child_slot *child, int signal)
{
        if (child->state == CHILD_GONE || child->pid <= 0)
                return;
        child_set_state(child, CHILD_STOPPING);
        child->killed = child->killed || signal == SIGKILL;
        (void)sys_kill(child->pid, signal); /* not reaped yet, so the pid is its own */
}

void child_stop(struct child_slot *child, uint64_t grace_usec)
{
        (void)channel_send(child->channel, MESSAGE_STOP, &(struct message_stop){.grace_usec = grace_usec});
        child_set_state(child, CHILD_STOPPING);
}

struct child_slot *child_gateway(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].kind == KIND_GATEWAY)
                        return &supervisor->child[i];
        return NULL;
}
