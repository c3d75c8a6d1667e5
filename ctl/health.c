/* SPDX-License-Identifier: Apache-2.0 */
/* `reconciledctl health`: a probe. Silent when all is well, one line when not. */
#include <errno.h>

#include "base/exit-code.h"
#include "ctl/ctl.h"

int ctl_health(const char *runtime_directory, bool ready)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        const char *reason;
        cJSON *answer = NULL;
        int r = ctl_query(runtime_directory, "health", &answer, &error);

        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s\n", error_message(&error));
                return r == -EACCES   ? EXIT_CODE_NO_PERMISSION
                       : r == -ENOENT ? EXIT_CODE_UNAVAILABLE
                                      : EXIT_CODE_SOFTWARE;
        }
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, ready ? "ready" : "live"))) {
                r = EXIT_CODE_OK;
        } else {
                reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "reason"));
                printf("not %s: %s\n", ready ? "ready" : "healthy", reason ? reason : "");
                r = EXIT_CODE_SOFTWARE;
        }
        cJSON_Delete(answer);
        return r;
}
