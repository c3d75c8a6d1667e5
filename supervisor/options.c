/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "ledger/ledger.h"

static const struct option option[] = {
        {"config", required_argument, NULL, 'c'},
        {"log", required_argument, NULL, 'l'},
        {"log-level", required_argument, NULL, 'L'},
        {"state-directory", required_argument, NULL, 's'},
        {"runtime-directory", required_argument, NULL, 'r'},
        {"record", required_argument, NULL, 'R'},
        {"check", no_argument, NULL, 'C'},
        {"discard-state", no_argument, NULL, 'D'},
        {"dry-run-handlers", no_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
};

static void help(void)
{
        puts("Usage: reconciled [--config FILE] [OPTION...]\n"
             "Run a Kubernetes operator whose handlers are programs of any language.\n\n"
             "  --config FILE            the configuration (default: " RECONCILED_SYSCONFDIR
             "/reconciled.yaml\n"
             "                           and the *.yaml files of conf.d beside it)\n"
             "  --check                  check the configuration, report every mistake, and exit\n"
             "  --log TARGET             auto, journal, json or text (default: auto)\n"
             "  --log-level LEVEL        error, warning, notice, info (default) or debug (each success, "
             "too)\n"
             "  --state-directory DIR    store and ledger (default: $STATE_DIRECTORY or " RECONCILED_STATEDIR
             ")\n"
             "  --runtime-directory DIR  control socket (default: $RUNTIME_DIRECTORY or " RECONCILED_RUNDIR
             ")\n"
             "  --record DIR             record each run's request and answer, one file a run (the newest "
             "1000)\n"
             "  --discard-state          if another release wrote the state folder: start without it\n"
             "  --dry-run-handlers       tell handlers to change nothing but by their answers, for a trial\n"
             "  --help, --version\n\n"
             "Exit codes: 0 stopped, 64 usage, 69 API server unreachable, 70 a child failed, 74 disk,\n"
             "77 the API server refuses us, 78 configuration. See reconciled(1).");
}

/* systemd lists several folders with colons; the first is ours. */
static char *folder_from(const char *given, const char *variable, const char *fallback)
{
        const char *value = given ? given : getenv(variable);

        if (!value || !value[0])
                value = fallback;
        return given ? strdup(value) : strndup(value, strcspn(value, ":"));
}

static int options_usage(const char *text, const char *argument)
{
        fprintf(stderr, "reconciled: %s%s%s\nTry 'reconciled --help'.\n", text, argument ? ": " : "",
                argument ? argument : "");
        return -EINVAL;
}

static int options_no_memory(void)
{
        fputs("reconciled: no memory\n", stderr);
        return -ENOMEM;
}

static int finish_options(struct options *options, const char *state, const char *runtime,
                          const char *record)
{
        if (record && record[0] != '/')
                return options_usage("--record must be absolute", record);
        if (record && !(options->record = strdup(record)))
                return options_no_memory();
        options->state_directory = folder_from(state, "STATE_DIRECTORY", RECONCILED_STATEDIR);
        options->runtime_directory = folder_from(runtime, "RUNTIME_DIRECTORY", RECONCILED_RUNDIR);
        if (!options->state_directory || !options->runtime_directory)
                return options_no_memory();
        if (options->state_directory[0] != '/')
                return options_usage("--state-directory must be absolute", options->state_directory);
        if (options->runtime_directory[0] != '/')
                return options_usage("--runtime-directory must be absolute", options->runtime_directory);
        return 0;
}

int options_parse(int argc, char **argv, struct options *ret)
{
        struct options options = {.log_target = LOG_TARGET_AUTO};
        const char *state = NULL, *runtime = NULL, *record = NULL;
        int c, r, level;

        while ((c = getopt_long(argc, argv, "h", option, NULL)) >= 0)
                switch (c) {
                case 'c':
                        options.config_path = optarg;
                        break;
                case 'l':
                        if (log_target_parse(optarg, &options.log_target) < 0)
                                return options_usage("--log takes auto, journal, json or text", optarg);
                        break;
                case 'L':
                        if (log_level_parse(optarg, &level) < 0)
                                return options_usage(
                                        "--log-level takes error, warning, notice, info or debug", optarg);
                        log_set_level(level);
                        break;
                case 's':
                        state = optarg;
                        break;
                case 'r':
                        runtime = optarg;
                        break;
                case 'R':
                        record = optarg;
                        break;
                case 'C':
                        options.check = true;
                        break;
                case 'D':
                        options.discard_state = true;
                        break;
                case 'd':
                        options.tell_dry_run = true;
                        break;
                case 'h':
                        help();
                        return 1;
                case 'V':
                        puts("reconciled " RECONCILED_VERSION);
                        return 1;
                default:
                        return -EINVAL;
                }
        if (optind < argc)
                return options_usage("unexpected argument", argv[optind]);
        r = finish_options(&options, state, runtime, record);
        if (r < 0)
                options_done(&options);
        else
                *ret = options;
        return r;
}

void options_done(struct options *options)
{
        free(options->state_directory);
        free(options->runtime_directory);
        free(options->record);
}
