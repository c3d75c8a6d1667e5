/* SPDX-License-Identifier: Apache-2.0 */
/* See environment.h. */
#include "worker/run/environment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/path.h"
#include "object/identity.h"

/* No other variable of ours reaches a handler. */
static const char *const passed_on[] = {"PATH",     "HOME",      "LANG",     "LC_ALL",
                                        "TZ",       "TMPDIR",    "USER",     "LOGNAME",
                                        "HOSTNAME", "NODE_NAME", "POD_NAME", "POD_NAMESPACE"};

/* Used where the operator has no PATH (a container's first process): a shell would use the same. */
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#define RUN_VARIABLES 8 /* of one run, at most */

static int add_variable(char **environment, size_t *count, const char *name, const char *value)
{
        if (asprintf(&environment[*count], "%s=%s", name, value) < 0) {
                environment[*count] = NULL;
                return -ENOMEM;
        }
        (*count)++;
        return 0;
}

/* Variables about the user describe the handler's own user. */
static const char *value_for(const struct record_watch *config, const char *name)
{
        if (config->user[0] && strcmp(name, "HOME") == 0)
                return config->home;
        if (config->user[0] && (strcmp(name, "USER") == 0 || strcmp(name, "LOGNAME") == 0))
                return config->user;
        return getenv(name);
}

static void variables_free(char **environment, size_t first)
{
        for (size_t i = first; environment && environment[i]; i++)
                free(environment[i]);
        free((void *)environment);
}

static bool is_given(const struct record_watch *config, const char *name)
{
        for (size_t i = 0; i < config->environment_count; i++)
                if (strcmp(config->environment[i].name, name) == 0)
                        return true;
        return false;
}

static int add_kubeconfig(char **environment, size_t *count, const char *folder)
{
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/kubeconfig", folder) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return add_variable(environment, count, "KUBECONFIG", path);
}

/* The variables that are passed on, and those that are the same for all runs of a watch. NULL: no memory. */
static char **environment_new(const struct record_watch *config, size_t *ret_count)
{
        char **environment = calloc(ELEMENTS(passed_on) + config->environment_count + 7, sizeof(char *));
        int r = environment ? 0 : -ENOMEM;
        size_t count = 0;

        if (r >= 0 && !getenv("PATH") && !is_given(config, "PATH"))
                r = add_variable(environment, &count, "PATH", PATH_DEFAULT);
        for (size_t i = 0; i < ELEMENTS(passed_on) && r >= 0; i++) {
                const char *value = value_for(config, passed_on[i]);

                if (value && !is_given(config, passed_on[i]))
                        r = add_variable(environment, &count, passed_on[i], value);
        }
        for (size_t i = 0; i < config->environment_count && r >= 0; i++)
                r = add_variable(environment, &count, config->environment[i].name,
                                 config->environment[i].value);
        if (r >= 0 && config->credentials_folder[0])
                r = add_variable(environment, &count, "RECONCILED_CREDENTIALS_DIRECTORY",
                                 config->credentials_folder);
        if (r >= 0 && config->kubernetes)
                r = add_kubeconfig(environment, &count, config->credentials_folder);
        if (r >= 0)
                r = add_variable(environment, &count, "RECONCILED_WATCH", config->name);
        if (r >= 0)
                r = add_variable(environment, &count, "RECONCILED_API_VERSION", config->api_version);
        if (r >= 0)
                r = add_variable(environment, &count, "RECONCILED_KIND", config->kind);
        if (r < 0) {
                variables_free(environment, 0);
                return NULL;
        }
        *ret_count = count;
        return environment;
}

/* Made once: neither this process's environment nor its configuration changes. */
char *const *environment_of_watch(struct worker_watch *watch)
{
        if (!watch->environment)
                watch->environment = environment_new(watch->config, &watch->environment_count);
        return watch->environment;
}

void environment_of_watch_free(struct worker_watch *watch)
{
        variables_free(TAKE_PTR(watch->environment), 0);
}

char *const *environment_build(const struct run *run)
{
        const struct message_run *order = run->order;
        _cleanup_free_ char *namespace_name = NULL, *name = NULL;
        char *const *of_watch = environment_of_watch(run->watch);
        size_t count = run->watch->environment_count;
        char attempt[24], epoch[24], **environment;

        environment = of_watch ? calloc(count + RUN_VARIABLES + 1, sizeof(char *)) : NULL;
        if (!environment)
                return NULL;
        memcpy((void *)environment, of_watch, count * sizeof(char *));
        snprintf(attempt, sizeof(attempt), "%" PRIu64, order->attempt);
        snprintf(epoch, sizeof(epoch), "%" PRIu64, run->worker->lead.epoch);
        if (kube_key_split(order->key, &namespace_name, &name) < 0 ||
            add_variable(environment, &count, "RECONCILED_ACTION",
                         run_told_action(run->action, run->watch->config->own_action)) < 0 ||
            add_variable(environment, &count, "RECONCILED_REASON", run_reason_name(order->reason)) < 0 ||
            add_variable(environment, &count, "RECONCILED_NAMESPACE", namespace_name) < 0 ||
            add_variable(environment, &count, "RECONCILED_NAME", name) < 0 ||
            add_variable(environment, &count, "RECONCILED_UID", order->uid) < 0 ||
            add_variable(environment, &count, "RECONCILED_ATTEMPT", attempt) < 0 ||
            (run->worker->config->tell_dry_run &&
             add_variable(environment, &count, "RECONCILED_DRY_RUN", "true") < 0) ||
            (run->worker->lead.epoch > 0 &&
             add_variable(environment, &count, "RECONCILED_EPOCH", epoch) < 0)) {
                environment_free(run->watch, environment);
                return NULL;
        }
        return environment;
}

void environment_free(const struct worker_watch *watch, char *const *environment)
{
        variables_free((char **)(uintptr_t)environment, watch->environment_count);
}
