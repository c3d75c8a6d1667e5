/* SPDX-License-Identifier: Apache-2.0 */
/* reconciledctl: options and verbs. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/check/ctl-check.h"
#include "ctl/check/rbac.h"
#include "ctl/complete.h"
#include "ctl/ctl-answer.h"
#include "ctl/help.h"
#include "ctl/init/init.h"
#include "ctl/inspect/ctl-explain.h"
#include "ctl/inspect/ctl-history.h"
#include "ctl/inspect/ctl-status.h"
#include "ctl/inspect/logs.h"
#include "ctl/inspect/top.h"
#include "ctl/intervene.h"
#include "ctl/output/output.h"
#include "ctl/session/ctl-run.h"
#include "ctl/session/replay.h"
#include "ipc/message.h"

static const struct option option[] = {
        {"runtime-directory", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"output", required_argument, NULL, 'o'},
        {"ready", no_argument, NULL, 'R'},
        {"namespace", required_argument, NULL, 'n'},
        {"service-account", required_argument, NULL, 'a'},
        {"plural", required_argument, NULL, 'p'},
        {"crd", required_argument, NULL, 'd'},
        {"config", required_argument, NULL, 'c'},
        {"watch", required_argument, NULL, 'W'},
        {"object", required_argument, NULL, 'O'},
        {"apply", no_argument, NULL, 'P'},
        {"finalizer", no_argument, NULL, 'z'},
        {"cancel", no_argument, NULL, 'X'},
        {"all", no_argument, NULL, 'l'},
        {"all-failed", no_argument, NULL, 'A'},
        {"interval", required_argument, NULL, 'i'},
        {"follow", no_argument, NULL, 'f'},
        {"reason", required_argument, NULL, 'w'},
        {"timeout", required_argument, NULL, 't'},
        {"yes", no_argument, NULL, 'y'},
        {"kind", required_argument, NULL, 'k'},
        {"group", required_argument, NULL, 'g'},
        {"field", required_argument, NULL, 'F'},
        {"lang", required_argument, NULL, 'L'},
        {"child", required_argument, NULL, 'C'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
};

#define DURATION_LEAST (100 * USEC_PER_MSEC)

struct options {
        char given[ELEMENTS(option)]; /* the letters of options, each once */
        const char *runtime_directory;
        bool help, json, yaml, wide, ready, finalizer, all, all_failed, follow, yes, cancel;
        const char *why, *namespace; /* NULL: not given */
        uint64_t interval_usec;      /* between two pictures */
        uint64_t timeout_usec;       /* of waiting while nothing moves */
        struct rbac_options rbac;
        struct ctl_run_options run;
        struct init_options init;
};

static int usage(const char *text)
{
        fprintf(stderr, "reconciledctl: %s\nTry 'reconciledctl --help'.\n", text);
        return EXIT_CODE_USAGE;
}

/* ---- the verbs: each gets what stands behind it */

static enum form form_of(const struct options *options)
{
        return options->json ? FORM_JSON : options->yaml ? FORM_YAML : FORM_PEOPLE;
}

static void print_status(const cJSON *answer, const void *userdata)
{
        const struct options *options = userdata;

        ctl_print_status(answer, options->wide);
}

static int verb_status(const struct options *options, int count _unused_, char **argument _unused_)
{
        return ctl_show(options->runtime_directory, "status", NULL, form_of(options), print_status, options);
}

static int verb_top(const struct options *options, int count, char **argument)
{
        return options->json ? verb_status(options, count, argument)
                             : ctl_top(options->runtime_directory, options->interval_usec);
}

static int verb_get(const struct options *options, int count, char **argument)
{
        return ctl_get(options->runtime_directory,
                       &(struct get_options){.state = argument[0],
                                             .watch = count > 1 ? argument[1] : "",
                                             .namespace = options->namespace ? options->namespace : "",
                                             .form = form_of(options)});
}

static int verb_explain(const struct options *options, int count _unused_, char **argument)
{
        return ctl_explain(options->runtime_directory, argument, options->json);
}

static int verb_history(const struct options *options, int count, char **argument)
{
        return ctl_history(options->runtime_directory, argument[0], count > 1 ? argument[1] : "",
                           form_of(options));
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
        struct rbac_options rbac = options->rbac;

        rbac.namespace = options->namespace ? options->namespace : "default";
        return ctl_rbac(count > 0 ? argument[0] : options->run.config, &rbac, options->json);
}

