/* SPDX-License-Identifier: Apache-2.0 */
/* reconciledctl: options and verbs. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
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
#include "ctl/session/ctl-plan.h"
#include "ctl/session/ctl-run.h"
#include "ctl/session/replay.h"
#include "ctl/torture/torture.h"
#include "ipc/message.h"

#define DURATION_LEAST (100 * USEC_PER_MSEC)
#define LETTERS        48

struct options {
        char given[LETTERS]; /* the letters of options, each once */
        const char *runtime_directory;
        bool help, json, yaml, wide, ready, finalizer, all, all_failed, follow, yes, cancel;
        const char *why, *namespace; /* NULL: not given */
        uint64_t interval_usec;      /* between two pictures */
        uint64_t timeout_usec;       /* of waiting while nothing moves */
        struct rbac_options rbac;
        struct ctl_run_options run;
        struct init_options init;
        struct torture_options torture;
        struct plan_options plan;
};

#define IN(field) offsetof(struct options, field)

/* The options of all verbs. */
static const struct ctl_option option[] = {
        {'j', "json", NULL, IN(json), WORD_FREE, "for programs"},
        {'o', "output", "FORMAT", 0, WORD_FORMAT, "wide, json or yaml"},
        {'n', "namespace", "NAME", IN(namespace), WORD_FREE,
         "of a key that names none; of a list; of rbac: where the operator runs"},
        {'i', "interval", "DURATION", 0, WORD_FREE, "between two updates (100ms to 1h; 2s)"},
        {'f', "follow", NULL, IN(follow), WORD_FREE, "follow what is written from now on"},
        {'R', "ready", NULL, IN(ready), WORD_FREE, "whether all watches are in sync, too"},
        {'c', "config", "FILE", IN(run.config), WORD_FILE,
         "the configuration (default: " RECONCILED_SYSCONFDIR "/reconciled.yaml)"},
        {'a', "service-account", "NAME", IN(rbac.service_account), WORD_FREE, "as whom the operator runs"},
        {'p', "plural", "KIND=PLURAL", 0, WORD_FREE, "where the guess is wrong"},
        {'d', "crd", "FILE", 0, WORD_FILE,
         "CustomResourceDefinitions, which tell plural and scope of kinds"},
        {'k', "kind", "KIND", IN(init.kind), WORD_FREE, "of the objects that the operator handles"},
        {'g', "group", "DOMAIN", IN(init.group), WORD_FREE, "of the kind (example.com)"},
        {'F', "field", "NAME:TYPE", 0, WORD_FREE,
         "of the spec: string, int, number, bool or string[]; one or more"},
        {'L', "lang", "LANGUAGE", IN(init.language), WORD_FREE,
         "of the handler: sh, python, node, go, rust or c (sh)"},
        {'C', "child", "KIND", IN(init.child), WORD_FREE,
         "an example of a child: ConfigMap, Deployment, Job or Service"},
        {'l', "all", NULL, IN(all), WORD_FREE, "all objects of one watch"},
        {'A', "all-failed", NULL, IN(all_failed), WORD_FREE,
         "all objects that have failed, of one watch or of all"},
        {'z', "finalizer", NULL, IN(finalizer), WORD_FREE,
         "hold what is deleted until the handler has cleaned up; of release: take our\n"
         "                             finalizer off it, without its cleanup"},
        {'w', "reason", "TEXT", IN(why), WORD_FREE, "why; the operator's log keeps it"},
        {'X', "cancel", NULL, IN(cancel), WORD_FREE,
         "let the operator run again and put its finalizers on again"},
        {'y', "yes", NULL, IN(yes), WORD_FREE, "do not ask"},
        {'t', "timeout", "DURATION", 0, WORD_FREE,
         "give up after so long without progress (100ms to 1h; 30s)"},
        {'O', "object", "FILE|KEY", 0, WORD_FILE,
         "a manifest, or an object of the cluster (namespace/name)"},
        {'W', "watch", "WATCH", IN(run.watch), WORD_WATCH, "whose handler"},
        {'N', "only", "CASE,...", IN(torture.only), WORD_FREE, "only these cases"},
        {'s', "seed", "NUMBER", IN(torture.seed), WORD_FREE,
         "the cases in another order, which the number tells"},
        {'m', "minutes", "NUMBER", IN(torture.minutes), WORD_FREE, "begin no case after that time"},
        {'J', "junit", "FILE", IN(torture.junit), WORD_FILE, "write the results as JUnit's XML, too"},
        {'D', "record", "DIR", IN(torture.record), WORD_FILE,
         "keep requests and answers of cases that fail, for `reconciledctl replay`"},
        {'E', "selector", "SELECTOR", IN(plan.selector), WORD_FREE, "only objects with these labels"},
        {'M', "limit", "NUMBER", IN(plan.limit), WORD_FREE, "so many objects at most"},
        {'G', "gate", "PERCENT", IN(plan.gate), WORD_FREE,
         "success if no more than that share changes (5%)"},
        {'U', "run-anyway", NULL, IN(torture.run_anyway), WORD_FREE,
         "run a handler that has not declared dryRun"},
        {'P', "apply", NULL, IN(run.apply), WORD_FREE, "keep what is written"},
        {'T', "tty", NULL, IN(run.tty), WORD_FREE, "give the handler this terminal, for a debugger"},
        {'r', "runtime-directory", "DIR", IN(runtime_directory), WORD_FILE,
         "of the operator (default: $RUNTIME_DIRECTORY or " RECONCILED_RUNDIR ")"},
        {'V', "version", NULL, 0, WORD_FREE, NULL},
        {'h', "help", NULL, IN(help), WORD_FREE, "this"},
};

