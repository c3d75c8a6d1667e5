/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/check/read-config.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/config.h"

struct config *ctl_load_config(const char *path)
{
        struct config_problems problems = {0};
        struct config *config = NULL;
        int r = config_load(path, &config, &problems);

        for (size_t i = 0; i < problems.count && r < 0; i++) {
                _cleanup_text_ struct text line = TEXT_EMPTY;

                if (config_problem_format(&problems.problem[i], &line) >= 0)
                        fprintf(stderr, "%s\n", line.data);
        }
        if (r < 0 && !config_has_errors(&problems))
                fprintf(stderr, "reconciledctl: the configuration: %s\n", strerror(-r));
        config_problems_done(&problems);
        return r < 0 ? NULL : config;
}
