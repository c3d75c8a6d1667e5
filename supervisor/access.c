/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What handlers are given for themselves (handler.credentials, handler.kubernetes). The folders are made
 * here, in memory, and each handler's user is let at its own; the credential process fills them, keeps them
 * fresh and says how that goes. A watch whose handler has no valid token runs nothing, and is degraded;
 * past its deadline that is fatal, as for whatever else it needs of the server.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/memory.h"
#include "controller/order/pause.h"
#include "ipc/message-id.h"
#include "ipc/spawner/client.h"
#include "supervisor/supervisor.h"

/* ---- the folders */

int access_begin(struct supervisor *supervisor, struct error *error)
{
        const char *const above[] = {supervisor->secrets_parent, NULL};

        if (asprintf(&supervisor->access_folder, "%s.handlers", supervisor->secrets_folder) < 0) {
                supervisor->access_folder = NULL;
                return error_set(error, -ENOMEM, "no memory");
        }
        return config_access_folders(supervisor->config, supervisor->access_folder, above, error);
}

void access_end(struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->access_count; i++) {
                free(supervisor->access[i].watch);
                free(supervisor->access[i].trouble.reason);
        }
        free(supervisor->access);
        /* Without the lock it would be another operator's. */
        if (supervisor->access_folder && supervisor->runtime_lock_fd >= 0)
                (void)folder_remove(supervisor->access_folder);
        free(supervisor->access_folder);
}

/* A folder above ours may be closed to it. */
static int check_reach(const struct supervisor *supervisor, const struct config_watch *watch,
                       struct error *error)
{
        const struct config_handler *handler = &watch->handler;
        _cleanup_free_ char *path = NULL;
        int r;

        if (asprintf(&path, "%s/%s", supervisor->access_folder, watch->name) < 0) {
                path = NULL;
                return error_set(error, -ENOMEM, "no memory");
        }
        r = spawner_can_read(handler->user, handler->uid, handler->gid, path);
        if (r != 0)
                return 0; /* what could not be found out was told before */
        return error_set(
                error, -EACCES,
                "%s:%u: the user %s, as whom handlers of watch %s run, cannot reach their "
                "credentials in %s: a folder above it is closed to that user (chmod o+x), or choose "
                "another runtime directory",
                watch->file, watch->line, handler->user, watch->name, path);
}

static void warn_same_user(const struct config_watch *watch)
{
        log_warning("credentials not separated: handlers of watch %s have %s of their own, but run as the "
                    "operator's own user (uid %u): they could read the operator's credentials as well, and "
                    "its other handlers could read theirs; give them a user of their own (handler.user)",
                    watch->name, watch->handler.kubernetes ? "access" : "credentials", (unsigned)geteuid());
}

int access_check(const struct supervisor *supervisor, struct error *error)
{
        const struct config *config = supervisor->config;
        int r = 0;

        for (size_t i = 0; i < config->watch_count && r >= 0; i++) {
                const struct config_watch *watch = &config->watch[i];

                if (!config_has_access(watch))
                        continue;
                if (watch->handler.user && watch->handler.uid != geteuid())
                        r = check_reach(supervisor, watch, error);
                else
                        warn_same_user(watch);
        }
        return r;
}

/* ---- how it stands */

static struct access_state *find(const struct supervisor *supervisor, const char *watch)
{
        for (size_t i = 0; i < supervisor->access_count; i++)
                if (strcmp(supervisor->access[i].watch, watch) == 0)
                        return &supervisor->access[i];
        return NULL;
}

const struct access_state *access_of(const struct watch *watch)
{
        return find(supervisor_of(watch), watch->config->name);
}

bool access_awaited(const struct watch *watch)
{
        const struct access_state *state = access_of(watch);

        return watch->config->handler.kubernetes_account && (!state || !state->usable);
}

static struct access_state *add(struct supervisor *supervisor, const char *watch)
{
        struct access_state *grown =
                reallocarray(supervisor->access, supervisor->access_count + 1, sizeof(*grown));
        char *name = strdup(watch);

        if (grown)
                supervisor->access = grown;
        if (!grown || !name) {
                free(name);
                return NULL;
        }
        grown += supervisor->access_count++;
        *grown = (struct access_state){.watch = name, .usable = true};
        return grown;
}

/* What runs go on with is no trouble of the watch, but may become one. */
static void tell_failing(const struct access_state *state, bool was_failing)
{
        const struct log_field fields[] = {{"RECONCILED_WATCH", state->watch}, {NULL, NULL}};

        if (state->failing && !was_failing)
                log_write(
                        LOG_WARNING, MESSAGE_ID_ACCESS_FAILING, fields,
                        "what the handler of watch %s has cannot be renewed; it stays in use as long as it "
                        "is valid, and is tried again: %s",
                        state->watch, state->trouble.reason);
        else if (!state->failing && was_failing)
                log_write(LOG_INFO, MESSAGE_ID_ACCESS_RENEWED, fields,
                          "what the handler of watch %s has can be renewed again", state->watch);
}

static bool is_past_deadline(const struct watch *watch, const struct message_access *message)
{
        return !message->usable && message->since_boottime > 0 &&
               clock_boottime_usec() >= message->since_boottime + watch->config->deadline_usec;
}

static int end_operator(const struct watch *watch, const struct message_access *message)
{
        int code = message->exit_code == EXIT_CODE_UNAVAILABLE ? EXIT_CODE_UNAVAILABLE
                                                               : EXIT_CODE_NO_PERMISSION;

        supervisor_fatal(supervisor_of(watch), code, NULL, NULL,
                         "the handler of watch %s is without its access to the API server, past the watch's "
                         "deadline: %s",
                         watch->config->name, message->reason);
        return 0;
}

int access_take(struct supervisor *supervisor, const struct message_access *message)
{
        struct access_state *state = find(supervisor, message->watch);
        struct watch *watch = watch_find(&supervisor->controller, message->watch);
        enum watch_health before = state ? state->trouble.health : WATCH_HEALTHY;
        bool was_failing = state && state->failing, isolated;

        if (!state && !(state = add(supervisor, message->watch)))
                return -ENOMEM;
        if (text_replace(&state->trouble.reason, message->reason) < 0)
                return -ENOMEM;
        state->usable = message->usable;
        state->failing = message->usable && message->reason[0];
        state->expires_realtime = message->expires_realtime;
        state->trouble.failures = message->failures;
        state->trouble.since_realtime =
                message->since_boottime > 0
                        ? clock_realtime_usec() - (clock_boottime_usec() - message->since_boottime)
                        : 0;
        isolated = watch && watch->config->on_deadline == ON_DEADLINE_ISOLATE;
        if (watch && !isolated && is_past_deadline(watch, message))
                return end_operator(watch, message);
        state->trouble.health = message->usable || !message->reason[0]         ? WATCH_HEALTHY
                                : isolated && is_past_deadline(watch, message) ? WATCH_FAILED
                                                                               : WATCH_DEGRADED;
        /* That it is there again after none was is told by the watch, which works again. */
        if (was_failing && !message->usable)
                was_failing = false;
        tell_failing(state, was_failing);
        if (!watch)
                return 0;
        watch->awaits_token = access_awaited(watch);
        pause_apply(watch);
        turn_settle_soon(supervisor);
        return before != state->trouble.health ? health_review(watch) : 0;
}

int access_apply(struct watch *watch)
{
        const struct access_state *state = access_of(watch);

        watch->awaits_token = access_awaited(watch);
        pause_apply(watch);
        turn_settle_soon(supervisor_of(watch));
        return state && state->trouble.health != WATCH_HEALTHY ? health_review(watch) : 0;
}
