/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/intervene/ctl-pause.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/exit-code.h"
#include "ctl/answer/members.h"
#include "ctl/answer/query.h"
#include "ctl/output/output.h"

static int order_pause(const char *runtime_directory, const char *command, const char *watch,
                       const char *why, cJSON **ret)
{
        char *argument[] = {(char *)(uintptr_t)watch, (char *)(uintptr_t)why, NULL};
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = ctl_query_about(runtime_directory, command, argument, ret, &error);

        return r < 0 ? ctl_failed(r, &error) : EXIT_CODE_OK;
}

int ctl_pause(const char *runtime_directory, const char *watch, const char *why, bool json)
{
        cJSON *answer = NULL;
        int r = order_pause(runtime_directory, "pause", watch, why, &answer);

        if (r != EXIT_CODE_OK)
                return r;
        if (!ctl_is(answer, "changed"))
                return ctl_done(json, answer, "watch %s is paused already", watch);
        if (ctl_number(answer, "running") > 0)
                return ctl_done(json, answer, "watch %s is paused; %" PRIu64 " running will finish", watch,
                                ctl_number(answer, "running"));
        return ctl_done(json, answer, "watch %s is paused; none of its objects run", watch);
}

int ctl_resume(const char *runtime_directory, const char *watch, bool json)
{
        cJSON *answer = NULL;
        int r = order_pause(runtime_directory, "resume", watch, NULL, &answer);

        return r != EXIT_CODE_OK ? r
                                 : ctl_done(json, answer, "watch %s %s", watch,
                                            ctl_is(answer, "changed") ? "is resumed" : "was not paused");
}
