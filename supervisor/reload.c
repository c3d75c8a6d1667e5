/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the configuration, at the start and on SIGHUP. A reload is a restart in place: the new file is
 * judged first, and a wrong one changes nothing; then what runs may finish, the children end in order, and
 * the supervisor executes itself anew, as the same process, so that to systemd and to the kubelet the
 * operator never went away. Watches go on from their stores, without a LIST; what was queued is announced
 * again.
 */
#include <errno.h>
#include <string.h>

#include "base/syscall.h"
#include "ipc/message-id.h"
#include "supervisor/supervisor.h"

#define DELETED " (deleted)" /* how the kernel names a program whose file has been replaced */

int config_load_and_tell(const struct options *options, struct config **ret, char *first, size_t size)
{
        struct config_problems problems = {0};
        int r = config_load(options->config_path, ret, &problems);

        if (r >= 0) {
                r = separation_check(*ret, &problems);
                if (r < 0) {
                        config_free(*ret);
                        *ret = NULL;
                }
        }
        snprintf(first, size, "the configuration is wrong");
        for (size_t i = 0; i < problems.count; i++) {
                const struct config_problem *problem = &problems.problem[i];
                _cleanup_text_ struct text line = TEXT_EMPTY;

                if (config_problem_format(problem, &line) < 0)
                        continue;
                if (!problem->warning && strchr(first, ':') == NULL)
                        snprintf(first, size, "the configuration is wrong: %s", line.data);
                if (options->check)
                        puts(line.data);
                else
                        log_write(problem->warning ? LOG_WARNING : LOG_ERR, MESSAGE_ID_CONFIGURATION_WRONG,
                                  NULL, "%s", line.data);
        }
        config_problems_done(&problems);
        if (r == -ENOMEM)
                log_error("no memory for the configuration");
        return r;
}

void reload(struct supervisor *supervisor)
{
        struct config *config = NULL;
        char first[512];

        if (supervisor->phase > PHASE_RUNNING) {
                log_info("asked to reload while ending: ignored");
                return;
        }
        notify_reloading();
        if (config_load_and_tell(supervisor->options, &config, first, sizeof(first)) < 0) {
                log_error("the new configuration is not taken; everything goes on with the old one");
                notify_not_reloaded(supervisor, first);
                return;
        }
        config_free(config);
        log_write(LOG_INFO, MESSAGE_ID_RELOADING, NULL,
                  "operator %s reloads its configuration: what runs may finish, then it starts anew",
                  supervisor->config->operator_name);
        supervisor->reloading = true;
        stop_gracefully(supervisor);
}

void reload_execute(char **argv)
{
        char path[4096];
        ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

        if (length < 0)
                return;
        path[length] = '\0';
        if ((size_t)length > strlen(DELETED) && strcmp(path + length - strlen(DELETED), DELETED) == 0 &&
            access(path, X_OK) < 0)
                path[(size_t)length - strlen(DELETED)] = '\0';
        (void)sys_close_from(STDERR_FILENO + 1);
        execv(path, argv);
}
