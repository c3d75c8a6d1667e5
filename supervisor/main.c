/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled: parse, init, loop. Signals are blocked before anything else: as PID 1 none may be lost. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/exit-code.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "ipc/spawner/spawner-client.h"
#include "os/assertion.h"
#include "os/syscall.h"
#include "supervisor/notify.h"
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

/* The children see the end of their channels, and end as well. */
static void supervisor_tell_assertion(const char *text, void *userdata _unused_)
{
        log_write(LOG_CRIT, MESSAGE_ID_CHILD_FATAL, LOG_FIELDS({"RECONCILED_CHILD", "supervisor"}),
                  "%s; the operator ends with exit code %d (%s): this is a bug, please report it", text,
                  EXIT_CODE_SOFTWARE, exit_code_name(EXIT_CODE_SOFTWARE));
        notify_failed(EXIT_CODE_SOFTWARE, text);
        log_done();
}

/* A start, or one more in place. */
struct start {
        struct reload_life life;
        char refused[512]; /* why the file was not taken; "" */
        bool again;
};

/* The file may have become wrong since a reload accepted it. A running operator does not end for that. */
static int load_config(const struct options *options, struct start *start)
{
        struct config *config = NULL;
        int r = config_load_and_tell(options, &config, start->refused, sizeof(start->refused));

        if (r < 0 && start->life.config) {
                log_error("the new configuration is rejected; the old one stays in force");
                return 0;
        }
        if (r < 0 && !options->check)
                notify_failed(exit_code_for(r, EXIT_CODE_CONFIGURATION), start->refused);
        if (r < 0)
                return r;
        start->refused[0] = '\0';
        config_free(start->life.config);
        start->life.config = config;
        return 0;
}

static int run_supervisor(struct options *options, struct start *start)
{
        struct supervisor supervisor = {0};
        int code = supervisor_init(&supervisor, options, &start->life);

        notify_note_refused(&supervisor, start->refused);
        if (code == EXIT_CODE_OK)
                code = supervisor_run(&supervisor);
        start->again = supervisor.reload.restarting && code == EXIT_CODE_OK;
        start->life = (struct reload_life){0};
        if (start->again) {
                start->life = supervisor.reload.next;
                supervisor.reload.next.config = NULL;
                start->life.measured = TAKE_PTR(supervisor.measured);
        }
        supervisor_done(&supervisor);
        return code;
}

/* Begins once more for each restart in place. */
static int live(struct options *options)
{
        struct start start = {0};
        int r;

        do {
                r = log_init(options->log_target, "supervisor");
                if (r < 0)
                        fprintf(stderr, "reconciled: cannot log: %s\n", strerror(-r));
                else
                        r = load_config(options, &start);
                if (r < 0) {
                        config_free(start.life.config);
                        registry_free(start.life.measured);
                        return (int)exit_code_for(r, EXIT_CODE_CONFIGURATION);
                }
                if (options->check) {
                        config_free(start.life.config);
                        return EXIT_CODE_OK;
                }
                r = run_supervisor(options, &start);
        } while (start.again);
        return r;
}

int main(int argc, char **argv)
{
        struct options options;
        int r;

        block_signals();
        assertion_on_failure(supervisor_tell_assertion, NULL);
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
