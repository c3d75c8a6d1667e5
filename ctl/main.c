/* SPDX-License-Identifier: Apache-2.0 */
/* reconciledctl: options and verbs. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "base/exit-code.h"
#include "ctl/ctl.h"

static const struct option option[] = {
        {"runtime-directory", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"ready", no_argument, NULL, 'R'},
        {"namespace", required_argument, NULL, 'n'},
        {"service-account", required_argument, NULL, 'a'},
        {"plural", required_argument, NULL, 'p'},
        {"finalizer", no_argument, NULL, 'f'},
        {"reason", required_argument, NULL, 'w'},
        {"yes", no_argument, NULL, 'y'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
};

struct options {
        const char *runtime_directory;
        bool json, ready, finalizer, yes;
        const char *why;
        struct rbac_options rbac;
};

static void help(void)
{
        puts("Usage: reconciledctl [OPTION...] VERB\n\n"
             "  status              what the running operator does (--json: for programs)\n"
             "  explain WATCH KEY   why this object (namespace/name) did or did not run (--json)\n"
             "  check [FILE]        check a configuration; says every mistake with its line\n\n"
             "  health [--ready]    a probe: exit code 0 when all processes are heard (and all watches in "
             "sync)\n"
             "  rbac [FILE]         the roles that a configuration needs, as manifests for kubectl apply\n"
             "                      (--namespace NS, --service-account NAME: as whom it runs;\n"
             "                      --plural KIND=PLURAL: where the guess is wrong)\n"
             "  retry WATCH KEY     run this object now, whatever it waits for\n"
             "  release WATCH KEY   let an object out of quarantine\n"
             "  release --finalizer --reason TEXT [--yes] WATCH KEY\n"
             "                      take our finalizer off an object whose cleanup cannot succeed\n"
             "  uninstall [--yes]   take our finalizers off everything; shows what first\n\n"
             "  --runtime-directory DIR   of the operator (default: $RUNTIME_DIRECTORY or " RECONCILED_RUNDIR
             ")\n"
             "  --json, --help, --version\n\n"
             "Exit codes: 0, 64 usage, 69 no operator is running there, 77 it refuses us, 78 mistakes in "
             "the\n"
             "configuration.");
}

static int usage(const char *text)
{
        fprintf(stderr, "reconciledctl: %s\nTry 'reconciledctl --help'.\n", text);
        return EXIT_CODE_USAGE;
}

int ctl_failed(int status, const struct error *error)
{
        fprintf(stderr, "reconciledctl: %s\n", error_message(error));
        return status == -EACCES   ? EXIT_CODE_NO_PERMISSION
               : status == -ENOENT ? EXIT_CODE_UNAVAILABLE
                                   : EXIT_CODE_SOFTWARE;
}

static int by_hand(const struct options *options, int count, char **verb)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        if (count != 3)
                return usage("retry and release take a watch and a key (namespace/name)");
        if (options->finalizer && strcmp(verb[0], "release") == 0) {
                if (!options->why)
                        return usage("--reason TEXT says why; the operator's log keeps it");
                return ctl_release_finalizer(options->runtime_directory, verb + 1, options->why,
                                             options->yes);
        }
        r = ctl_command(options->runtime_directory, verb[0], verb + 1, &error);
        return r < 0 ? ctl_failed(r, &error) : EXIT_CODE_OK;
}

static int status(const struct options *options)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        cJSON *answer = NULL;
        int r = ctl_query(options->runtime_directory, "status", &answer, &error);

        if (r < 0)
                return ctl_failed(r, &error);
        if (options->json)
                (void)ctl_print_json(answer);
        else
                ctl_print_status(answer);
        cJSON_Delete(answer);
        return EXIT_CODE_OK;
}

static int run_verb(const struct options *options, int count, char **verb)
{
        if (count == 0)
                return usage("what shall be done? status, explain, health, check, rbac, retry, release or "
                             "uninstall");
        if (strcmp(verb[0], "status") == 0)
                return count == 1 ? status(options) : usage("status takes no arguments");
        if (strcmp(verb[0], "explain") == 0)
                return count == 3 ? ctl_explain(options->runtime_directory, verb + 1, options->json)
                                  : usage("explain takes a watch and a key (namespace/name)");
        if (strcmp(verb[0], "check") == 0)
                return count <= 2 ? ctl_check(count == 2 ? verb[1] : NULL) : usage("check takes one file");
        if (strcmp(verb[0], "health") == 0)
                return count == 1 ? ctl_health(options->runtime_directory, options->ready)
                                  : usage("health takes no arguments");
        if (strcmp(verb[0], "rbac") == 0)
                return count <= 2 ? ctl_rbac(count == 2 ? verb[1] : NULL, &options->rbac)
                                  : usage("rbac takes one file");
        if (strcmp(verb[0], "retry") == 0 || strcmp(verb[0], "release") == 0)
                return by_hand(options, count, verb);
        if (strcmp(verb[0], "uninstall") == 0)
                return count == 1 ? ctl_uninstall(options->runtime_directory, options->yes)
                                  : usage("uninstall takes no arguments");
        return usage("there are status, explain, health, check, rbac, retry, release and uninstall");
}

int main(int argc, char **argv)
{
        const char *runtime = getenv("RUNTIME_DIRECTORY");
        struct options options = {.runtime_directory = runtime && runtime[0] ? runtime : RECONCILED_RUNDIR};
        int c;

        options.rbac = (struct rbac_options){.namespace = "default", .service_account = "reconciled"};
        while ((c = getopt_long(argc, argv, "h", option, NULL)) >= 0)
                switch (c) {
                case 'r':
                        options.runtime_directory = optarg;
                        break;
                case 'j':
                        options.json = true;
                        break;
                case 'R':
                        options.ready = true;
                        break;
                case 'f':
                        options.finalizer = true;
                        break;
                case 'w':
                        options.why = optarg;
                        break;
                case 'y':
                        options.yes = true;
                        break;
                case 'n':
                        options.rbac.namespace = optarg;
                        break;
                case 'a':
                        options.rbac.service_account = optarg;
                        break;
                case 'p':
                        if (!strchr(optarg, '=') || options.rbac.plural_count == RBAC_PLURALS_MAX)
                                return usage("--plural takes Kind=plural");
                        options.rbac.plural[options.rbac.plural_count++] = optarg;
                        break;
                case 'h':
                        help();
                        return EXIT_CODE_OK;
                case 'V':
                        puts("reconciled " RECONCILED_VERSION);
                        return EXIT_CODE_OK;
                default:
                        return EXIT_CODE_USAGE;
                }
        return run_verb(&options, argc - optind, argv + optind);
}
