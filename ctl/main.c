/* SPDX-License-Identifier: Apache-2.0 */
/* reconciledctl: options and verbs. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ctl/ctl.h"
#include "ctl/verb.h"

static const struct option option[] = {
        {"runtime-directory", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"ready", no_argument, NULL, 'R'},
        {"namespace", required_argument, NULL, 'n'},
        {"service-account", required_argument, NULL, 'a'},
        {"plural", required_argument, NULL, 'p'},
        {"config", required_argument, NULL, 'c'},
        {"watch", required_argument, NULL, 'W'},
        {"object", required_argument, NULL, 'o'},
        {"apply", no_argument, NULL, 'P'},
        {"finalizer", no_argument, NULL, 'f'},
        {"all-failed", no_argument, NULL, 'A'},
        {"interval", required_argument, NULL, 'i'},
        {"follow", no_argument, NULL, 'F'},
        {"reason", required_argument, NULL, 'w'},
        {"timeout", required_argument, NULL, 't'},
        {"yes", no_argument, NULL, 'y'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
};

#define DURATION_LEAST (100 * USEC_PER_MSEC)

struct options {
        char given[ELEMENTS(option)]; /* the letters of options, each once */
        const char *runtime_directory;
        bool json, ready, finalizer, all_failed, follow, yes;
        const char *why;
        uint64_t interval_usec; /* between two pictures */
        uint64_t timeout_usec;  /* of waiting while nothing moves */
        struct rbac_options rbac;
        struct ctl_run_options run;
};

