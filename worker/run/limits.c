/* SPDX-License-Identifier: Apache-2.0 */
/* See limits.h. */
#include "worker/run/limits.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

void limits_apply(const struct worker *worker, const struct worker_watch *watch,
                  struct process_options *options)
{
        const struct record_watch *config = watch->config;

        options->user = watch->user;
        options->limits = (struct process_limits){
                .memory = config->limit_memory,
                .pids = config->limit_pids,
                .user_pids = config->user_pids,
                .cpu_milli = config->limit_cpu_milli,
        };
        options->group_folder = worker->config->group_folder;
        options->group_controllers = (unsigned)worker->config->group_controllers;
}

/* Formats powers of 1024 as the configuration spells them. */
static void format_size(uint64_t bytes, char *buffer, size_t size)
{
        static const char *const unit[] = {"", "Ki", "Mi", "Gi", "Ti"};
        size_t i = 0;

        for (; i + 1 < ELEMENTS(unit) && bytes > 0 && bytes % 1024 == 0; i++)
                bytes /= 1024;
        snprintf(buffer, size, "%" PRIu64 "%s", bytes, unit[i]);
}

bool limits_explain(const struct record_watch *config, const struct process_result *result, char *buffer,
                    size_t size)
{
        char limit[32];

        format_size(config->limit_memory, limit, sizeof(limit));
        if (result->memory_end == MEMORY_LIMIT && config->limit_memory > 0)
                snprintf(buffer, size, "was ended for lack of memory: it took more than its limit of %s",
                         limit);
        else if (result->memory_end != MEMORY_ENOUGH)
                snprintf(buffer, size,
                         "was ended for lack of memory: the container, the unit or the machine has no more");
        else if (config->limit_cpu_milli > 0 && WIFSIGNALED(result->wait_status) &&
                 WTERMSIG(result->wait_status) == SIGXCPU)
                snprintf(buffer, size, "took more CPU time than its limit allows until its timeout");
        else
                return false;
        return true;
}
