/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/handlers/limit-groups.h"

#include <string.h>

#include "config/handler-limits.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/cgroup.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/place.h"

void limits_judge(struct watch *watch)
{
        const struct cgroup_delegation *delegation = &supervisor_of(watch)->delegation;
        char before[sizeof(place_of(watch)->limits_weakened)];

        memcpy(before, place_of(watch)->limits_weakened, sizeof(before));
        config_limits_weakened(watch->config, delegation->controllers, place_of(watch)->limits_weakened,
                               sizeof(place_of(watch)->limits_weakened));
        if (place_of(watch)->limits_weakened[0] && strcmp(place_of(watch)->limits_weakened, before) != 0)
                log_write(LOG_WARNING, MESSAGE_ID_LIMITS_WEAKENED,
                          LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                          "watch %s: handler.limits cannot be enforced as configured, because %s: %s",
                          watch->config->name, delegation->why, place_of(watch)->limits_weakened);
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
