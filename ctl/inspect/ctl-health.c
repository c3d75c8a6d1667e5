/* SPDX-License-Identifier: Apache-2.0 */
/* `reconciledctl health`: a probe. Silent when all is well, one line when not. */
#include "ctl/inspect/ctl-health.h"

#include <stdio.h>

#include "base/error.h"
#include "base/exit-code.h"
#include "ctl/answer/members.h"
#include "ctl/answer/query.h"
#include "ctl/output/output.h"

int ctl_health(const char *runtime_directory, bool ready, bool json)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        cJSON *answer = NULL;
        int r = ctl_query(runtime_directory, "health", &answer, &error);

        if (r < 0)
                return ctl_failed(r, &error);
        r = ctl_is(answer, ready ? "ready" : "live") ? EXIT_CODE_OK : EXIT_CODE_SOFTWARE;
        if (json)
                (void)ctl_print_json(answer);
        else if (r != EXIT_CODE_OK)
                printf("not %s: %s\n", ready ? "ready" : "healthy", ctl_text(answer, "reason"));
        cJSON_Delete(answer);
        return r;
}
