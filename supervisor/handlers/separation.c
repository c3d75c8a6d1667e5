/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/handlers/separation.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "config/access.h"
#include "config/handler-limits.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "ipc/spawner/spawner-client.h"
#include "os/folder.h"
#include "supervisor/supervisor.h"

#define SERVICE_ACCOUNT_TOKEN "/var/run/secrets/kubernetes.io/serviceaccount/token"

static bool has_right(unsigned right)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {0};

        return syscall(SYS_capget, &header, data) >= 0 && data[0].effective & (1U << right);
}

/* In a user namespace (PrivateUsers=) most users do not exist. */
static bool is_mapped(const char *map, unsigned id)
{
        _cleanup_fclose_ FILE *file = fopen(map, "re");
        unsigned first, count;

        if (!file)
                return true;
        while (fscanf(file, "%u %*u %u", &first, &count) == 2)
                if (id >= first && id - first < count)
                        return true;
        return false;
}

/* Processes that a handler leaves behind are found in /proc; those of other users may be hidden
 * (hidepid). */
static bool others_are_hidden(void)
{
        _cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
        bool hidden = false;
        char line[4096];

        while (file && fgets(line, sizeof(line), file)) {
                const char *options = strstr(line, " - proc ");

                if (!options || !strstr(line, " /proc "))
                        continue;
                options = strstr(options, "hidepid=");
                hidden = options && strncmp(options, "hidepid=0", 9) != 0 &&
                         strncmp(options, "hidepid=off", 11) != 0;
        }
        return hidden && !has_right(CAP_SYS_PTRACE);
}

static const char *what_is_missing(const struct config_handler *handler)
{
        if (!has_right(CAP_SETUID) || !has_right(CAP_SETGID) || !has_right(CAP_KILL))
                return "the operator has no right to run handlers as another user: it needs CAP_SETUID, "
                       "CAP_SETGID and CAP_KILL (drop-in user.conf), or to be root";
        if (!is_mapped("/proc/self/uid_map", handler->uid) || !is_mapped("/proc/self/gid_map", handler->gid))
                return "this user or its group does not exist in the operator's user namespace "
                       "(PrivateUsers=no, drop-in user.conf)";
        if (others_are_hidden())
                return "/proc hides the processes of other users, so the operator could not end what a "
                       "handler leaves behind (ProtectProc=default, drop-in user.conf)";
        return NULL;
}

static int add_separation_problem(struct config_problems *problems, const struct config_watch *watch,
                                  const char *key, const char *text)
{
        struct config_problem *grown = reallocarray(problems->problem, problems->count + 1, sizeof(*grown));
        struct config_problem *problem;

        if (!grown)
                return -ENOMEM;
        problems->problem = grown;
        problem = &grown[problems->count];
        *problem = (struct config_problem){.line = watch->line, .file = strdup(watch->file)};
        problem->key = format_string("%s of watch %s", key, watch->name);
        problem->text = strdup(text);
        problems->count++;
        return problem->file && problem->key && problem->text ? 0 : -ENOMEM;
}

/* 0, -EINVAL: it is a problem; -ENOMEM. A file that cannot be read is reported by the process that reads it.
 * If the handler's user may have caused the problem, it is a warning: the copy is not made, and the watch
 * waits. */
static int check_source(struct config_problems *problems, const struct config_watch *watch, const char *key,
                        const char *path, uid_t reader)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct stat st;

        if (stat(path, &st) < 0 || file_check_source(path, &st, reader, &error) >= 0)
                return 0;
        if (add_separation_problem(problems, watch, key, error_message(&error)) < 0)
                return -ENOMEM;
        if (reader == NOBODY || !file_is_of_others(path))
                return -EINVAL;
        problems->problem[problems->count - 1].warning = true;
        return 0;
}

/* The files that its handler is given a copy of; the credential process looks again at each copy. */
static int check_sources(struct config_problems *problems, const struct config_watch *watch)
{
        const struct config_handler *handler = &watch->handler;
        int r = 0;

        for (size_t i = 0; i < handler->credentials_count && r != -ENOMEM; i++) {
                int one = check_source(problems, watch, "handler.credentials", handler->credentials[i].value,
                                       handler->uid);

                r = one < 0 ? one : r;
        }
        if (handler->kubernetes_file && r >= 0)
                r = check_source(problems, watch, "handler.kubernetes.kubeconfig", handler->kubernetes_file,
                                 NOBODY);
        return r;
}

