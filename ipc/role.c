/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/role.h"

const char *role_name(enum role role)
{
        switch (role) {
        case ROLE_SUPERVISOR:
                return "supervisor";
        case ROLE_CREDENTIAL:
                return "credential";
        case ROLE_WATCHER:
                return "watcher";
        case ROLE_WORKER:
                return "worker";
        case ROLE_CONTROL:
                return "control";
        case ROLE_GATEWAY:
                return "gateway";
        }
        return "unknown";
}

const char *role_title(enum role role)
{
        return role == ROLE_CREDENTIAL ? "credential process" : role_name(role);
}

const char *child_state_name(enum child_state state)
{
        switch (state) {
        case CHILD_STARTING:
                return "starting";
        case CHILD_CONFIGURED:
                return "configured";
        case CHILD_RUNNING:
                return "running";
        case CHILD_STOPPING:
                return "stopping";
        case CHILD_GONE:
                return "gone";
        }
        return "unknown";
}
