/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "credential/kubeconfig.h"
#include "ctl/ctl.h"
#include "supervisor/config.h"

/* Which server would be asked, and as whom; nothing is sent, no plugin is run. */
static int check_cluster(const struct config *config)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct kubeconfig found;
        int r = kubeconfig_load(&(struct kubeconfig_options){config->kubeconfig, config->context}, &found,
                                &error);

        if (r == -ENOENT && !config->kubeconfig[0]) {
                printf("note: %s; in a pod its service account would be used\n", error_message(&error));
                return 0;
        }
        if (r < 0) {
                printf("cluster: %s\n", error_message(&error));
                return r;
        }
        printf("server: %s%s\nidentity: %s\n", found.server,
               found.insecure ? " (its certificate is not checked)" : "", found.identity);
        kubeconfig_done(&found);
        return 0;
}

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
        config_problems_done(&problems);
        if (r < 0 && r != -EINVAL)
                fprintf(stderr, "reconciledctl: the configuration: %s\n", strerror(-r));
        return r < 0 ? NULL : config;
}

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
        r = check_cluster(config);
        config_free(config);
        return r < 0 ? EXIT_CODE_CONFIGURATION : EXIT_CODE_OK;
}
