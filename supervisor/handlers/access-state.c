/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/handlers/access-state.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config/access.h"
#include "ipc/spawner/spawner-client.h"
#include "os/folder.h"
#include "supervisor/supervisor.h"

struct access_state *access_find(const struct supervisor *supervisor, const char *watch)
{
        for (size_t i = 0; i < supervisor->access.count; i++)
                if (strcmp(supervisor->access.state[i].watch, watch) == 0)
                        return &supervisor->access.state[i];
        return NULL;
}

const struct access_state *access_of(const struct watch *watch)
{
        return access_find(supervisor_of(watch), watch->config->name);
}

bool access_awaited(const struct watch *watch)
{
        const struct access_state *state = access_of(watch);

        return state ? !state->usable : watch->config->handler.kubernetes_account != NULL;
}

struct access_state *access_add(struct supervisor *supervisor, const char *watch)
{
        struct access_state *grown =
                reallocarray(supervisor->access.state, supervisor->access.count + 1, sizeof(*grown));
        char *name = strdup(watch);

        if (grown)
                supervisor->access.state = grown;
        if (!grown || !name) {
                free(name);
                return NULL;
        }
        grown += supervisor->access.count++;
        *grown = (struct access_state){.watch = name, .usable = true};
        return grown;
}

void access_free(struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->access.count; i++) {
                free(supervisor->access.state[i].watch);
                free(supervisor->access.state[i].trouble.reason);
        }
        free(supervisor->access.state);
}

int access_folder_begin(struct supervisor *supervisor, struct error *error)
{
        const char *const above[] = {supervisor->secrets.parent, NULL};

        supervisor->access.folder = format_string("%s.handlers", supervisor->secrets.folder);
        if (!supervisor->access.folder)
                return error_set(error, -ENOMEM, "no memory");
        return config_access_folders(supervisor->config, supervisor->access.folder, above, error);
}

void access_folder_end(struct supervisor *supervisor)
{
        /* Without the lock it would be another operator's. */
        if (supervisor->access.folder && supervisor->lock.runtime_fd >= 0)
                (void)folder_remove(supervisor->access.folder);
        free(supervisor->access.folder);
}

/* A folder above ours may be closed to it. */
static int check_reach(const struct supervisor *supervisor, const struct config_watch *watch,
                       struct error *error)
{
        const struct config_handler *handler = &watch->handler;
        int r;
        _cleanup_free_ char *path = format_string("%s/%s", supervisor->access.folder, watch->name);

        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        r = spawner_can_read(handler->user, handler->uid, handler->gid, path);
        if (r != 0)
                return 0; /* what could not be found out was reported before */
        return error_set(
                error, -EACCES,
                "%s:%u: the user %s, which runs the handlers of watch %s, cannot reach their credentials in "
                "%s: open the folders above it to that user (chmod o+x), or choose another runtime directory",
                watch->file, watch->line, handler->user, watch->name, path);
}

static void warn_same_user(const struct config_watch *watch)
{
        log_warning("credentials not separated: handlers of watch %s have %s of their own, but run as the "
                    "operator's own user (uid %u): they could read the operator's credentials as well, and "
                    "its other handlers could read theirs; give them a user of their own (handler.user)",
                    watch->name, watch->handler.kubernetes ? "access" : "credentials", (unsigned)geteuid());
}

int access_folder_check(const struct supervisor *supervisor, struct error *error)
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
