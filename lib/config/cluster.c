/* SPDX-License-Identifier: Apache-2.0 */
#include "config/cluster.h"

#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "config/read/ask.h"

int config_check_cluster(const struct config *config, struct error *error)
{
        const char *const argument[] = {"--check-kubeconfig", config->kubeconfig, config->context, NULL};
        char complaint[1024] = "";
        int r;

        if (!config->kubeconfig[0])
                return 0;
        r = program_ask(SPAWNER_CREDENTIAL, argument, complaint, sizeof(complaint));
        if (r < 0)
                return error_set(error, r, "%s:%u: cluster.kubeconfig cannot be checked: %s: %s",
                                 config->kubeconfig_file, config->kubeconfig_line,
                                 spawner_program(SPAWNER_CREDENTIAL)->binary, strerror(-r));
        if (r != EXIT_CODE_OK)
                return error_set(error, -EINVAL, "%s:%u: cluster.kubeconfig: %s", config->kubeconfig_file,
                                 config->kubeconfig_line, complaint);
        return 0;
}
