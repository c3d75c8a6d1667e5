/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/fatal.h"

#include <assert.h>
#include <stdarg.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/due/assigned.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/supervisor.h"

#define STOP_COMES_USEC (2 * USEC_PER_SEC) /* after the signal that a child got from the same stop */

struct assignment *child_is_at(const struct child_slot *child, struct slot_view *ret)
{
        const struct supervisor *supervisor = child->supervisor;
        struct worker *worker;

        *ret = (struct slot_view){SLOT_IDLE, "", ""};
        if (child->process.role != ROLE_WATCHER && child->process.role != ROLE_WORKER)
                return NULL;
        if (slots_look(supervisor->slots, child_slot_number(child), ret) < 0)
                *ret = (struct slot_view){SLOT_IDLE, "", ""};
        if (child->process.role == ROLE_WATCHER)
                return NULL;
        worker = &supervisor->controller.worker[child->index];
        if (ret->stage != SLOT_IDLE && !child->was_killed)
                return worker_find(worker, ret->key, ret->uid);
        return worker->given_count == 1 && !worker->given[0].to_send ? &worker->given[0] : NULL;
}

/* The watch that the child is of, or whose object it was busy with. */
static const char *watch_name(const struct supervisor *supervisor, const struct child_slot *child,
                              const struct assignment *run)
{
        if (child && child->process.role == ROLE_WATCHER)
                return supervisor->controller.watch[child->index].config->name;
        return run ? supervisor->controller.watch[run->run.watch].config->name : NULL;
}

void supervisor_fatal(struct supervisor *supervisor, int exit_code, const struct child_slot *child,
                      const char *key, const char *format, ...)
{
        struct supervisor_end *end = &supervisor->end;
        bool blames = child && exit_code == EXIT_CODE_SOFTWARE && !child->blameless;
        char pid[16] = "", code[16];
        va_list arguments;

        assert(exit_code != EXIT_CODE_OK);
        if (supervisor->phase == PHASE_TEARDOWN)
                return; /* a death that we caused, or a consequence */
        va_start(arguments, format);
        vsnprintf(end->cause, sizeof(end->cause), format, arguments);
        va_end(arguments);
        end->run = child ? child_is_at(child, &end->view) : NULL;
        if (blames && child->process.role == ROLE_WATCHER && end->view.stage != SLOT_IDLE)
                key = end->view.key;
        if (end->run && !key)
                key = end->run->run.key;
        if (child)
                snprintf(pid, sizeof(pid), "%d", child->process.pid);
        snprintf(code, sizeof(code), "%d", exit_code);
        log_write(LOG_CRIT, MESSAGE_ID_CHILD_FATAL,
                  LOG_FIELDS({"RECONCILED_CHILD", child ? role_name(child->process.role) : NULL},
                             {"RECONCILED_WATCH", watch_name(supervisor, child, end->run)},
                             {"RECONCILED_KEY", key}, {"RECONCILED_PID", pid},
                             {"RECONCILED_EXIT_CODE", code}),
                  "%s%s%s; the operator ends with exit code %d (%s)", end->cause,
                  child && key && key[0] ? ", busy with " : "", child && key ? key : "", exit_code,
                  exit_code_name(exit_code));
        end->child = blames ? child : NULL;
        end->was_killed = supervisor->lead.was_missed ||
                          (blames && child->was_killed && child->process.role != ROLE_WORKER);
        end->pending = true;
        supervisor->exit_code = exit_code;
        supervisor_set_phase(supervisor, PHASE_TEARDOWN);
}

static int on_not_stopped(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        if (supervisor->phase <= PHASE_RUNNING)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, supervisor->end.suspicious, NULL, "%s",
                                 supervisor->end.suspicion);
        return 0;
}

void supervisor_fatal_unless_stopped(const struct child_slot *child, const char *format, ...)
{
        struct supervisor *supervisor = child->supervisor;
        va_list arguments;

        if (supervisor->phase > PHASE_RUNNING || supervisor->end.timer)
                return;
        va_start(arguments, format);
        vsnprintf(supervisor->end.suspicion, sizeof(supervisor->end.suspicion), format, arguments);
        va_end(arguments);
        supervisor->end.suspicious = child;
        if (sd_event_add_time_relative(supervisor->event, &supervisor->end.timer, CLOCK_MONOTONIC,
                                       STOP_COMES_USEC, 0, on_not_stopped, supervisor) < 0)
                on_not_stopped(NULL, 0, supervisor);
}
