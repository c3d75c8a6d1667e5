/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a handler's limits where control groups do not hold them: process/process.h. */
#include "base/cgroup.h"
#include "base/duration.h"
#include "supervisor/config.h"

struct sentence {
        char *buffer;
        size_t size, used;
};

static void say(struct sentence *sentence, const char *text)
{
        if (sentence->used < sentence->size)
                sentence->used +=
                        (size_t)snprintf(sentence->buffer + sentence->used, sentence->size - sentence->used,
                                         "%s%s", sentence->used > 0 ? "; " : "", text);
}

void config_limits_weakened(const struct config_watch *watch, unsigned controllers, char *buffer,
                            size_t size)
{
        const struct config_handler *handler = &watch->handler;
        struct sentence sentence = {buffer, size, 0};

        buffer[0] = '\0';
        if (handler->limit_memory > 0 && !(controllers & CGROUP_BIT(CGROUP_MEMORY)))
                say(&sentence, "memory holds for the data of each process alone (RLIMIT_DATA)");
        if (handler->limit_pids > 0 && !(controllers & CGROUP_BIT(CGROUP_PIDS)))
                say(&sentence, "pids does not hold at all");
        if (handler->limit_cpu > 0 && !(controllers & CGROUP_BIT(CGROUP_CPU)))
                say(&sentence, handler->kind == HANDLER_EXEC
                                       ? "cpu holds only as the CPU time that a process can have until the "
                                         "timeout (RLIMIT_CPU)"
                                       : "cpu does not hold at all");
}