static void help(void)
{
        puts("Usage: reconciledctl [OPTION...] VERB\n\n"
             "  status              what the running operator does\n"
             "  top                 the same, live: rates, the slowest handlers, what fails; q ends it\n"
             "                      (--interval 2s: between two pictures)\n"
             "  explain WATCH KEY   why this object (namespace/name) did or did not run\n"
             "  logs [--follow] WATCH [KEY] [-- OPTION...]\n"
             "                      what the journal has of it; options are journalctl's\n"
             "  check [FILE]        check a configuration; says every mistake with its line\n\n"
             "  health [--ready]    a probe: exit code 0 when all processes are heard (and all watches in "
             "sync)\n"
             "  rbac [FILE]         the roles that a configuration needs, as manifests for kubectl apply\n"
             "                      (--namespace NS, --service-account NAME: as whom it runs;\n"
             "                      --plural KIND=PLURAL: where the guess is wrong)\n"
             "  retry WATCH KEY     run this object now, whatever it waits for\n"
             "  retry --all-failed [WATCH]   run all objects now that have failed\n"
             "  release WATCH KEY   let an object out of quarantine\n"
             "  release --finalizer --reason TEXT [--yes] WATCH KEY\n"
             "                      take our finalizer off an object whose cleanup cannot succeed\n"
             "  pause [--reason TEXT] WATCH, resume WATCH\n"
             "                      let nothing of a watch run, also over restarts; changes are kept\n"
             "  uninstall [--yes] [--timeout 30s]\n"
             "                      take our finalizers off everything; shows what first; gives up when\n"
             "                      nothing has moved for so long\n"
             "  run --object FILE|NS/NAME [--watch WATCH] [--apply]\n"
             "                      run one handler without an operator and show what it writes: of FILE "
             "on\n"
             "                      a server in memory, of NS/NAME on the cluster, kept only with --apply\n"
             "  replay DIR [--watch WATCH]\n"
             "                      run what an operator with --record DIR has kept again; shows where\n"
             "                      answers differ\n\n"
             "  --config FILE             of check, rbac, run and replay (default: " RECONCILED_SYSCONFDIR
             "/reconciled.yaml)\n"
             "  --runtime-directory DIR   of the operator (default: $RUNTIME_DIRECTORY or " RECONCILED_RUNDIR
             ")\n"
             "  --json                    for programs, of every verb\n"
             "  --help, --version\n\n"
             "Exit codes: 0, 1 the handler failed or answers differ, 64 usage, 69 no operator is running\n"
             "there, 70 not healthy, not done or not known, 77 it refuses us, 78 mistakes in the "
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

/* ---- the verbs: each gets what stands behind it */

static int verb_status(const struct options *options, int count _unused_, char **argument _unused_)
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

static int verb_top(const struct options *options, int count, char **argument)
{
        return options->json ? verb_status(options, count, argument)
                             : ctl_top(options->runtime_directory, options->interval_usec);
}

static int verb_explain(const struct options *options, int count _unused_, char **argument)
{
        return ctl_explain(options->runtime_directory, argument, options->json);
}

static int verb_logs(const struct options *options, int count, char **argument)
{
        return ctl_logs(options->runtime_directory,
                        &(struct logs_options){count, argument, options->follow, options->json});
}

static int verb_check(const struct options *options, int count, char **argument)
{
        return ctl_check(count > 0 ? argument[0] : options->run.config, options->json);
}

static int verb_health(const struct options *options, int count _unused_, char **argument _unused_)
{
        return ctl_health(options->runtime_directory, options->ready, options->json);
}

static int verb_rbac(const struct options *options, int count, char **argument)
{
        return ctl_rbac(count > 0 ? argument[0] : options->run.config, &options->rbac, options->json);
}

/* Silent when it is done, but for programs. */
static int by_hand(const struct options *options, const char *command, char **argument, const char *what)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = ctl_command(options->runtime_directory, command, argument, &error);

        if (r < 0)
                return ctl_failed(r, &error);
        return options->json ? ctl_done(true, NULL, "%s of watch %s %s", argument[1], argument[0], what)
                             : EXIT_CODE_OK;
}

static int verb_retry(const struct options *options, int count, char **argument)
{
        if (options->all_failed)
                return count < 2 ? ctl_retry_all(options->runtime_directory, argument, options->json)
                                 : usage("retry --all-failed takes one watch, or none for all of them");
        return count == 2 ? by_hand(options, "retry", argument, "runs as soon as a worker is free")
                          : usage("retry takes a watch and a key (namespace/name)");
}

static int verb_release(const struct options *options, int count _unused_, char **argument)
{
        if (!options->finalizer)
                return by_hand(options, "release", argument,
                               "is neither in quarantine nor doubtful any more");
        if (!options->why)
                return usage("--reason TEXT says why; the operator's log keeps it");
        return ctl_release_finalizer(options->runtime_directory, argument, options->why,
                                     &(struct consent){.yes = options->yes, .json = options->json});
}

static int verb_pause(const struct options *options, int count _unused_, char **argument)
{
        return ctl_pause(options->runtime_directory, argument[0], options->why ? options->why : "",
                         options->json);
}

static int verb_resume(const struct options *options, int count _unused_, char **argument)
{
        return ctl_resume(options->runtime_directory, argument[0], options->json);
}

static int verb_uninstall(const struct options *options, int count _unused_, char **argument _unused_)
{
        return ctl_uninstall(options->runtime_directory, options->timeout_usec,
                             &(struct consent){.yes = options->yes, .json = options->json});
}

static int verb_run(const struct options *options, int count _unused_, char **argument _unused_)
{
        struct ctl_run_options run = options->run;

        run.json = options->json;
        return run.object ? ctl_run(&run)
                          : usage("--object FILE, or NAMESPACE/NAME, says what the handler is run for");
}

static int verb_replay(const struct options *options, int count _unused_, char **argument)
{
        struct ctl_run_options run = options->run;

        run.object = argument[0];
        run.json = options->json;
        return ctl_replay(&run);
}

#define ANY 1000

static const struct verb verb[] = {
        {"status", "what the operator does", "j", 0, 0, {0}, "no arguments", verb_status},
        {"top", "the same, live", "ji", 0, 0, {0}, "no arguments", verb_top},
        {"explain",
         "why an object did or did not run",
         "j",
         2,
         2,
         {WORD_WATCH, WORD_KEY},
         "a watch and a key (namespace/name)",
         verb_explain},
        {"logs",
         "what the journal has of an object",
         "jF",
         1,
         ANY,
         {WORD_WATCH, WORD_KEY},
         "a watch and perhaps a key (namespace/name)",
         verb_logs},
        {"check", "whether a configuration has mistakes", "jc", 0, 1, {WORD_FILE}, "one file", verb_check},
        {"health", "a probe", "jR", 0, 0, {0}, "no arguments", verb_health},
        {"rbac", "the roles that a configuration needs", "jcnap", 0, 1, {WORD_FILE}, "one file", verb_rbac},
        {"retry",
         "run an object now",
         "jA",
         0,
         2,
         {WORD_WATCH, WORD_FAILING},
         "a watch and a key (namespace/name)",
         verb_retry},
        {"release",
         "let an object out of quarantine",
         "jfwy",
         2,
         2,
         {WORD_WATCH, WORD_QUARANTINED},
         "a watch and a key (namespace/name)",
         verb_release},
        {"pause", "let nothing of a watch run", "jw", 1, 1, {WORD_WATCH}, "a watch", verb_pause},
        {"resume", "let a watch run again", "j", 1, 1, {WORD_WATCH}, "a watch", verb_resume},
        {"uninstall",
         "take our finalizers off everything",
         "jyt",
         0,
         0,
         {0},
         "no arguments",
         verb_uninstall},
        {"run",
         "run a handler without an operator",
         "jcWoP",
         0,
         0,
         {0},
         "no arguments; --object says what for",
         verb_run},
        {"replay",
         "run again what was recorded",
         "jcW",
         1,
         1,
         {WORD_FILE},
         "the folder that an operator with --record has filled",
         verb_replay},
};

static const struct command_line command_line = {
        .option = option, .always = "rhV", .verb = verb, .verb_count = ELEMENTS(verb)};

enum word option_word(int letter)
{
        switch (letter) {
        case 'r':
        case 'c':
        case 'o':
                return WORD_FILE;
        case 'W':
                return WORD_WATCH;
        default:
                return WORD_FREE;
        }
}

const struct verb *find_verb(const struct command_line *line, const char *name)
{
        for (size_t i = 0; i < line->verb_count; i++)
                if (strcmp(name, line->verb[i].name) == 0)
                        return &line->verb[i];
        return NULL;
}

/* What is ignored looks as if it were obeyed. */
static int refuse_option(const struct verb *found, int letter)
{
        for (const struct option *each = option; each->name; each++)
                if (each->val == letter)
                        fprintf(stderr, "reconciledctl: %s has no --%s\nTry 'reconciledctl --help'.\n",
                                found->name, each->name);
        return EXIT_CODE_USAGE;
}

static int usage_verbs(const char *text)
{
        fprintf(stderr, "reconciledctl: %s", text);
        for (size_t i = 0; i < ELEMENTS(verb); i++)
                fprintf(stderr, "%s%s",
                        i == 0                    ? " "
                        : i + 1 == ELEMENTS(verb) ? " or "
                                                  : ", ",
                        verb[i].name);
        fputs("\nTry 'reconciledctl --help'.\n", stderr);
        return EXIT_CODE_USAGE;
}

static int run_verb(const struct options *options, int count, char **word)
{
        const struct verb *found = count > 0 ? find_verb(&command_line, word[0]) : NULL;

        if (!found)
                return usage_verbs(count > 0 ? "there is no such verb; there are" : "what shall be done?");
        for (const char *letter = options->given; *letter; letter++)
                if (!strchr(found->options, *letter) && !strchr(command_line.always, *letter))
                        return refuse_option(found, *letter);
        if (count - 1 >= found->least && count - 1 <= found->most)
                return found->run(options, count - 1, word + 1);
        fprintf(stderr, "reconciledctl: %s takes %s\nTry 'reconciledctl --help'.\n", found->name,
                found->takes);
        return EXIT_CODE_USAGE;
}

static bool *flag_of(struct options *options, int c)
{
        switch (c) {
        case 'j':
                return &options->json;
        case 'R':
                return &options->ready;
        case 'P':
                return &options->run.apply;
        case 'f':
                return &options->finalizer;
        case 'A':
                return &options->all_failed;
        case 'F':
                return &options->follow;
        case 'y':
                return &options->yes;
        default:
                return NULL;
        }
}

static const char **text_of(struct options *options, int c)
{
        switch (c) {
        case 'r':
                return &options->runtime_directory;
        case 'c':
                return &options->run.config;
        case 'W':
                return &options->run.watch;
        case 'o':
                return &options->run.object;
        case 'w':
                return &options->why;
        case 'n':
                return &options->rbac.namespace;
        case 'a':
                return &options->rbac.service_account;
        default:
                return NULL;
        }
}

static int take_duration(uint64_t *duration, const char *text, const char *mistake)
{
        int r = duration_parse(text, duration);

        return r < 0 || *duration < DURATION_LEAST || *duration > USEC_PER_HOUR ? usage(mistake) : 0;
}

static int take_plural(struct options *options, const char *text)
{
        if (!strchr(text, '=') || options->rbac.plural_count == RBAC_PLURALS_MAX)
                return usage("--plural takes Kind=plural");
        options->rbac.plural[options->rbac.plural_count++] = text;
        return 0;
}

/* 0, or the exit code of wrong usage. */
static int take_option(struct options *options, int c, const char *text)
{
        size_t count = strlen(options->given);
        bool *flag = flag_of(options, c);
        const char **place = text_of(options, c);

        if (!strchr(options->given, c))
                options->given[count] = (char)c;
        if (flag)
                *flag = true;
        else if (place)
                *place = text;
        else if (c == 'i')
                return take_duration(&options->interval_usec, text,
                                     "--interval takes a duration from 100ms to 1h");
        else if (c == 't')
                return take_duration(&options->timeout_usec, text,
                                     "--timeout takes a duration from 100ms to 1h");
        else if (c == 'p')
                return take_plural(options, text);
        else
                return EXIT_CODE_USAGE;
        return 0;
}

/* What was asked for and never arrived is no success. A closed pipe ends us by its signal, where that is
 * not ignored. */
static int output_done(int code)
{
        if (fflush(stdout) == 0 && !ferror(stdout))
                return code;
        fprintf(stderr, "reconciledctl: the output cannot be written: %s\n", strerror(errno));
        return code == EXIT_CODE_OK ? EXIT_CODE_IO : code;
}

int main(int argc, char **argv)
{
        const char *runtime = getenv("RUNTIME_DIRECTORY");
        struct options options = {
                .runtime_directory = runtime && runtime[0] ? runtime : RECONCILED_RUNDIR,
                .interval_usec = 2 * USEC_PER_SEC,
                .timeout_usec = 30 * USEC_PER_SEC,
                .rbac = {.namespace = "default", .service_account = "reconciled"},
        };
        int c, r;

        if (argc > 1 && strcmp(argv[1], "__complete") == 0)
                return ctl_complete(&command_line, options.runtime_directory, argc - 2, argv + 2);
        while ((c = getopt_long(argc, argv, "h", option, NULL)) >= 0) {
                if (c == 'h') {
                        help();
                        return output_done(EXIT_CODE_OK);
                }
                if (c == 'V') {
                        puts("reconciled " RECONCILED_VERSION);
                        return output_done(EXIT_CODE_OK);
                }
                r = take_option(&options, c, optarg);
                if (r != 0)
                        return r;
        }
        return output_done(run_verb(&options, argc - optind, argv + optind));
}
