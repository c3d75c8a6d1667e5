/* SPDX-License-Identifier: Apache-2.0 */
/* See launch.h. */
#include "worker/run/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLUGIN_HOST "reconciled-plugin-host"

/* The host lies beside this program, or where the build folder has it. The process has one path. */
static const char *plugin_host(void)
{
        static char path[4096 + sizeof("/../plugin/" PLUGIN_HOST)];
        char self[4096], *slash;
        ssize_t length = path[0] ? 0 : readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (length <= 0)
                return path;
        self[length] = '\0';
        slash = strrchr(self, '/');
        snprintf(path, sizeof(path), "%.*s/../plugin/" PLUGIN_HOST, (int)(slash - self), self);
        if (access(path, X_OK) < 0)
                snprintf(path, sizeof(path), "%.*s/" PLUGIN_HOST, (int)(slash - self), self);
        return path;
}

/* A list that ends with NULL; its strings are borrowed from `config`. NULL: no memory. */
static char **build_arguments(const struct record_watch *config)
{
        bool hosted = config->handler_kind == HANDLER_PLUGIN;
        char **argument = calloc(config->handler_exec_count + 2, sizeof(char *));

        if (argument && hosted)
                argument[0] = (char *)(uintptr_t)plugin_host();
        for (size_t i = 0; argument && i < config->handler_exec_count; i++)
                argument[i + hosted] = (char *)(uintptr_t)config->handler_exec[i].value;
        return argument;
}

int launch_handler(const struct worker *worker, const struct worker_watch *watch, char *const *environment,
                   struct process_options *options, struct process **ret)
{
        const struct record_watch *config = watch->config;
        _cleanup_free_ char **argument = build_arguments(config);

        if (!argument || !environment)
                return -ENOMEM;
        options->argument = argument;
        options->environment = environment;
        options->grace_usec = config->handler_grace_usec;
        options->user = watch->user;
        options->limits = (struct process_limits){
                .memory = config->limit_memory,
                .pids = config->limit_pids,
                .user_pids = config->user_pids,
                .cpu_milli = config->limit_cpu_milli,
        };
        options->group_folder = worker->config->group_folder;
        options->group_controllers = (unsigned)worker->config->group_controllers;
        return process_start(worker->child->event, options, ret);
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

bool launch_explain_limit(const struct record_watch *config, const struct process_result *result,
                          char *buffer, size_t size)
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
