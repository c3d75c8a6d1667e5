/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/reload/load-config.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/handlers/separation.h"
#include "supervisor/supervisor.h"

int config_load_and_tell(const struct options *options, struct config **ret, char *first, size_t size)
{
        struct config_problems problems = {0};
        int r = config_load(options->config_path, ret, &problems);

        if (r >= 0) {
                r = separation_check(*ret, &problems);
                if (r < 0) {
                        config_free(*ret);
                        *ret = NULL;
                }
        }
        snprintf(first, size, "the configuration is wrong");
        for (size_t i = 0; i < problems.count; i++) {
                const struct config_problem *problem = &problems.problem[i];
                _cleanup_text_ struct text line = TEXT_EMPTY;

                if (config_problem_format(problem, &line) < 0)
                        continue;
                if (!problem->warning && strchr(first, ':') == NULL)
                        snprintf(first, size, "the configuration is wrong: %s", line.data);
                if (options->check)
                        puts(line.data);
                else
                        log_write(problem->warning ? LOG_WARNING : LOG_ERR, MESSAGE_ID_CONFIGURATION_WRONG,
                                  NULL, "%s", line.data);
        }
        config_problems_done(&problems);
        if (r == -ENOMEM)
                log_error("no memory for the configuration");
        return r;
}
