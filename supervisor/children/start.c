/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/start.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "children/child-process.h"
#include "ipc/log.h"
#include "ipc/spawner/spawner-client.h"
#include "os/syscall.h"
#include "supervisor/children/spawner-life.h"
#include "supervisor/supervisor.h"

static int spawn_child(struct child_slot *child, int *ret_fd)
{
        const char *const argument[] = {"--log", log_target_name(LOG_TARGET_AUTO), "--log-level",
                                        log_level_name(), NULL};
        int pair[2], r;

        r = sys_socketpair_seqpacket(pair);
        if (r < 0)
                return r;
        r = spawner_run(child_program(child->process.role), false, argument, pair[1], &child->process.pid);
        close(pair[1]);
        if (r >= 0) {
                *ret_fd = pair[0];
                return 0;
        }
        close(pair[0]);
        if (r == -ECONNRESET || r == -ETIMEDOUT)
                spawner_failed(child->supervisor, r);
        else
                log_error("%s: %s", child_binary(child->process.role), strerror(-r));
        return r;
}

int children_new(struct supervisor *supervisor)
{
        bool gateway = supervisor->config->gateway, lease = supervisor->config->replicas;
        size_t count = 1 + supervisor->controller.watch_room + supervisor->config->workers + gateway + lease,
               next = 1;

        supervisor->child = calloc(count, sizeof(struct child_slot));
        if (!supervisor->child)
                return -ENOMEM;
        supervisor->child[0] = (struct child_slot){.process.role = ROLE_CREDENTIAL};
        for (size_t i = 0; i < supervisor->controller.watch_room; i++) {
                supervisor->child[next] = (struct child_slot){.process.role = ROLE_WATCHER, .index = i};
                supervisor->place[i].child = &supervisor->child[next++];
        }
        supervisor->worker_child = &supervisor->child[next];
        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                supervisor->child[next++] = (struct child_slot){.process.role = ROLE_WORKER, .index = i};
        }
        if (gateway)
                supervisor->child[next++] = (struct child_slot){.process.role = ROLE_GATEWAY};
        if (lease)
                supervisor->child[next] = (struct child_slot){.process.role = ROLE_LEASE};
        for (size_t i = 0; i < count; i++) {
                supervisor->child[i].supervisor = supervisor;
                supervisor->child[i].process.state = CHILD_GONE;
        }
        supervisor->child_count = count;
        return 0;
}

int child_start(struct child_slot *child)
{
        int fd, r;

        assert(child->process.state == CHILD_GONE && !child->process.channel);
        r = spawn_child(child, &fd);
        if (r < 0)
                return r;
        counters_keep(&child->past, &child->counters);
        child->counters.count = 0;
        child->last_heartbeat = clock_monotonic_usec();
        child->killed = child->blameless = false;
        r = child_process_open(&child->process, child->supervisor->event, fd,
                               child->supervisor->child_callbacks, child);
        child_set_state(child, CHILD_STARTING);
        return r;
}

int children_start(struct supervisor *supervisor)
{
        int r = 0;

        for (size_t i = 0; i < supervisor->child_count && r >= 0; i++)
                if (supervisor->child[i].process.state == CHILD_GONE && lead_is_due(&supervisor->child[i]))
                        r = child_start(&supervisor->child[i]);
        return r;
}
