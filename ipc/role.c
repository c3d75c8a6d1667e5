/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/role.h"

#include "base/cleanup.h"

static const char *const name_of_role[] = {
        [ROLE_SUPERVISOR] = "supervisor", [ROLE_CREDENTIAL] = "credential", [ROLE_WATCHER] = "watcher",
        [ROLE_WORKER] = "worker",         [ROLE_CONTROL] = "control",       [ROLE_GATEWAY] = "gateway",
        [ROLE_LEASE] = "lease",
};

static const char *const name_of_state[] = {
        [CHILD_STARTING] = "starting", [CHILD_CONFIGURED] = "configured",
        [CHILD_RUNNING] = "running",   [CHILD_STOPPING] = "stopping",
        [CHILD_GONE] = "gone",
};

const char *role_name(enum role role)
{
        return role < ELEMENTS(name_of_role) && name_of_role[role] ? name_of_role[role] : "unknown";
}

const char *role_title(enum role role)
{
        return role == ROLE_CREDENTIAL ? "credential process"
               : role == ROLE_LEASE    ? "lease process"
                                       : role_name(role);
}

const char *child_state_name(enum child_state state)
{
        return state < ELEMENTS(name_of_state) && name_of_state[state] ? name_of_state[state] : "unknown";
}
