/* SPDX-License-Identifier: Apache-2.0 */
/* See handler.h. */
#include "worker/run/handler.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "worker/arguments.h"
#include "worker/limits.h"
#include "worker/recording.h"
#include "worker/run/coprocess.h"
#include "worker/run/environment.h"
#include "worker/run/request.h"

#define EXIT_DATAERR  65
#define EXIT_SOFTWARE 70
#define EXIT_TEMPFAIL 75

/* ---- how it ended */

static const char *signal_name(int signal)
{
        const char *name = sigabbrev_np(signal);

        return name ? name : "real-time";
}

static void judge_failure(struct run *run, const struct process_result *result, int status)
{
        const char *separator = result->last_line[0] ? ": " : "";
        char text[160];

        if (result->end == PROCESS_ENDED)
                run_finish(run, RESULT_CANCELLED, "the handler was asked to end before it was done");
        else if (result->end == PROCESS_TIMED_OUT)
                run_finish(run, RESULT_RETRY,
                           "the handler did not end within its timeout of %s and was ended%s%s",
                           duration_format(run->watch->config->handler_timeout_usec, text, sizeof(text)),
                           separator, result->last_line);
        else if (limits_explain(run->watch->config, result, text, sizeof(text)))
                run_finish(run, RESULT_RETRY, "the handler %s%s%s", text, separator, result->last_line);
        else if (WIFSIGNALED(status))
                run_finish(run, RESULT_RETRY, "the handler was killed by signal %d (%s)%s%s",
                           WTERMSIG(status), signal_name(WTERMSIG(status)), separator, result->last_line);
        else if (WEXITSTATUS(status) == EXIT_DATAERR)
                run_finish(run, RESULT_PERMANENT, "the handler exited with 65 (permanent)%s%s", separator,
                           result->last_line);
        else
                run_finish(run, WEXITSTATUS(status) == EXIT_SOFTWARE ? RESULT_STOP : RESULT_RETRY,
                           "the handler exited with %d%s%s%s", WEXITSTATUS(status),
                           WEXITSTATUS(status) == EXIT_TEMPFAIL ? " (try again)" : "", separator,
                           result->last_line);
}

static enum run_result error_result(const struct answer *answer)
{
        return answer->fatal ? RESULT_STOP : answer->permanent ? RESULT_PERMANENT : RESULT_RETRY;
}

/* `text` must live as long as the run. */
static void carry_out(struct run *run, const char *text, size_t size)
{
        _cleanup_error_ struct error error = ERROR_NONE;

        int r = answer_parse(text, size, &run->answer, &error);

        if (r < 0)
                run_finish(run, r == -ENOMEM ? RESULT_RETRY : RESULT_PERMANENT, "%s", error_message(&error));
        else if (run->answer.error)
                run_finish(run, error_result(&run->answer), "the handler has failed: %s", run->answer.error);
        else
                run_go_on(run, RUN_STAGE_ANSWER);
}

static void on_answered(struct run *run, const char *line, size_t size)
{
        run->handler.done = true;
        recording_answer(run, line, size);
        run->handler.output = strndup(line, size);
        if (run->handler.output)
                carry_out(run, run->handler.output, size);
        else
                run_finish(run, RESULT_RETRY, "no memory for the handler's answer");
}

static void answered_too_much(struct run *run)
{
        run_finish(run, RESULT_PERMANENT, "the handler's answer is larger than %zu bytes",
                   PROCESS_ANSWER_MAX);
}

static void on_answered_too_much(struct run *run)
{
        run->handler.done = true;
        answered_too_much(run);
}

static void on_failed(struct run *run, const char *why)
{
        run->handler.done = true;
        run_finish(run, RESULT_RETRY, "%s", why);
}

/* Neither the handler nor the object is to blame: a volume is being mounted, or a package upgraded. */
static void not_started(struct run *run, const char *why)
{
        run->handler.ran = false;
        run->handler.not_started = true;
        run_finish(run, RESULT_UNAVAILABLE, "%s", why);
}

