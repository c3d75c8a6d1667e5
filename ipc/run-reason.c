/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/run-reason.h"

#include <string.h>

static const char *const reason_name[RUN_REASON_COUNT] = {
        [RUN_REASON_NONE] = "",
        [RUN_ADDED] = "added",
        [RUN_CHANGED] = "changed",
        [RUN_DELETED] = "deleted",
        [RUN_UNSELECTED] = "unselected",
        [RUN_SELECTED] = "selected",
        [RUN_RESTORED] = "restored",
        [RUN_START] = "start",
        [RUN_TAKEN_OVER] = "taken over",
        [RUN_CHILD_CHANGED] = "child changed",
        [RUN_RELATED_CHANGED] = "related changed",
        [RUN_HANDLER_CHANGED] = "handlerChanged",
        [RUN_RETRY] = "retry",
        [RUN_THROTTLED] = "throttled",
        [RUN_UNAVAILABLE] = "unavailable",
        [RUN_HELD] = "held",
        [RUN_NOT_STARTED] = "notStarted",
        [RUN_RECOVERED] = "recovered",
        [RUN_CONFLICT] = "conflict",
        [RUN_CANCELLED] = "cancelled",
        [RUN_SETTLING] = "settling",
        [RUN_REQUEUE_AFTER] = "requeueAfter",
        [RUN_RESYNC] = "resync",
        [RUN_SCHEDULED] = "scheduled",
        [RUN_REQUESTED] = "requested",
        [RUN_TRIED] = "by hand",
        [RUN_RELEASE] = "release",
        [RUN_UNINSTALL] = "uninstall",
        [RUN_FINALIZER] = "finalizer",
        [RUN_FINALIZER_LOST] = "finalizer lost",
};

const char *run_reason_name(enum run_reason reason)
{
        return reason < RUN_REASON_COUNT ? reason_name[reason] : "";
}

bool run_reason_parse(const char *name, enum run_reason *ret)
{
        for (int i = 0; i < RUN_REASON_COUNT; i++)
                if (strcmp(reason_name[i], name) == 0) {
                        *ret = (enum run_reason)i;
                        return true;
                }
        return false;
}

bool finalizer_is_reason(enum run_reason reason)
{
        return reason == RUN_FINALIZER_LOST || reason == RUN_FINALIZER;
}

bool run_is_without_handler(enum run_reason reason)
{
        return reason == RUN_RELEASE || reason == RUN_UNINSTALL || reason == RUN_FINALIZER ||
               reason == RUN_FINALIZER_LOST;
}
