/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/torture.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ctl/check/ctl-check.h"
#include "ctl/ctl-answer.h"
#include "ctl/output/output.h"
#include "ctl/session/ctl-run.h"
#include "ctl/torture/rig.h"
#include "ctl/torture/spec-values.h"
#include "ctl/torture/torture-case.h"
#include "ctl/torture/torture-report.h"
#include "ctl/torture/trial.h"
#include "kube/libcurl.h"
#include "os/folder.h"
#include "os/syscall.h"
#include "os/temporary.h"
#include "json/json.h"

#define LEARNING_RUNS 3
#define MINUTES_MAX   100000

struct cases {
        struct torture torture;
        struct case_report *report;
        size_t count;
        FILE *junit;          /* NULL: not wanted */
        uint64_t seed, until; /* until: 0: all cases run */
};

/* ---- which cases */

static bool list_has_case(const char *list, const char *name)
{
        size_t size = strlen(name);

        for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
                if (strncmp(at, name, size) == 0 && (at[size] == ',' || at[size] == '\0'))
                        return true;
        return false;
}

static bool is_case(const char *name, size_t size)
{
        for (size_t i = 0; i < KIND_COUNT; i++)
                if (strlen(case_kind[i].name) == size && strncmp(case_kind[i].name, name, size) == 0)
                        return true;
        return false;
}

static int check_only(const char *only)
{
        if (only && !only[0]) {
                fputs("reconciledctl: --only takes at least one case\n", stderr);
                return -EINVAL;
        }
        for (const char *at = only; at && *at;) {
                size_t size = strcspn(at, ",");

                if (!is_case(at, size)) {
                        fprintf(stderr, "reconciledctl: --only: there is no case %.*s; use", (int)size, at);
                        for (size_t i = 0; i < KIND_COUNT; i++)
                                fprintf(stderr, " %s", case_kind[i].name);
                        fputs("\n", stderr);
                        return -EINVAL;
                }
                at += size + (at[size] == ',');
        }
        return 0;
}

