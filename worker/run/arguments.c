/* SPDX-License-Identifier: Apache-2.0 */
/* See arguments.h. */
#include "worker/run/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

char **arguments_build(const struct record_watch *config)
{
        bool hosted = config->handler_kind == HANDLER_PLUGIN;
        char **argument = calloc(config->handler_exec_count + 2, sizeof(char *));

        if (argument && hosted)
                argument[0] = (char *)(uintptr_t)plugin_host();
        for (size_t i = 0; argument && i < config->handler_exec_count; i++)
                argument[i + hosted] = (char *)(uintptr_t)config->handler_exec[i].value;
        return argument;
}
