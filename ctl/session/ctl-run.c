/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl run`: one handler, without its operator, and what its answer would make of the cluster. An
 * object of a file is run on a server in memory, an object of the cluster with dryRun, unless --apply says
 * that the writes are to be kept.
 */
#include "ctl/session/ctl-run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "config/config.h"
#include "ctl/check/ctl-check.h"
#include "ctl/check/unit.h"
#include "ctl/ctl-answer.h"
#include "ctl/output/output.h"
#include "ctl/session/file-server.h"
#include "ctl/session/internal.h"
#include "ctl/session/session.h"
#include "ctl/session/written.h"
#include "ipc/message.h"
#include "os/file.h"
#include "os/syscall.h"
#include "json/json.h"

/* ---- what came of it */

struct report {
        struct seen seen;
        bool failed, wrote, begun, no_answer;
};

static void print_object(const char *sign, const cJSON *object, const char *suffix)
{
        const cJSON *metadata = json_member(object, "metadata");
        const char *namespace_name = json_text(metadata, "namespace"), *name = json_text(metadata, "name");

        ctl_line("%s %s %s%s%s%s", sign, json_text(object, "kind"), namespace_name,
                 namespace_name[0] ? "/" : "", name[0] ? name : json_text(metadata, "generateName"), suffix);
}

/* If the former version was not seen, only the request shows the change; a patch of a confidential object is
 * recorded as it was sent. */
static void print_change(const struct written *written)
{
        const cJSON *before = written->before;
        bool is_whole = before || written->is_new || !written->sent;

        if (!written->is_new && written->redacted && (!before || before == written->after))
                puts("    (not shown, because the object is confidential)");
        else if (difference_print(before, is_whole ? written->after : written->sent, "    ") == 0)
                puts(written->redacted
                             ? "    (nothing changes apart from what is confidential, which is not shown)"
                             : "    (nothing of it changes)");
}

static void report_written(const struct written *written, void *userdata)
{
        struct report *report = userdata;

        if (written->status / 100 != 2) {
                ctl_line("! refused (HTTP %d): %s %s: %s", written->status, written->method, written->path,
                         written->error);
                return;
        }
        report->wrote = true;
        if (!written->after) {
                ctl_line("- delete %s", written->path);
                return;
        }
        print_object(written->is_new ? "+ create" : "~ change", written->after,
                     written->subresource[0] ? ", its status" : "");
        print_change(written);
}

static void report_run(struct report *report, const cJSON *line)
{
        if (report->begun)
                puts("");
        ctl_line("%s: %s %s", json_text(line, "watch"), json_text(line, "action"), json_text(line, "key"));
        report->begun = true;
}

/* Whether that is a success is said with its end. */
static void report_answer(struct report *report, const cJSON *line)
{
        _cleanup_free_ char *json = NULL;
        const cJSON *body = json_member(line, "body");

        if (!body && ctl_is(line, "redacted")) {
                puts("answer: not shown, because the object is confidential");
                return;
        }
        report->no_answer = cJSON_IsNull(body) || !body;
        if (report->no_answer)
                return;
        json = cJSON_PrintUnformatted(body);
        ctl_line("answer: %s", json ? json : "?");
}

static int judge_line(const cJSON *line, const char *type, void *userdata)
{
        const char *result = json_text(line, "result");
        struct report *report = userdata;

        if (strcmp(type, "end") == 0 && strcmp(result, run_result_name(RESULT_SUCCESS)) != 0 &&
            strcmp(result, run_result_name(RESULT_SETTLING)) != 0)
                report->failed = true;
        return 0;
}

static void print_end(struct report *report, const cJSON *line)
{
        const char *result = json_text(line, "result"), *message = json_text(line, "message");
        char text[64];

        if (report->no_answer)
                puts(strcmp(result, run_result_name(RESULT_SUCCESS)) == 0
                             ? "answer: none, which is a success"
                             : "answer: none");
        report->no_answer = false;
        ctl_line("result: %s after %s%s%s", result,
                 duration_format(ctl_number(line, "durationUsec") / 1000 * 1000, text, sizeof(text)),
                 message[0] ? ": " : "", message);
        (void)judge_line(line, "end", report);
}

static int report_line(const cJSON *line, const char *type, void *userdata)
{
        struct report *report = userdata;

        if (strcmp(type, "run") == 0)
                report_run(report, line);
        else if (strcmp(type, "answer") == 0)
                report_answer(report, line);
        else if (strcmp(type, "end") == 0)
                print_end(report, line);
        return seen_take_line(&report->seen, line, type, report_written, report);
}

static int tell_run(const struct ctl_run_options *options, const char *trace, bool of_file)
{
        struct report report = {0};
        int r = seen_begin(&report.seen, !of_file && !options->apply);

        if (r < 0)
                return EXIT_CODE_SOFTWARE;
        if (options->json) {
                ctl_put_json(trace);
                r = trace_visit(trace, judge_line, &report);
        } else {
                r = trace_visit(trace, report_line, &report);
                if (r >= 0 && of_file)
                        puts("\nAll of this happened on a server in memory, which is gone.");
                else if (r >= 0 && report.wrote && !options->apply)
                        puts("\nNothing was written; --apply writes it.");
        }
        seen_done(&report.seen);
        return r < 0 ? EXIT_CODE_SOFTWARE : report.failed ? EXIT_CODE_FAILED : EXIT_CODE_OK;
}

/* ---- the command */

const struct config_watch *ctl_find_watch(const struct config *config, const char *name)
{
        const struct config_watch *found = NULL;

        FOREACH_ARRAY(watch, config->watch, config->watch_count) {
                if (watch->owner || (name && strcmp(watch->name, name) != 0))
                        continue;
                if (found) {
                        fputs("reconciledctl: --watch NAME says which watch's handler is meant\n", stderr);
                        return NULL;
                }
                found = watch;
        }
        if (!found)
                fprintf(stderr, "reconciledctl: the configuration has no watch \"%s\"\n", name ? name : "");
        return found;
}

bool ctl_may_try(const struct config_watch *watch, bool run_anyway)
{
        if (watch->handler.dry_run || run_anyway)
                return true;
        fprintf(stderr,
                "reconciledctl: the handler of watch %s would run many times, and what it does beside its answers, it "
                "does. With `dryRun: true` below `handler:` it promises to do nothing else when a request says dryRun; "
                "--run-anyway runs it without that\n",
                watch->name);
        return false;
}

/* Without an object, the ConfigMap of a schedule or of `startup` is enough: a file of it alone is meant. */
static bool is_file(const char *object)
{
        struct stat st;

        return !object || (stat(object, &st) == 0 && S_ISREG(st.st_mode));
}

/* No key of an object begins with a slash or holds "./", and hardly one ends as files of objects do. */
static bool is_meant_as_file(const char *object)
{
        return object[0] == '/' || strstr(object, "./") || ends_with(object, ".yaml") ||
               ends_with(object, ".yml") || ends_with(object, ".json");
}

/* true: a file was meant, and there is none, which was reported. */
static bool is_missing_file(const char *object)
{
        struct stat st;
        int r;

        if (!object || !is_meant_as_file(object) || is_file(object))
                return false;
        r = stat(object, &st);
        fprintf(stderr, "reconciledctl: %s: %s\n", object,
                r < 0 ? strerror(errno) : "is not a regular file");
        return true;
}

static int run_session(const struct ctl_run_options *options, struct session_options *session_options)
{
        _cleanup_(session_free_pointer) struct session *session = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *trace = NULL;
        struct try_server server = {0};
        const char *const file[] = {options->object, NULL};
        bool of_file = is_file(options->object);
        int r, told;

        session_options->object = of_file ? NULL : options->object;
        session_options->runtime_directory = of_file ? NULL : options->runtime_directory;
        session_options->apply = of_file || options->apply;
        session_options->follow = !of_file && options->apply;
        session_options->tty = options->tty;
        session_options->command = options->command;
        r = session_new(session_options, &session, &error);
        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s\n", error_message(&error));
                return r == -EOPNOTSUPP ? EXIT_CODE_CONFIGURATION : EXIT_CODE_SOFTWARE;
        }
        r = of_file ? file_server_start(&server, session_folder(session), file, session_options->watch) : 0;
        if (r == 0) {
                session_use_kubeconfig(session, server.kubeconfig);
                r = session_run(session);
        } else {
                if (r != -EIO)
                        fprintf(stderr, "reconciledctl: the server for the file cannot be started: %s\n",
                                strerror(-r));
                r = EXIT_CODE_SOFTWARE;
        }
        if (session_trace(session, &trace) >= 0) {
                told = tell_run(options, trace, of_file);
                r = r == EXIT_CODE_OK ? told : r;
        }
        try_server_end(&server);
        return r;
}

/* A terminal that is not ours to control, as a program may have got it from another one, is of no use. */
static bool has_terminal(void)
{
        int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

        if (fd >= 0)
                close(fd);
        return fd >= 0 && isatty(STDIN_FILENO);
}

/* NULL: the handler can have the terminal. */
static const char *tty_obstacle(const struct config_watch *watch)
{
        const struct config_handler *handler = &watch->handler;

        if (!has_terminal())
                return "standard input is no terminal";
        if (handler->kind == HANDLER_PLUGIN)
                return "a plugin has no process of its own; attach a debugger to reconciled-plugin-host";
        if (handler->user && geteuid() == 0 && handler->uid != 0)
                return "the handler would run as root; become the user of handler.user first";
        return NULL;
}

int ctl_use_unit(struct config *config, const struct unit_credential *unit, int status,
                 const struct error *error)
{
        if (config->kubeconfig[0])
                return 0;
        if (status < 0) {
                fprintf(stderr, "reconciledctl: %s\n", error_message(error));
                return EXIT_CODE_CONFIGURATION;
        }
        return unit->path && text_replace(&config->kubeconfig, unit->path) < 0 ? EXIT_CODE_SOFTWARE : 0;
}

int ctl_run(const struct ctl_run_options *options)
{
        _cleanup_(config_free_pointer) struct config *config = NULL;
        struct session_options session_options = {0};
        _cleanup_(unit_credential_done) struct unit_credential unit = {0};
        _cleanup_error_ struct error error = ERROR_NONE;
        const char *obstacle;
        int r;

        if (is_missing_file(options->object))
                return EXIT_CODE_USAGE;
        r = unit_credential_find(options->config, &unit, &error);
        unit_credential_use(&unit);
        session_options.config = config = ctl_load_config(options->config);
        if (!config)
                return EXIT_CODE_CONFIGURATION;
        session_options.watch = ctl_find_watch(config, options->watch);
        if (!session_options.watch)
                return EXIT_CODE_USAGE;
        if (!options->object && !session_options.watch->own) {
                fputs("reconciledctl: run: --object FILE|KEY says which object is meant; only a schedule and `startup` need "
                      "none\n",
                      stderr);
                return EXIT_CODE_USAGE;
        }
        obstacle = options->tty ? tty_obstacle(session_options.watch) : NULL;
        if (obstacle) {
                fprintf(stderr, "reconciledctl: --tty: %s\n", obstacle);
                return EXIT_CODE_USAGE;
        }
        r = is_file(options->object) ? 0 : ctl_use_unit(config, &unit, r, &error);
        return r != 0 ? r : run_session(options, &session_options);
}
