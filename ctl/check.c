/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "ctl/ctl.h"
#include "supervisor/config.h"

int ctl_check(const char *path)
{
        struct config_problems problems = {0};
        struct config *config = NULL;
        int r = config_load(path, &config, &problems);

        for (size_t i = 0; i < problems.count; i++) {
                _cleanup_text_ struct text line = TEXT_EMPTY;

                if (config_problem_format(&problems.problem[i], &line) >= 0)
                        puts(line.data);
        }
        config_problems_done(&problems);
        if (r < 0) {
                if (r != -EINVAL)
                        fprintf(stderr, "reconciledctl: %s\n", strerror(-r));
                return EXIT_CODE_CONFIGURATION;
        }
        printf("%s: operator %s, %zu watches, %u workers: no mistakes found\n",
               path ? path : "the configuration", config->operator_name, config->watch_count,
               config->workers);
        puts("note: credentials not separated: handlers run as the operator's own user");
        config_free(config);
        return EXIT_CODE_OK;
}
