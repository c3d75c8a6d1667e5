/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled: parse, init, loop. Signals are blocked before anything else: as PID 1 none may be lost. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/exit-code.h"
#include "base/syscall.h"
#include "ipc/message-id.h"
#include "supervisor/supervisor.h"

static void block_signals(void)
{
        sigset_t mask;

        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGHUP);
        sigaddset(&mask, SIGCHLD);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
}

static int load_config(const struct options *options, struct config **ret)
{
        struct config_problems problems = {0};
        int r = config_load(options->config_path, ret, &problems);
        char first[512] = "the configuration is wrong";

        for (size_t i = 0; i < problems.count; i++) {
                _cleanup_text_ struct text line = TEXT_EMPTY;

                if (config_problem_format(&problems.problem[i], &line) < 0)
                        continue;
                if (!problems.problem[i].warning && strchr(first, ':') == NULL)
                        snprintf(first, sizeof(first), "the configuration is wrong: %s", line.data);
                if (options->check)
                        puts(line.data);
                else
                        log_write(problems.problem[i].warning ? LOG_WARNING : LOG_ERR,
                                  MESSAGE_ID_CONFIGURATION_WRONG, NULL, "%s", line.data);
        }
        config_problems_done(&problems);
        if (r == -ENOMEM)
                log_error("no memory for the configuration");
        if (r < 0 && !options->check)
                notify_failed(EXIT_CODE_CONFIGURATION, first);
        return r;
}

static int run(struct options *options, struct config *config)
{
        struct supervisor supervisor = {0};
        int code = supervisor_init(&supervisor, options, config);

        if (code == EXIT_CODE_OK)
                code = supervisor_run(&supervisor);
        supervisor_done(&supervisor);
        return code;
}

int main(int argc, char **argv)
{
        struct options options;
        struct config *config = NULL;
        int r;

        block_signals();
        sys_set_not_dumpable();
        r = options_parse(argc, argv, &options);
        if (r != 0)
                return r > 0 ? EXIT_CODE_OK : EXIT_CODE_USAGE;
        r = log_init(options.log_target, "supervisor");
        if (r >= 0)
                r = load_config(&options, &config);
        if (r < 0 || options.check)
                r = r < 0 ? EXIT_CODE_CONFIGURATION : EXIT_CODE_OK;
        else
                r = run(&options, config);
        config_free(config);
        options_done(&options);
        log_done();
        return r;
}
