/* SPDX-License-Identifier: Apache-2.0 */
/* A handler's limits where control groups do not hold them: lib/process/process.h. */
#include "config/handler-limits.h"

#include "os/cgroup.h"

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

bool config_has_limits(const struct config_watch *watch)
{
        const struct config_handler *handler = &watch->handler;

        return handler->limit_memory > 0 || handler->limit_pids > 0 || handler->limit_cpu > 0;
}

/* The limits of as many handlers as can run at once, added up; a process that serves stays with its
 * worker. */
static uint64_t most_pids(const struct config *config, const struct config_watch *watch)
{
        bool stays = watch->handler.kind != HANDLER_EXEC;

        return (uint64_t)watch->handler.limit_pids *
               (stays || watch->concurrency > config->workers ? config->workers : watch->concurrency);
}

void sum_user_pids(struct config *config)
{
        for (size_t i = 0; i < config->watch_count; i++) {
                struct config_handler *handler = &config->watch[i].handler;
                bool limited = true;
                uint64_t sum = 0;

                for (size_t k = 0; k < config->watch_count && handler->user; k++) {
                        const struct config_handler *other = &config->watch[k].handler;

                        if (!other->user || other->uid != handler->uid)
                                continue;
                        limited = limited && other->limit_pids > 0;
                        sum += most_pids(config, &config->watch[k]);
                }
                handler->user_pids = limited ? sum : 0;
        }
}

void config_limits_weakened(const struct config_watch *watch, unsigned controllers, char *buffer,
                            size_t size)
{
        const struct config_handler *handler = &watch->handler;
        struct sentence sentence = {buffer, size, 0};

        buffer[0] = '\0';
        if (handler->limit_memory > 0 && !(controllers & CGROUP_BIT(CGROUP_MEMORY)))
                say(&sentence, "memory limits only the data of each process (RLIMIT_DATA)");
        if (handler->limit_pids > 0 && !(controllers & CGROUP_BIT(CGROUP_PIDS)))
                say(&sentence, handler->user_pids > 0
                                       ? "pids limits all processes of its user together (RLIMIT_NPROC)"
                                       : "pids is not enforced");
        if (handler->limit_cpu > 0 && !(controllers & CGROUP_BIT(CGROUP_CPU)))
                say(&sentence,
                    handler->kind == HANDLER_EXEC
                            ? "cpu limits only the CPU time of each process until the timeout (RLIMIT_CPU)"
                            : "cpu is not enforced");
}
