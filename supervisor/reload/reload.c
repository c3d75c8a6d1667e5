/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/reload/reload.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "config/check/check-program.h"
#include "config/differ.h"
#include "controller/due/push.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/children/configure.h"
#include "supervisor/children/tell.h"
#include "supervisor/folders/secrets.h"
#include "supervisor/handlers/separation.h"
#include "supervisor/handlers/stamp.h"
#include "supervisor/heartbeat.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"
#include "supervisor/teardown.h"

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
        FOREACH_ARRAY(problem, problems.problem, problems.count) {
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

#define DELETED " (deleted)" /* how the kernel names a program whose file has been replaced */

static bool program_was_replaced(void)
{
        char path[4096];
        ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
        size_t suffix = strlen(DELETED);

        path[length < 0 ? 0 : length] = '\0';
        return length >= (ssize_t)suffix && strcmp(path + length - suffix, DELETED) == 0 &&
               access(path, X_OK) < 0;
}

static const struct watch *watch_with_another_program(const struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, &supervisor->controller)
                if (handler_is_stale(watch))
                        return watch;
        return NULL;
}

static bool needs_restart(const struct supervisor *supervisor, const struct config *config, char *why,
                          size_t size)
{
        const struct watch *other = watch_with_another_program(supervisor);
        char key[DIFFER_KEY_SIZE];

        if (config_differs(supervisor->config, config, key, sizeof(key)))
                snprintf(why, size, "`%s` has changed", key);
        else if (other)
                snprintf(why, size, "the program of the handler of watch %s has changed",
                         other->config->name);
        else
                return false;
        return true;
}

static void restart(struct supervisor *supervisor, const char *why)
{
        log_write(LOG_NOTICE, MESSAGE_ID_RELOADING, NULL,
                  "operator %s restarts in place, because %s: running handlers may finish, for at most %s "
                  "(stop.grace)",
                  supervisor->config->operator_name, why,
                  duration_format(supervisor->config->stop_grace_usec, (char[64]){0}, 64));
        supervisor->reload.restarting = true;
        supervisor->reload.next =
                (struct reload_life){.config = TAKE_PTR(supervisor->reload.next.config),
                                     .since = clock_monotonic_usec(),
                                     .started = supervisor->controller.started,
                                     .startup_over = !startup_pending(&supervisor->controller)};
        stop_gracefully(supervisor);
}

static void end_for_new_version(struct supervisor *supervisor)
{
        log_write(
                LOG_NOTICE, MESSAGE_ID_PROGRAM_REPLACED, NULL,
                "the program of operator %s has been replaced by another version, which a reload cannot "
                "start: running handlers may finish, then the operator ends with exit code %d (%s), so that "
                "it is started again",
                supervisor->config->operator_name, EXIT_CODE_SOFTWARE, exit_code_name(EXIT_CODE_SOFTWARE));
        supervisor->exit_code = EXIT_CODE_SOFTWARE;
        stop_gracefully(supervisor);
}

/* Runs may take a while to finish, and the file may have become wrong by then. */
static void keep_for_restart(struct supervisor *supervisor, struct config *config)
{
        config_free(supervisor->reload.next.config);
        supervisor->reload.next.config = config;
}

bool reload_can_restart(struct supervisor *supervisor, char *why, size_t size)
{
        struct config *config = NULL;
        int r = config_load_and_tell(supervisor->options, &config, why, size);

        if (r >= 0)
                keep_for_restart(supervisor, config);
        return r >= 0;
}

void reload_by_restart(struct supervisor *supervisor, const char *why)
{
        if (program_was_replaced()) {
                end_for_new_version(supervisor);
                return;
        }
        notify_reloading(supervisor);
        restart(supervisor, why);
}

static void not_reloaded(struct supervisor *supervisor, const char *why)
{
        log_error("the new configuration is rejected; the old one stays in force: %s", why);
        notify_not_reloaded(supervisor, why);
}

/* What the configuration names may have changed although it has not. */
static void read_files_again(struct supervisor *supervisor)
{
        supervisor->reload.refused[0] = '\0';
        supervisor->controller.reloads++;
        log_write(
                LOG_NOTICE, MESSAGE_ID_RELOADED, NULL,
                "operator %s: the configuration has not changed; files and credentials are read again, and "
                "nothing restarts",
                supervisor->config->operator_name);
        tell_refresh(supervisor, &(struct message_refresh){.files = true});
        separation_warn(supervisor);
        handlers_take_up(supervisor);
        if (supervisor->phase == PHASE_RUNNING)
                notify_ready(supervisor);
}

void reload_over(struct supervisor *supervisor)
{
        char text[64];

        if (supervisor->reload.since == 0)
                return;
        supervisor->reload.pause_usec = clock_monotonic_usec() - supervisor->reload.since;
        log_write(LOG_NOTICE, MESSAGE_ID_RELOADED, NULL,
                  "operator %s has restarted in place: no run began for %s",
                  supervisor->config->operator_name,
                  duration_format(supervisor->reload.pause_usec / USEC_PER_MSEC * USEC_PER_MSEC, text,
                                  sizeof(text)));
}

void reload(struct supervisor *supervisor)
{
        struct config *config = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        char first[512], why[sizeof("``") + DIFFER_KEY_SIZE + 96];
        int r;

        if (supervisor->phase > PHASE_RUNNING) {
                log_info(supervisor->reload.restarting
                                 ? "asked to reload during a restart in place, which reads the file anyway"
                                 : "asked to reload while ending: ignored");
                return;
        }
        notify_reloading(supervisor);
        if (supervisor->controller.uninstall.active) {
                not_reloaded(supervisor, "the operator is being uninstalled");
                return;
        }
        if (config_load_and_tell(supervisor->options, &config, first, sizeof(first)) < 0) {
                log_error("the new configuration is rejected; the old one stays in force");
                notify_not_reloaded(supervisor, first);
                return;
        }
        heartbeat_limit(config);
        r = configure_can_tell(supervisor, config, &error);
        if (r >= 0)
                r = secrets_check(supervisor, config, &error);
        if (r >= 0 && (strcmp(config->kubeconfig, supervisor->config->kubeconfig) != 0 ||
                       strcmp(config->context, supervisor->config->context) != 0))
                r = config_check_cluster(config, &error);
        if (r >= 0) /* also for the life that follows a restart */
                handlers_reload(supervisor, config);
        if (r >= 0 && program_was_replaced()) {
                config_free(config);
                end_for_new_version(supervisor);
                return;
        }
        if (r >= 0 && needs_restart(supervisor, config, why, sizeof(why))) {
                keep_for_restart(supervisor, config);
                restart(supervisor, why);
                return;
        }
        config_free(config);
        if (r < 0)
                not_reloaded(supervisor, error_message(&error));
        else
                read_files_again(supervisor);
}