static int add_case(struct cases *cases, const struct case_kind *kind, const cJSON *of)
{
        struct case_report *grown = reallocarray(cases->report, cases->count + 1, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        cases->report = grown;
        grown[cases->count++] = (struct case_report){.of = {kind, of}};
        return 0;
}

static int add_cases_of(struct cases *cases, const struct case_kind *kind, const cJSON *list)
{
        const cJSON *each;
        int r = 0;

        cJSON_ArrayForEach(each, list) if (r >= 0) r = add_case(cases, kind, each);
        return r;
}

static int add_cases(struct cases *cases)
{
        const struct torture *torture = &cases->torture;
        const char *only = torture->trial->options->only;
        int r = 0;

        for (size_t i = 0; i < KIND_COUNT && r >= 0; i++) {
                const struct case_kind *kind = &case_kind[i];

                if ((only && !list_has_case(only, kind->name)) ||
                    (kind->applies && !kind->applies(torture->trial)))
                        continue;
                if (kind->scope == SCOPE_ONCE)
                        r = add_case(cases, kind, NULL);
                else if (kind->scope == SCOPE_VALUE)
                        r = add_cases_of(cases, kind, torture->value);
                else
                        for (unsigned phase = 0; phase < PHASE_COUNT && r >= 0; phase++)
                                /* What is being deleted already cannot be deleted meanwhile. */
                                r = kind->meet == MEET_DELETE && phase == PHASE_DELETE
                                            ? 0
                                            : add_cases_of(cases, kind, torture->write[phase]);
        }
        return r;
}

/* `missed` needs the outcome of `value`, so with a seed they stay in their order: a value may be skipped then. */
static void shuffle(struct cases *cases)
{
        uint64_t state = cases->seed;

        for (size_t i = cases->count; i > 1; i--) {
                struct case_report swapped = cases->report[i - 1];
                size_t other;

                state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                other = (size_t)((state >> 33) % i);
                cases->report[i - 1] = cases->report[other];
                cases->report[other] = swapped;
        }
}

/* ---- running */

static char *recording_folder(const struct cases *cases, size_t number, const struct torture_case *of)
{
        const char *folder = cases->torture.trial->options->record;
        char *path = folder ? format_string("%s/%03zu-%s", folder, number + 1, of->kind->name) : NULL;

        if (path && mkdir(path, 0700) < 0) {
                fprintf(stderr, "reconciledctl: %s: %s\n", path, strerror(errno));
                free(path);
                return NULL;
        }
        return path;
}

/* What has changed by itself meanwhile, as an hour or a date does, is masked as well. */
static void learn_again(struct cases *cases)
{
        struct attempt attempt = {0};

        case_learn(&cases->torture, &attempt);
        attempt_done(&attempt);
}

/* Only what fails twice has failed: the machine may have been slow. */
static void run_one(struct cases *cases, size_t number)
{
        struct case_report *report = &cases->report[number];
        struct attempt again = {0};

        report->recording = recording_folder(cases, number, &report->of);
        case_run(&cases->torture, &report->of, report->recording, &report->attempt);
        if (report->attempt.result == CASE_FAILED && !rig_was_interrupted()) {
                learn_again(cases);
                case_run(&cases->torture, &report->of, report->recording, &again);
                report->unsteady = again.result != CASE_FAILED;
                attempt_done(&again);
        }
        report->ran = !rig_was_interrupted();
        if (report->attempt.result != CASE_FAILED && report->recording) {
                temporary_folder_remove(report->recording);
                free(TAKE_PTR(report->recording));
        }
}

static void run_cases(struct cases *cases)
{
        bool json = cases->torture.trial->options->json;

        for (size_t i = 0; i < cases->count; i++) {
                struct case_report *report = &cases->report[i];

                if (rig_was_interrupted() || (cases->until > 0 && clock_monotonic_usec() > cases->until))
                        break;
                report_progress(i, cases->count, &report->of);
                run_one(cases, i);
                if (!report->ran || report->attempt.result != CASE_FAILED || report->unsteady || json)
                        continue;
                report_progress(0, 0, NULL);
                report_failure(report);
        }
        report_progress(0, 0, NULL);
}

/* ---- without faults */

static void print_writes(const struct torture *torture)
{
        static const char *const of[PHASE_COUNT] = {"creation", "deletion"};
        const cJSON *write;

        for (unsigned phase = 0; phase < PHASE_COUNT; phase++)
                cJSON_ArrayForEach(write, torture->write[phase])
                        ctl_line("%s: %s", of[phase], json_text(write, "words"));
}

/* What fails without any fault cannot be compared with anything. It is the one case then. */
static int refuse_trial(struct cases *cases, const struct attempt *attempt)
{
        int r = add_case(cases, &report_faultless, NULL);

        if (r < 0)
                return r;
        cases->report[0].attempt = *attempt;
        cases->report[0].ran = true;
        if (!cases->torture.trial->options->json)
                report_failure(&cases->report[0]);
        return -ECANCELED;
}

static int learn(struct cases *cases)
{
        struct torture *torture = &cases->torture;

        for (unsigned i = 0; i < LEARNING_RUNS; i++) {
                struct attempt attempt = {0};

                case_learn(torture, &attempt);
                if (attempt.result == CASE_FAILED)
                        return refuse_trial(cases, &attempt);
                attempt_done(&attempt);
        }
        torture->value =
                spec_values(json_member(torture->trial->subject->child, trial_spec_name(torture->trial)),
                            trial_spec_schema(torture->trial), trial_spec_name(torture->trial),
                            torture->watch_is_hidden);
        return torture->value ? 0 : -ENOMEM;
}

/* "Widget.example.com", as the end state names it. */
static int hide_kind(struct torture *torture, const char *api_version, const char *kind)
{
        const char *slash = strchr(api_version, '/');
        _cleanup_free_ char *name = format_string("%s%s%.*s", kind, slash ? "." : "",
                                                  slash ? (int)(slash - api_version) : 0, api_version);

        return name && (json_member(torture->mask.hidden, name) ||
                        cJSON_AddTrueToObject(torture->mask.hidden, name))
                       ? 0
                       : -ENOMEM;
}

static int hide_confidential(struct torture *torture, const struct config_watch *watch)
{
        int r = watch->confidential ? hide_kind(torture, watch->api_version, watch->kind) : 0;

        for (size_t i = 0; i < watch->owns_count && r >= 0; i++)
                if (watch->owns[i].confidential)
                        r = hide_kind(torture, watch->owns[i].api_version, watch->owns[i].kind);
        return r;
}

static int prepare_torture(struct torture *torture, const struct trial *trial)
{
        const struct config_watch *watch = trial->watch;
        int r;

        torture->trial = trial;
        torture->is_idempotent = true;
        torture->watch_is_hidden = watch->confidential || strcmp(watch->kind, "Secret") == 0;
        torture->of_value = cJSON_CreateObject();
        torture->refused = cJSON_CreateObject();
        r = torture->of_value && torture->refused ? mask_init(&torture->mask) : -ENOMEM;
        return r < 0 ? r : hide_confidential(torture, watch);
}

static void cases_done(struct cases *cases)
{
        struct torture *torture = &cases->torture;

        for (size_t i = 0; i < cases->count; i++) {
                attempt_done(&cases->report[i].attempt);
                free(cases->report[i].recording);
        }
        free(cases->report);
        cleanup_fclose(&cases->junit);
        for (unsigned phase = 0; phase < PHASE_COUNT; phase++) {
                cJSON_Delete(torture->expected[phase]);
                cJSON_Delete(torture->write[phase]);
        }
        cJSON_Delete(torture->before);
        cJSON_Delete(torture->of_value);
        cJSON_Delete(torture->refused);
        cJSON_Delete(torture->value);
        mask_done(&torture->mask);
        free(torture->collection);
        free(torture->plural);
}

static int conclude(struct cases *cases)
{
        const struct torture_options *options = cases->torture.trial->options;
        struct report_summary summary = {&cases->torture, cases->report, cases->count, options->json};
        int r;

        report_summary(&summary);
        r = cases->junit ? report_junit(cases->junit, &summary) : 0;
        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s: %s\n", options->junit, strerror(-r));
                return EXIT_CODE_IO;
        }
        return rig_was_interrupted()           ? EXIT_CODE_SOFTWARE
               : report_failures(&summary) > 0 ? EXIT_CODE_FAILED
                                               : EXIT_CODE_OK;
}

