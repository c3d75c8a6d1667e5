/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled: parse, init, loop. Signals are blocked before anything else: as PID 1 none may be lost. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/exit-code.h"
#include "ipc/log.h"
#include "ipc/spawner/client.h"
#include "os/syscall.h"
#include "supervisor/notify.h"
#include "supervisor/options.h"
#include "supervisor/reload/load-config.h"
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
        signal(SIGCHLD, SIG_DFL); /* the starter may have it ignored, and then it is never sent */
}

static int load_config(const struct options *options, struct config **ret)
{
        char first[512];
        int r = config_load_and_tell(options, ret, first, sizeof(first));

        if (r < 0 && !options->check)
                notify_failed(exit_code_for(r, EXIT_CODE_CONFIGURATION), first);
        return r;
}

static int run(struct options *options, struct config *config, bool *ret_reload)
{
        struct supervisor supervisor = {0};
        int code = supervisor_init(&supervisor, options, config);

        if (code == EXIT_CODE_OK)
                code = supervisor_run(&supervisor);
        supervisor_done(&supervisor);
        *ret_reload = supervisor.reload.restarting && code == EXIT_CODE_OK;
        return code;
}

/* Once more for each restart in place. */
static int live(struct options *options)
{
        struct config *config = NULL;
        bool again = false;
        int r;

        do {
                r = log_init(options->log_target, "supervisor");
                if (r < 0)
                        fprintf(stderr, "reconciled: cannot log: %s\n", strerror(-r));
                else
                        r = load_config(options, &config);
                if (r < 0)
                        return (int)exit_code_for(r, EXIT_CODE_CONFIGURATION);
                if (options->check) {
                        config_free(config);
                        return EXIT_CODE_OK;
                }
                r = run(options, config, &again);
        } while (again);
        return r;
}

int main(int argc, char **argv)
{
        struct options options;
        int r;

        block_signals();
        sys_set_not_dumpable();
        sys_set_no_new_privileges(); /* what a handler or a plugin runs gets no more rights than we have */
        r = options_parse(argc, argv, &options);
        if (r != 0)
                return r > 0 ? EXIT_CODE_OK : (int)exit_code_for(r, EXIT_CODE_USAGE);
        r = live(&options);
        spawner_stop();
        options_done(&options);
        log_done();
        return r;
}