static int by_hand(const struct options *options, const char *command, char **argument, const char *what)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = ctl_command(options->runtime_directory, command, argument, &error);

        return r < 0 ? ctl_failed(r, &error)
                     : ctl_done(options->json, NULL, "%s of watch %s %s", argument[1], argument[0], what);
}

static int verb_retry(const struct options *options, int count, char **argument)
{
        if (options->all && (options->all_failed || count != 1))
                return usage("retry --all takes one watch");
        if (options->all_failed && count > 1)
                return usage("retry --all-failed takes one watch, or none for all of them");
        if (options->all || options->all_failed)
                return ctl_retry_many(options->runtime_directory, options->all, argument, options->json);
        return count == 2 ? by_hand(options, "retry", argument, "runs as soon as a worker is free")
                          : usage("retry takes a watch and a key (namespace/name)");
}

static int verb_release(const struct options *options, int count _unused_, char **argument)
{
        if (!options->finalizer)
                return by_hand(options, "release", argument,
                               "is neither in quarantine nor doubtful any more");
        if (!options->why)
                return usage("release --finalizer needs --reason TEXT: why, which the operator's log keeps");
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

static int verb_reload(const struct options *options, int count _unused_, char **argument _unused_)
{
        return ctl_reload(options->runtime_directory, options->timeout_usec, options->json);
}

static int verb_uninstall(const struct options *options, int count _unused_, char **argument _unused_)
{
        const struct consent consent = {.yes = options->yes, .json = options->json};

        return options->cancel ? ctl_uninstall_cancel(options->runtime_directory, &consent)
                               : ctl_uninstall(options->runtime_directory, options->timeout_usec, &consent);
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

static int verb_init(const struct options *options, int count _unused_, char **argument)
{
        struct init_options init = options->init;
        const char *plural = options->rbac.plural_count > 0 ? strchr(options->rbac.plural[0], '=') : NULL;

        init.folder = argument[0];
        init.plural = plural ? plural + 1 : NULL;
        init.finalizer = options->finalizer;
        return ctl_init(&init, options->json);
}

#define ANY       1000
#define TAKES_KEY "a watch and a key (namespace/name)"

static const struct verb verb[] = {
        {"status",
         "what the running operator does",
         "jo",
         0,
         0,
         {0},
         "no arguments",
         verb_status,
         "",
         "Watches, workers, and what is in trouble. -o wide adds kinds, runs and failures"},
        {"get",
         "objects in trouble: failing, waiting or quarantined",
         "jon",
         1,
         2,
         {WORD_STATE, WORD_WATCH},
         "failing, waiting or quarantined, and perhaps a watch",
         verb_get,
         "failing|waiting|quarantined [WATCH]",
         "Objects that have failed since their last success, that wait for their next try, or that\n"
         "are in quarantine, with the last error"},
        {"top",
         "the status, live; q ends it",
         "ji",
         0,
         0,
         {0},
         "no arguments",
         verb_top,
         "",
         "The status, live: rates, the slowest handlers, and what fails; q ends it"},
        {"explain",
         "why an object did or did not run",
         "jn",
         2,
         2,
         {WORD_WATCH, WORD_KEY},
         TAKES_KEY,
         verb_explain,
         "WATCH KEY",
         "Why this object (namespace/name) did or did not run, and what that rests on"},
        {"history",
         "the last runs, and what they did",
         "jon",
         1,
         2,
         {WORD_WATCH, WORD_KEY},
         "a watch and perhaps a key (namespace/name)",
         verb_history,
         "WATCH [KEY]",
         "The last runs of an object, or of all of a watch, with result, duration, attempt, and what they\n"
         "did to children; of those that did nothing, the last"},
        {"logs",
         "what the journal has of a watch or an object",
         "jfn",
         1,
         ANY,
         {WORD_WATCH, WORD_KEY},
         "a watch and perhaps a key (namespace/name)",
         verb_logs,
         "WATCH [KEY] [-- OPTION...]",
         "Becomes journalctl with the fields of the watch, or of one object of it; what follows\n"
         "-- are options of journalctl"},
        {"check",
         "whether a configuration has mistakes",
         "jc",
         0,
         1,
         {WORD_FILE},
         "one file",
         verb_check,
         "[FILE]",
         "Says every mistake with its line, also kinds that the server does not serve; changes nothing"},
        {"health",
         "a probe: silent and 0 when all is well",
         "jR",
         0,
         0,
         {0},
         "no arguments",
         verb_health,
         "",
         "A probe: exit code 0 when all processes are heard, with --ready when all watches are in sync"},
        {"init",
         "the folder of a new operator",
         "jkgFLzCp",
         1,
         1,
         {WORD_FILE},
         "one folder, which names the operator",
         verb_init,
         "FOLDER --kind KIND",
         "A folder that works at once: kind, configuration, handler, tests, image and manifests"},
        {"rbac",
         "the roles that a configuration needs",
         "jcnapd",
         0,
         1,
         {WORD_FILE},
         "one file",
         verb_rbac,
         "[FILE]",
         "Manifests for kubectl apply"},
        {"retry",
         "run an object now, or all that failed, or all",
         "jAln",
         0,
         2,
         {WORD_WATCH, WORD_FAILING},
         TAKES_KEY,
         verb_retry,
         "WATCH KEY | --all-failed [WATCH] | --all WATCH",
         "Runs this object now, whatever it waits for, or all objects that have failed, or all of a watch"},
        {"release",
         "let an object out of quarantine",
         "jzwyn",
         2,
         2,
         {WORD_WATCH, WORD_QUARANTINED},
         TAKES_KEY,
         verb_release,
         "WATCH KEY | --finalizer --reason TEXT WATCH KEY",
         "Lets an object out of quarantine, or takes our finalizer off one whose cleanup cannot succeed"},
        {"pause",
         "let no object of a watch run",
         "jw",
         1,
         1,
         {WORD_WATCH},
         "a watch",
         verb_pause,
         "WATCH",
         "Lets no object of a watch run, even after a restart; changes are kept"},
        {"resume",
         "let a watch run again",
         "j",
         1,
         1,
         {WORD_WATCH},
         "a watch",
         verb_resume,
         "WATCH",
         "Lets a watch that is paused run again"},
        {"reload",
         "read the configuration again",
         "jt",
         0,
         0,
         {0},
         "no arguments",
         verb_reload,
         "",
         "Reads configuration, handlers and credentials again, as SIGHUP does, and waits for the result"},
        {"uninstall",
         "take our finalizers off all objects",
         "jytX",
         0,
         0,
         {0},
         "no arguments",
         verb_uninstall,
         "",
         "Takes our finalizers off all objects, and shows them first; goes on after a restart"},
        {"run",
         "run a handler without an operator",
         "jcWOP",
         0,
         0,
         {0},
         "no arguments; --object says what for",
         verb_run,
         "--object FILE|KEY",
         "Runs one handler and shows what it writes: of FILE on a server in memory, of KEY\n"
         "(namespace/name) on the cluster, kept only with --apply"},
        {"replay",
         "run recorded requests again",
         "jcW",
         1,
         1,
         {WORD_FILE},
         "the folder that an operator with --record has filled",
         verb_replay,
         "DIR",
         "Runs again what an operator with --record DIR has recorded; shows where answers differ"},
};

static const struct command_line command_line = {
        .option = option, .always = "rhV", .verb = verb, .verb_count = ELEMENTS(verb)};

/* What is ignored looks as if it were obeyed. */
static int refuse_option(const struct verb *found, int letter)
{
        for (const struct option *each = option; each->name; each++)
                if (each->val == letter)
                        fprintf(stderr, "reconciledctl: %s has no --%s\nTry 'reconciledctl %s --help'.\n",
                                found->name, each->name, found->name);
        return EXIT_CODE_USAGE;
}

static int usage_verbs(const char *word)
{
        const char *meant = word ? help_suggest(&command_line, word) : NULL;

        if (meant) {
                fprintf(stderr, "reconciledctl: there is no verb %s; did you mean %s?\n", word, meant);
                return EXIT_CODE_USAGE;
        }
        if (word)
                fprintf(stderr, "reconciledctl: there is no verb %s; use", word);
        else
                fputs("reconciledctl: a verb is missing; use", stderr);
        for (size_t i = 0; i < ELEMENTS(verb); i++)
                fprintf(stderr, "%s%s",
                        i == 0                    ? " "
                        : i + 1 == ELEMENTS(verb) ? " or "
                                                  : ", ",
                        verb[i].name);
        fputs("\nTry 'reconciledctl --help'.\n", stderr);
        return EXIT_CODE_USAGE;
}

static bool takes_key(const struct verb *found)
{
        return found->word[1] == WORD_KEY || found->word[1] == WORD_FAILING ||
               found->word[1] == WORD_QUARANTINED;
}

/* -n NAMESPACE: of a key that names none. */
static int run_found(const struct options *options, const struct verb *found, int count, char **argument)
{
        _cleanup_free_ char *key = NULL;

        if (options->namespace && takes_key(found) && count > 1 && argument[1][0] != '-' &&
            !strchr(argument[1], '/')) {
                key = format_string("%s/%s", options->namespace, argument[1]);
                if (!key)
                        return EXIT_CODE_SOFTWARE;
                argument[1] = key;
        }
        return found->run(options, count, argument);
}

static int run_verb(const struct options *options, int count, char **word)
{
        const struct verb *found = count > 0 ? find_verb(&command_line, word[0]) : NULL;

        if (!found && count == 0 && options->help) {
                help_all(&command_line);
                return EXIT_CODE_OK;
        }
        if (!found)
                return usage_verbs(count > 0 ? word[0] : NULL);
        if (options->help) {
                help_verb(&command_line, found);
                return EXIT_CODE_OK;
        }
        for (const char *letter = options->given; *letter; letter++)
                if (!strchr(found->options, *letter) && !strchr(command_line.always, *letter))
                        return refuse_option(found, *letter);
        if (count - 1 >= found->least && count - 1 <= found->most)
                return run_found(options, found, count - 1, word + 1);
        fprintf(stderr, "reconciledctl: %s takes %s\nTry 'reconciledctl %s --help'.\n", found->name,
                found->takes, found->name);
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
        case 'z':
                return &options->finalizer;
        case 'h':
                return &options->help;
        case 'A':
                return &options->all_failed;
        case 'l':
                return &options->all;
        case 'f':
                return &options->follow;
        case 'y':
                return &options->yes;
        case 'X':
                return &options->cancel;
        default:
                return NULL;
        }
}

static const char **place_of_text(struct options *options, int c)
{
        switch (c) {
        case 'r':
                return &options->runtime_directory;
        case 'c':
                return &options->run.config;
        case 'W':
                return &options->run.watch;
        case 'O':
                return &options->run.object;
        case 'w':
                return &options->why;
        case 'n':
                return &options->namespace;
        case 'a':
                return &options->rbac.service_account;
        case 'k':
                return &options->init.kind;
        case 'g':
                return &options->init.group;
        case 'L':
                return &options->init.language;
        case 'C':
                return &options->init.child;
        default:
                return NULL;
        }
}

static int take_duration(uint64_t *duration, const char *text, const char *mistake)
{
        int r = duration_parse(text, duration);

        return r < 0 || *duration < DURATION_LEAST || *duration > USEC_PER_HOUR ? usage(mistake) : 0;
}

static int take_format(struct options *options, const char *text)
{
        options->json = strcmp(text, "json") == 0;
        options->yaml = strcmp(text, "yaml") == 0;
        options->wide = strcmp(text, "wide") == 0;
        return options->json || options->yaml || options->wide ? 0
                                                               : usage("--output takes wide, json or yaml");
}

static int take_plural(struct options *options, const char *text)
{
        if (!strchr(text, '=') || options->rbac.plural_count == RBAC_PLURALS_MAX)
                return usage("--plural takes Kind=plural");
        options->rbac.plural[options->rbac.plural_count++] = text;
        return 0;
}

static int take_field(struct options *options, const char *text)
{
        if (options->init.field_count == INIT_FIELDS_MAX)
                return usage("--field: there are too many; write them into deploy/crd.yaml");
        options->init.field[options->init.field_count++] = text;
        return 0;
}

static int take_crd(struct options *options, const char *text)
{
        if (options->rbac.crd_count == RBAC_PLURALS_MAX)
                return usage("--crd is given too often");
        options->rbac.crd[options->rbac.crd_count++] = text;
        return 0;
}

/* 0, or the exit code of wrong usage. */
static int take_option(struct options *options, int c, const char *text)
{
        size_t count = strlen(options->given);
        bool *flag = flag_of(options, c);
        const char **place = place_of_text(options, c);

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
        else if (c == 'o')
                return take_format(options, text);
        else if (c == 'p')
                return take_plural(options, text);
        else if (c == 'F')
                return take_field(options, text);
        else if (c == 'd')
                return take_crd(options, text);
        else
                return EXIT_CODE_USAGE;
        return 0;
}

/* Output that was asked for and could not be written is no success. A closed pipe ends us by its signal,
 * unless that is ignored. */
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
                .rbac = {.service_account = "reconciled"},
                .init = {.group = "example.com", .language = "sh"},
        };
        int c, r;

        if (argc > 1 && strcmp(argv[1], "__complete") == 0)
                return ctl_complete(&command_line, options.runtime_directory, argc - 2, argv + 2);
        while ((c = getopt_long(argc, argv, "hfn:o:", option, NULL)) >= 0) {
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