static int run_trial(const struct trial *trial, struct cases *cases)
{
        int r = prepare_torture(&cases->torture, trial);

        if (r >= 0)
                r = learn(cases);
        if (r >= 0)
                r = add_cases(cases);
        if (r == -ECANCELED)
                return conclude(cases);
        if (r >= 0 && cases->count == 0) {
                fputs("reconciledctl: none of the cases of --only applies to this watch and object\n",
                      stderr);
                return EXIT_CODE_USAGE;
        }
        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s\n", strerror(-r));
                return EXIT_CODE_SOFTWARE;
        }
        if (trial->options->seed)
                shuffle(cases);
        if (!trial->options->json) {
                print_writes(&cases->torture);
                printf("%zu cases\n\n", cases->count);
                (void)fflush(stdout);
        }
        run_cases(cases);
        return conclude(cases);
}

/* ---- the command */

static bool read_option_number(const char *text, uint64_t most, uint64_t *ret)
{
        char *end;

        if (!text)
                return true;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        return is_digit(text[0]) && *end == '\0' && errno == 0 && *ret <= most;
}

/* Recordings are folders as "001-repeated". A case that succeeds removes its own, so none of a former run may be there. */
static bool has_recordings(const char *folder)
{
        DIR *directory = opendir(folder);
        const struct dirent *entry;
        bool has = false;

        while (directory && !has && (entry = readdir(directory))) {
                size_t digits = strspn(entry->d_name, "0123456789");

                has = digits > 0 && entry->d_name[digits] == '-';
                if (has)
                        fprintf(stderr,
                                "reconciledctl: --record %s: %s is there already; remove it, or name a new folder\n",
                                folder, entry->d_name);
        }
        if (directory)
                closedir(directory);
        return has;
}

static bool record_is_fit(const char *folder)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *whole = NULL;
        struct stat st;

        if (folder[0] != '/' || stat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || access(folder, W_OK) < 0) {
                fprintf(stderr,
                        "reconciledctl: --record %s: an absolute path of a folder that is there is needed\n",
                        folder);
                return false;
        }
        if (folder_own(folder, &whole, &error) < 0) {
                fprintf(stderr, "reconciledctl: --record: %s\n", error_message(&error));
                return false;
        }
        return !has_recordings(folder);
}

/* 0, or an exit code that was explained. */
static int check_options(const struct torture_options *options, struct cases *cases)
{
        uint64_t minutes = 0;

        if (!read_option_number(options->seed, UINT64_MAX, &cases->seed) ||
            !read_option_number(options->minutes, MINUTES_MAX, &minutes) ||
            (options->minutes && minutes == 0)) {
                fputs("reconciledctl: --seed takes a number, --minutes one from 1 on\n", stderr);
                return EXIT_CODE_USAGE;
        }
        if (check_only(options->only) < 0)
                return EXIT_CODE_USAGE;
        if (options->record && !record_is_fit(options->record))
                return EXIT_CODE_USAGE;
        /* It may be a pipe, so it is opened once. */
        cases->junit = options->junit ? fopen(options->junit, "we") : NULL;
        if (options->junit && !cases->junit) {
                fprintf(stderr, "reconciledctl: %s: %s\n", options->junit, strerror(errno));
                return EXIT_CODE_IO;
        }
        cases->until = minutes > 0 ? clock_monotonic_usec() + minutes * USEC_PER_MINUTE : 0;
        return 0;
}

int ctl_torture(const struct torture_options *options)
{
        _cleanup_(config_free_pointer) struct config *config = NULL;
        _cleanup_(trial_free_pointer) struct trial *trial = NULL;
        _cleanup_(cases_done) struct cases cases = {0};
        _cleanup_error_ struct error error = ERROR_NONE;
        const struct config_watch *watch;
        int r = check_options(options, &cases);

        if (r != 0)
                return r;
        config = ctl_load_config(options->config);
        if (!config)
                return EXIT_CODE_CONFIGURATION;
        watch = ctl_find_watch(config, options->watch);
        if (!watch || !ctl_may_try(watch, options->run_anyway))
                return EXIT_CODE_USAGE;
        rig_catch_interrupts();
        r = trial_new(options, config, watch, &trial, &error);
        if (r >= 0)
                r = sys_set_subreaper();
        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s\n", error.message ? error_message(&error) : strerror(-r));
                return r == -ENOENT || r == -EINVAL ? EXIT_CODE_USAGE : EXIT_CODE_SOFTWARE;
        }
        r = run_trial(trial, &cases);
        libcurl_unload();
        return r;
}
