/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/handlers/access-state.h"

#include <string.h>

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

        return watch->config->handler.kubernetes_account && (!state || !state->usable);
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