int separation_check(const struct config *config, struct config_problems *problems)
{
        int first = 0;

        FOREACH_ARRAY(watch, config->watch, config->watch_count) {
                const char *missing;
                int r;

                if (!watch->handler.user || watch->handler.uid == geteuid())
                        continue;
                missing = what_is_missing(&watch->handler);
                if (missing)
                        r = add_separation_problem(problems, watch, "handler.user", missing) < 0 ? -ENOMEM
                                                                                                 : -EINVAL;
                else
                        r = check_sources(problems, watch);
                if (r == -ENOMEM)
                        return r;
                first = r < 0 ? r : first;
        }
        return first;
}

/* ---- what must not be read */

/* Negative if that could not be found out. */
static int warn_readable(const struct supervisor *supervisor, const struct config_watch *watch)
{
        const struct config *config = supervisor->config;
        const struct config_handler *handler = &watch->handler;
        const char *const path[] = {
                config->kubeconfig[0] ? config->kubeconfig : getenv("KUBECONFIG"),
                SERVICE_ACCOUNT_TOKEN,
                config->gateway_token_file,
                config->gateway_key_file,
                supervisor->options->state_directory,
                supervisor->options->runtime_directory,
                config->record,
        };

        for (size_t i = 0; i < ELEMENTS(path); i++) {
                int r = path[i] && path[i][0]
                                ? spawner_can_read(handler->user, handler->uid, handler->gid, path[i])
                                : 0;

                if (r < 0)
                        return r;
                if (r > 0)
                        log_warning(
                                "credentials not separated: the user %s, which runs the handlers of watch "
                                "%s, can read %s; remove that right (chmod o-r, g-r)",
                                handler->user, watch->name, path[i]);
        }
        return 0;
}

/* Logged once: a user database that is slow for one is slow for all, and no process is served meanwhile. */
static void tell_unknown(const struct config_watch *watch, int error)
{
        log_warning(
                "cannot tell whether handlers running as user %s (watch %s) could read the credentials: %s; "
                "check that the system's user database (LDAP?) answers",
                watch->handler.user, watch->name, strerror(-error));
}

void separation_warn(const struct supervisor *supervisor)
{
        bool same = false;
        int r = 0;

        FOREACH_ARRAY(watch, supervisor->config->watch, supervisor->config->watch_count) {
                bool separate = watch->handler.user && watch->handler.uid != geteuid();

                if (separate && r >= 0) {
                        r = warn_readable(supervisor, watch);
                        if (r < 0)
                                tell_unknown(watch, r);
                }
                same = same || (!separate && !watch->owner && !config_has_access(watch));
        }
        if (same)
                log_warning(
                        "credentials not separated: handlers run as the operator's own user (uid %u) and "
                        "could read its files; give them a user of their own (handler.user), or keep "
                        "kubeconfig and token readable for the operator only as far as you trust the "
                        "handlers",
                        (unsigned)getuid());
}

/* ---- limits */

static void limits_judge(struct watch *watch)
{
        const struct cgroup_delegation *delegation = &supervisor_of(watch)->delegation;
        char before[sizeof(watch_place_of(watch)->limits_weakened)];

        memcpy(before, watch_place_of(watch)->limits_weakened, sizeof(before));
        config_limits_weakened(watch->config, delegation->controllers,
                               watch_place_of(watch)->limits_weakened,
                               sizeof(watch_place_of(watch)->limits_weakened));
        if (watch_place_of(watch)->limits_weakened[0] &&
            strcmp(watch_place_of(watch)->limits_weakened, before) != 0)
                log_write(LOG_WARNING, MESSAGE_ID_LIMITS_WEAKENED,
                          LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                          "watch %s: handler.limits cannot be enforced as configured, because %s: %s",
                          watch->config->name, delegation->why, watch_place_of(watch)->limits_weakened);
}

void limits_prepare(struct supervisor *supervisor)
{
        bool limits = false;

        for (size_t i = 0; i < supervisor->controller.watch_count; i++)
                limits = limits || config_has_limits(supervisor->controller.watch[i].config);
        cgroup_take(limits, &supervisor->delegation);
        if (supervisor->delegation.folder)
                log_debug("each run of a handler gets a control group below %s",
                          supervisor->delegation.folder);
        supervisor->memory_kills = cgroup_memory_kills();
        FOREACH_WATCH(watch, &supervisor->controller)
                limits_judge(watch);
}
