/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/exit-code.h"
#include "ctl/ctl.h"

int ctl_retry_all(const char *runtime_directory, char **argument)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        cJSON *answer = NULL;
        int r = ctl_query_about(runtime_directory, "retry-all", argument, &answer, &error);
        uint64_t count;

        if (r < 0)
                return ctl_failed(r, &error);
        count = ctl_number(answer, "objects");
        cJSON_Delete(answer);
        if (count == 0)
                puts("no object has failed");
        else
                printf("%" PRIu64 " %s again now; those in quarantine wait for `reconciledctl release`\n",
                       count, count == 1 ? "object runs" : "objects run");
        return EXIT_CODE_OK;
}