_Static_assert(ELEMENTS(option) < LETTERS, "one letter more, for the end");

static int ctl_usage(const char *text)
{
        fprintf(stderr, "reconciledctl: %s\nTry 'reconciledctl --help'.\n", text);
        return EXIT_CODE_USAGE;
}

/* ---- the verbs: each gets the arguments after it */

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
                return ctl_usage("retry --all takes one watch");
        if (options->all_failed && count > 1)
                return ctl_usage("retry --all-failed takes one watch, or none for all of them");
        if (options->all || options->all_failed)
                return ctl_retry_many(options->runtime_directory, options->all, argument, options->json);
        return count == 2 ? by_hand(options, "retry", argument, "runs as soon as a worker is free")
                          : ctl_usage("retry takes a watch and a key (namespace/name)");
}

static int verb_release(const struct options *options, int count _unused_, char **argument)
{
        if (!options->finalizer)
                return by_hand(options, "release", argument,
                               "is neither in quarantine nor doubtful any more");
        if (!options->why)
                return ctl_usage(
                        "release --finalizer needs --reason TEXT: why, which the operator's log keeps");
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

static int verb_step_down(const struct options *options, int count, char **argument)
{
        return ctl_step_down(options->runtime_directory, count > 0 ? argument[0] : "", options->json);
}

static int verb_uninstall(const struct options *options, int count _unused_, char **argument _unused_)
{
        const struct consent consent = {.yes = options->yes, .json = options->json};

        return options->cancel ? ctl_uninstall_cancel(options->runtime_directory, &consent)
                               : ctl_uninstall(options->runtime_directory, options->timeout_usec, &consent);
}

static int verb_run(const struct options *options, int count, char **argument)
{
        struct ctl_run_options run = options->run;

        if (count > 0 && !run.tty)
                return ctl_usage(
                        "run takes a command with --tty only; --object says what the handler is run for");
        run.runtime_directory = options->runtime_directory;
        run.command = count > 0 ? argument : NULL;
        run.json = options->json;
        return run.object || run.watch
                       ? ctl_run(&run)
                       : ctl_usage("--object FILE, or NAMESPACE/NAME, says what the handler is run for");
}

static int verb_replay(const struct options *options, int count _unused_, char **argument)
{
        struct ctl_run_options run = options->run;

        run.object = argument[0];
        run.json = options->json;
        return ctl_replay(&run);
}

static int verb_torture(const struct options *options, int count _unused_, char **argument _unused_)
{
        struct torture_options torture = options->torture;

        torture.config = options->run.config;
        torture.watch = options->run.watch;
        torture.json = options->json;
        torture.timeout_usec = options->timeout_usec;
        return ctl_torture(&torture);
}

static int verb_plan(const struct options *options, int count _unused_, char **argument _unused_)
{
        struct plan_options plan = options->plan;

        plan.config = options->run.config;
        plan.watch = options->run.watch;
        plan.runtime_directory = options->runtime_directory;
        plan.object = options->run.object;
        plan.json = options->json;
        plan.run_anyway = options->torture.run_anyway;
        return ctl_plan(&plan);
}

static int verb_init(const struct options *options, int count _unused_, char **argument)
{
        struct init_options init = options->init;
        const char *plural = options->rbac.plural_count > 0 ? strchr(options->rbac.plural[0], '=') : NULL;

        if (plural && init.kind &&
            (strncmp(options->rbac.plural[0], init.kind, strlen(init.kind)) != 0 ||
             options->rbac.plural[0] + strlen(init.kind) != plural))
                return ctl_usage("--plural of init is for the kind of --kind");
        init.folder = argument[0];
        init.plural = plural ? plural + 1 : NULL;
        init.finalizer = options->finalizer;
        return ctl_init(&init, options->json);
}

#define ANY          1000
#define TAKES_KEY    "a watch and a key (namespace/name)"
#define MAY_TAKE_KEY "a watch and perhaps a key (namespace/name)"

static const struct arguments none = {.takes = "no arguments"}, one_file = {0, 1, {WORD_FILE}, "one file"},
                              one_member = {0, 1, {WORD_FREE}, "one member"},
                              one_watch = {1, 1, {WORD_WATCH}, "a watch"},
                              one_key = {2, 2, {WORD_WATCH, WORD_KEY}, TAKES_KEY};

static const struct arguments
        of_history = {1, 2, {WORD_WATCH, WORD_KEY}, MAY_TAKE_KEY},
        of_logs = {1, ANY, {WORD_WATCH, WORD_KEY}, MAY_TAKE_KEY},
        of_get = {1, 2, {WORD_STATE, WORD_WATCH}, "failing, waiting or quarantined, and perhaps a watch"},
        of_retry = {0, 2, {WORD_WATCH, WORD_FAILING}, TAKES_KEY},
        of_release = {2, 2, {WORD_WATCH, WORD_QUARANTINED}, TAKES_KEY},
        of_init = {1, 1, {WORD_FILE}, "one folder, which names the operator"},
        of_run = {0, ANY, {WORD_FREE}, "a command"},
        of_replay = {1, 1, {WORD_FILE}, "the folder that an operator with --record has filled"};

static const struct verb verb[] = {
        {"status", "what the running operator does", "jo", &none, verb_status, "",
         "Watches, workers, and what is in trouble. -o wide adds kinds, runs and failures"},
        {"get", "objects in trouble: failing, waiting or quarantined", "jon", &of_get, verb_get,
         "failing|waiting|quarantined [WATCH]",
         "Objects that have failed since their last success, that wait for their next try, or that\n"
         "are in quarantine, with the last error"},
        {"top", "the status, live; q ends it", "ji", &none, verb_top, "",
         "The status, live: rates, the slowest handlers, and what fails; q ends it"},
        {"explain", "why an object did or did not run", "jn", &one_key, verb_explain, "WATCH KEY",
         "Why this object (namespace/name) did or did not run, and what that rests on"},
        {"history", "the last runs, and what they did", "jon", &of_history, verb_history, "WATCH [KEY]",
         "The last runs of an object, or of all of a watch, with result, duration, attempt, and what they\n"
         "did to children; of those that did nothing, the last"},
        {"logs", "what the journal has of a watch or an object", "jfn", &of_logs, verb_logs,
         "WATCH [KEY] [-- OPTION...]",
         "Becomes journalctl with the fields of the watch, or of one object of it; what follows\n"
         "-- are options of journalctl"},
        {"check", "whether a configuration has mistakes", "jc", &one_file, verb_check, "[FILE]",
         "Says every mistake with its line, also kinds that the server does not serve; changes nothing"},
        {"health", "a probe: silent and 0 when all is well", "jR", &none, verb_health, "",
         "A probe: exit code 0 when all processes are heard, with --ready when all watches are in sync"},
        {"init", "the folder of a new operator", "jkgFLzCp", &of_init, verb_init, "FOLDER --kind KIND",
         "A folder that works at once: kind, configuration, handler, tests, image and manifests"},
        {"rbac", "the roles that a configuration needs", "jcnapd", &one_file, verb_rbac, "[FILE]",
         "Manifests for kubectl apply"},
        {"retry", "run an object now, or all that failed, or all", "jAln", &of_retry, verb_retry,
         "WATCH KEY | --all-failed [WATCH] | --all WATCH",
         "Runs this object now, whatever it waits for, or all objects that have failed, or all of a watch"},
        {"release", "let an object out of quarantine", "jzwyn", &of_release, verb_release,
         "WATCH KEY | --finalizer --reason TEXT WATCH KEY",
         "Lets an object out of quarantine, or takes our finalizer off one whose cleanup cannot succeed"},
        {"pause", "let no object of a watch run", "jw", &one_watch, verb_pause, "WATCH",
         "Lets no object of a watch run, even after a restart; changes are kept"},
        {"resume", "let a watch run again", "j", &one_watch, verb_resume, "WATCH",
         "Lets a watch that is paused run again"},
        {"reload", "read the configuration again", "jt", &none, verb_reload, "",
         "Reads configuration, handlers and credentials again, as SIGHUP does, and waits for the result"},
        {"step-down", "let another replica lead", "j", &one_member, verb_step_down, "[MEMBER]",
         "Lets another replica lead, or this one (`member` of its status), once running handlers are done"},
        {"uninstall", "take our finalizers off all objects", "jytX", &none, verb_uninstall, "",
         "Takes our finalizers off all objects, and shows them first; goes on after a restart"},
        {"run", "run a handler without an operator", "jcWOPT", &of_run, verb_run,
         "--object FILE|KEY [--tty [-- COMMAND...]]",
         "Runs one handler and shows what it writes: of FILE on a server in memory, of KEY\n"
         "(namespace/name) on the cluster, kept only with --apply; a schedule (--watch NAME)\n"
         "needs no object. With --tty the handler, or\n"
         "COMMAND in its place, has the terminal, and all the time that it wants"},
        {"replay", "run recorded requests again", "jcW", &of_replay, verb_replay, "DIR",
         "Runs again what an operator with --record DIR has recorded; shows where answers differ"},
        {"plan", "what a new configuration or handler would change", "jcWOEMGU", &none, verb_plan, "",
         "Runs all objects of a watch through the handlers of this configuration, with each write as the\n"
         "server's dry run, and shows what would change, grouped by equal changes. With --object FILE, or\n"
         "a folder, objects and server are those of manifests or of records, in memory"},
        {"torture", "try a handler against every fault, without a cluster", "jcWOtNsmJDU", &none,
         verb_torture, "",
         "Runs configuration and handler on an API server in memory, once for each write and each fault\n"
         "that may meet it, and for other values of the spec. The end must be the same each time.\n"
         "--object FILE (one or more) has objects and definitions; without it, the manifests beside\n"
         "the configuration are read"},
};

static const struct command_line command_line = {option, ELEMENTS(option), "hfn:o:", "rhV",
                                                 verb,   ELEMENTS(verb)};

/* What is ignored looks as if it were obeyed. */
static int refuse_option(const struct verb *found, int letter)
{
        fprintf(stderr, "reconciledctl: %s has no --%s\nTry 'reconciledctl %s --help'.\n", found->name,
                find_option(&command_line, letter)->name, found->name);
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
        return found->arguments->word[1] == WORD_KEY || found->arguments->word[1] == WORD_FAILING ||
               found->arguments->word[1] == WORD_QUARANTINED;
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
        if (count - 1 >= found->arguments->least && count - 1 <= found->arguments->most)
                return run_found(options, found, count - 1, word + 1);
        fprintf(stderr, "reconciledctl: %s takes %s\nTry 'reconciledctl %s --help'.\n", found->name,
                found->arguments->takes, found->name);
        return EXIT_CODE_USAGE;
}

static int read_duration_option(uint64_t *duration, const char *text, const char *mistake)
{
        int r = duration_parse(text, duration);

        return r < 0 || *duration < DURATION_LEAST || *duration > USEC_PER_HOUR ? ctl_usage(mistake) : 0;
}

static int take_format(struct options *options, const char *text)
{
        options->json = strcmp(text, "json") == 0;
        options->yaml = strcmp(text, "yaml") == 0;
        options->wide = strcmp(text, "wide") == 0;
        return options->json || options->yaml || options->wide
                       ? 0
                       : ctl_usage("--output takes wide, json or yaml");
}

static int take_plural(struct options *options, const char *text)
{
        const char *equals = strchr(text, '=');

        if (!equals || equals == text || !equals[1] || options->rbac.plural_count == RBAC_PLURALS_MAX)
                return ctl_usage("--plural takes Kind=plural");
        options->rbac.plural[options->rbac.plural_count++] = text;
        return 0;
}

static int take_field(struct options *options, const char *text)
{
        if (options->init.field_count == INIT_FIELDS_MAX)
                return ctl_usage("--field: there are too many; write them into deploy/crd.yaml");
        options->init.field[options->init.field_count++] = text;
        return 0;
}

/* The last one of `run`; all of `torture`. */
static int take_object_option(struct options *options, const char *text)
{
        if (options->torture.object_count == TORTURE_FILES_MAX)
                return ctl_usage("--object is given too often");
        options->run.object = text;
        options->torture.object[options->torture.object_count++] = text;
        return 0;
}

static int take_crd(struct options *options, const char *text)
{
        if (options->rbac.crd_count == RBAC_PLURALS_MAX)
                return ctl_usage("--crd is given too often");
        options->rbac.crd[options->rbac.crd_count++] = text;
        return 0;
}

/* 0, or the exit code of wrong usage. */
static int take_option(struct options *options, int letter, const char *text)
{
        const struct ctl_option *taken = find_option(&command_line, letter);
        void *place = taken && taken->place > 0 ? (char *)options + taken->place : NULL;

        if (!taken)
                return EXIT_CODE_USAGE;
        if (!strchr(options->given, letter))
                options->given[strlen(options->given)] = (char)letter;
        if (place && taken->argument)
                *(const char **)place = text;
        else if (place)
                *(bool *)place = true;
        else if (letter == 'i')
                return read_duration_option(&options->interval_usec, text,
                                            "--interval takes a duration from 100ms to 1h");
        else if (letter == 't')
                return read_duration_option(&options->timeout_usec, text,
                                            "--timeout takes a duration from 100ms to 1h");
        else if (letter == 'o')
                return take_format(options, text);
        else if (letter == 'F')
                return take_field(options, text);
        else if (letter == 'd')
                return take_crd(options, text);
        else if (letter == 'O')
                return take_object_option(options, text);
        else
                return take_plural(options, text);
        return 0;
}

/* Output that was asked for and could not be written is no success. A closed pipe ends us by its signal,
 * unless that is ignored. */
static int output_done(int code)
{
        if (fflush(stdout) == 0 && !ferror(stdout))
                return code;
        fprintf(stderr, "reconciledctl: the output cannot be written: %s\n", strerror(errno));
        return code < EXIT_CODE_USAGE ? EXIT_CODE_IO : code;
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
        struct option long_option[ELEMENTS(option) + 1] = {0};
        int c, r;

        for (size_t i = 0; i < ELEMENTS(option); i++)
                long_option[i] =
                        (struct option){option[i].name, option[i].argument != NULL, NULL, option[i].letter};
        if (argc > 1 && strcmp(argv[1], "__complete") == 0)
                return ctl_complete(&command_line, options.runtime_directory, argc - 2, argv + 2);
        while ((c = getopt_long(argc, argv, command_line.letters, long_option, NULL)) >= 0) {
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