static void on_not_started(struct run *run, const char *why)
{
        run->handler.done = true;
        not_started(run, why);
}

static void judge_answer(struct run *run, const struct process_result *result)
{
        const struct text *output = result->output;

        if (output->failed) {
                run_finish(run, RESULT_RETRY, "no memory for the handler's answer");
                return;
        }
        if (result->output_error < 0) {
                run_finish(run, RESULT_RETRY, "the handler's answer cannot be read: %s",
                           strerror(-result->output_error));
                return;
        }
        if (result->output_too_large)
                answered_too_much(run);
        else
                carry_out(run, output->data ? output->data : "", output->size);
}

static void on_handler_done(const struct process_result *result, void *userdata)
{
        struct run *run = userdata;
        int status = result->wait_status;

        run->handler.wait_status = status;
        run->handler.usage = result->usage;
        run->handler.out_of_memory = result->memory_end != MEMORY_ENOUGH;
        run->handler.done = true;
        recording_answer(run, result->output->data, result->output->size);
        if (result->left_over)
                run_log_line(PROCESS_LEFT_OVER, run);
        if (result->end == PROCESS_EXITED && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                judge_answer(run, result);
                return;
        }
        /* The answer of a handler that failed is not carried out. */
        judge_failure(run, result, status);
}

static int start_exec(struct run *run)
{
        const struct record_watch *config = run->watch->config;
        _cleanup_text_ struct text input = TEXT_EMPTY;
        _cleanup_free_ char **argument = arguments_build(config);
        char *const *environment = environment_build(run);
        struct process_options options = {
                .argument = argument,
                .environment = environment,
                .input = &input,
                .timeout_usec = config->handler_timeout_usec,
                .grace_usec = config->handler_grace_usec,
                .finds_answer = true,
                .on_line = run_log_line,
                .on_done = on_handler_done,
                .userdata = run,
        };
        int r = request_build(run, 0, &input);

        limits_apply(run->worker, run->watch, &options);
        if (r >= 0 && (!argument || !environment))
                r = -ENOMEM;
        if (r >= 0) {
                recording_request(run, &input);
                r = process_start(run->worker->child->event, &options, &run->handler.process);
        }
        if (environment)
                environment_free(run->watch, environment);
        return r;
}

static const struct coprocess_callbacks callbacks = {
        .answered = on_answered,
        .answered_too_much = on_answered_too_much,
        .failed = on_failed,
        .not_started = on_not_started,
};

static int start_handler(struct run *run)
{
        return run->watch->config->handler_kind == HANDLER_EXEC ? start_exec(run)
                                                                : coprocess_run(run, &callbacks);
}

static const char *start_advice(int error)
{
        switch (error) {
        case -ENOENT:
                return " (it, or the interpreter in its first line)";
        case -ENOEXEC:
                return " (does a script begin with #!?)";
        case -EACCES:
                return " (is it executable, and its folder open, for the user it runs as?)";
        case -EPERM:
                return " (has the operator the right to run it as its user?)";
        default:
                return "";
        }
}

static void cannot_start(struct run *run, int status)
{
        char why[RUN_MESSAGE_MAX];

        snprintf(why, sizeof(why), "the handler %s cannot be started: %s%s",
                 run->watch->config->handler_exec[0].value, strerror(-status), start_advice(status));
        if (status == -ENOMEM)
                run_finish(run, RESULT_RETRY, "%s", why);
        else
                not_started(run, why);
}

void handler_run(struct run *run)
{
        int r;

        if (run->cancelled) {
                run_finish(run, RESULT_CANCELLED, "the operator stops before the handler was started");
                return;
        }
        run->handler.ran = true;
        r = start_handler(run);
        if (r == -E2BIG)
                run_finish_too_large(run);
        else if (r < 0 && r != -ECANCELED)
                cannot_start(run, r);
}

bool handler_end(struct run *run, uint64_t grace_usec)
{
        if (run->handler.done)
                return false;
        if (!run->handler.process)
                return coprocess_cancel(run, grace_usec);
        process_end(run->handler.process, grace_usec);
        return true;
}
