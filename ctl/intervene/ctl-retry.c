/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/intervene/ctl-retry.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/text.h"
#include "ctl/answer/members.h"
#include "ctl/answer/query.h"
#include "ctl/output/output.h"

int ctl_retry_many(const char *runtime_directory, bool all, char **argument, bool json)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        cJSON *answer = NULL;
        int r = ctl_query_about(runtime_directory, all ? "retry-all" : "retry-failed", argument, &answer,
                                &error);
        uint64_t count;

        if (r < 0)
                return ctl_failed(r, &error);
        count = ctl_number(answer, "objects");
        if (count == 0)
                return ctl_done(json, answer, all ? "no object has ever run" : "no object has failed");
        return ctl_done(json, answer,
                        "%" PRIu64 " %s again now; those in quarantine wait for `reconciledctl release`",
                        count, counted(count, "object runs", "objects run"));
}
