/* SPDX-License-Identifier: Apache-2.0 */
/* See handler.h. */
#include "worker/run/handler.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "worker/recording.h"
#include "worker/run/coprocess.h"
#include "worker/run/environment.h"
#include "worker/run/launch.h"
#include "worker/run/request.h"
#include "worker/run/together/batch.h"
#include "worker/waiting.h"

#define EXIT_DATAERR  65
#define EXIT_SOFTWARE 70
#define EXIT_TEMPFAIL 75

/* ---- how it ended */

static const char *signal_name(int signal)
{
        const char *name = sigabbrev_np(signal);

        return name ? name : "real-time";
}

static int judge_failure(struct run *run, const struct process_result *result, int status)
{
        const char *separator = result->last_line[0] ? ": " : "";
        char text[160];

        if (result->end == PROCESS_ENDED)
                return run_finish(run, RESULT_CANCELLED, "the handler was asked to end before it was done");
        if (result->end == PROCESS_TIMED_OUT)
                return run_finish(
                        run, RESULT_RETRY,
                        "the handler did not end within its timeout of %s and was ended%s%s",
                        duration_format(run->watch->config->handler_timeout_usec, text, sizeof(text)),
                        separator, result->last_line);
        if (launch_explain_limit(run->watch->config, result, text, sizeof(text)))
                return run_finish(run, RESULT_RETRY, "the handler %s%s%s", text, separator,
                                  result->last_line);
        if (WIFSIGNALED(status))
                return run_finish(run, RESULT_RETRY, "the handler was killed by signal %d (%s)%s%s",
                                  WTERMSIG(status), signal_name(WTERMSIG(status)), separator,
                                  result->last_line);
        if (WEXITSTATUS(status) == EXIT_DATAERR)
                return run_finish(run, RESULT_PERMANENT, "the handler exited with 65 (permanent)%s%s",
                                  separator, result->last_line);
        return run_finish(run, WEXITSTATUS(status) == EXIT_SOFTWARE ? RESULT_STOP : RESULT_RETRY,
                          "the handler exited with %d%s%s%s", WEXITSTATUS(status),
                          WEXITSTATUS(status) == EXIT_TEMPFAIL ? " (try again)" : "", separator,
                          result->last_line);
}

static enum run_result error_result(const struct answer *answer)
{
        return answer->fatal ? RESULT_STOP : answer->permanent ? RESULT_PERMANENT : RESULT_RETRY;
}

/* `text` must live as long as the run. */
static int take_handlers_answer(struct run *run, const char *text, size_t size)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = answer_parse(text, size, &run->answer, &error);

        run->answer_size = size;
        if (r < 0)
                return run_finish(run, r == -ENOMEM ? RESULT_RETRY : RESULT_PERMANENT, "%s",
                                  error_message(&error));
        if (run->answer.error)
                return run_finish(run, error_result(&run->answer), "the handler has failed: %s",
                                  run->answer.error);
        return RUN_WRITES;
}

static int answered_too_much(struct run *run)
{
        return run_finish(run, RESULT_PERMANENT, "the handler's answer is larger than %zu bytes",
                          PROCESS_ANSWER_MAX);
}

/* Neither the handler nor the object is to blame: a volume may be being mounted, or a package upgraded. */
static int not_started(struct run *run, const char *why)
{
        run->handler.ran = false;
        run->handler.not_started = true;
        return run_finish(run, RESULT_UNAVAILABLE, "%s", why);
}

/* ---- a program for this run alone */

static int judge_answer(struct run *run, const struct process_result *result)
{
        const struct text *output = result->output;

        if (output->failed)
                return run_finish(run, RESULT_RETRY, "no memory for the handler's answer");
        if (result->output_error < 0)
                return run_finish(run, RESULT_RETRY, "the handler's answer cannot be read: %s",
                                  strerror(-result->output_error));
        return result->output_too_large
                       ? answered_too_much(run)
                       : take_handlers_answer(run, output->data ? output->data : "", output->size);
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
        case -EDQUOT:
                return " (its user has filled its quota of keys: /proc/key-users)";
        default:
                return "";
        }
}

static int handler_cannot_start(struct run *run, int status)
{
        char why[RUN_MESSAGE_MAX];

        if (status == -E2BIG)
                return run_finish_too_large(run);
        snprintf(why, sizeof(why), "the handler %s cannot be started: %s%s",
                 run->watch->config->handler_exec[0].value, strerror(-status), start_advice(status));
        return status == -ENOMEM ? run_finish(run, RESULT_RETRY, "%s", why) : not_started(run, why);
}

static int judge_end(struct run *run, const struct process_result *result)
{
        int status = result->wait_status;

        if (result->start_error < 0)
                return handler_cannot_start(run, result->start_error);
        run->handler.wait_status = status;
        run->handler.usage = result->usage;
        run->handler.out_of_memory = result->memory_end != MEMORY_ENOUGH;
        recording_answer(run, result->output->data, result->output->size);
        if (result->left_over)
                run_log_line(PROCESS_LEFT_OVER, run);
        /* The answer of a handler that failed is not carried out. */
        return result->end == PROCESS_EXITED && WIFEXITED(status) && WEXITSTATUS(status) == 0
                       ? judge_answer(run, result)
                       : judge_failure(run, result, status);
}

static void on_program_done(const struct process_result *result, void *userdata)
{
        struct run *run = userdata;

        run->handler.result = *result;
        run->handler.done = true;
        fiber_wake(run->fiber);
}

static int start_program(struct run *run)
{
        _cleanup_text_ struct text input = TEXT_EMPTY;
        char *const *environment = environment_build(run);
        struct process_options options = {
                .input = &input,
                .timeout_usec = run->watch->config->handler_timeout_usec,
                .finds_answer = true,
                .on_line = run_log_line,
                .on_done = on_program_done,
                .userdata = run,
        };
        int r = request_build(run, 0, &input);

        if (r >= 0) {
                recording_request(run, &input);
                r = launch_handler(run->worker, run->watch, environment, &options, &run->handler.process);
        }
        if (environment)
                environment_free(run->watch, environment);
        return r;
}

/* However the run is cut off, it ends only when no process of the program is left. */
static int ask_program(struct run *run) _suspends_
{
        int r = start_program(run);

        if (r < 0)
                return handler_cannot_start(run, r);
        while (!run->handler.done && !run->dropped)
                (void)!fiber_suspend("the handler");
        return run->dropped ? -ECANCELED : judge_end(run, &run->handler.result);
}

/* ---- a process that has requests of several runs */

static int judge_exit(struct run *run, const struct asked *answer)
{
        struct process_result result = run->handler.result;

        result.last_line = answer->text ? answer->text : "";
        run->handler.wait_status = result.wait_status;
        return judge_failure(run, &result, result.wait_status);
}

static int take_end(struct run *run, struct asked *answer)
{
        const char *text = answer->text ? answer->text : "no memory to say why";

        run->handler.done = true;
        switch (answer->end) {
        case ASKED_ANSWERED:
                recording_answer(run, answer->text, answer->size);
                run->handler.output = TAKE_PTR(answer->text);
                return run->handler.output
                               ? take_handlers_answer(run, run->handler.output, answer->size)
                               : run_finish(run, RESULT_RETRY, "no memory for the handler's answer");
        case ASKED_TOO_MUCH:
                return answered_too_much(run);
        case ASKED_NOT_STARTED:
                return not_started(run, text);
        case ASKED_TOO_LARGE:
                return run_finish_too_large(run);
        case ASKED_UNREADABLE:
                return run_finish(run, RESULT_PERMANENT, "%s", text);
        case ASKED_LOST:
                return run_finish(run, RESULT_CANCELLED, "%s", text);
        case ASKED_EXITED:
                return judge_exit(run, answer);
        case ASKED_FAILED:
                break;
        }
        return run_finish(run, RESULT_RETRY, "%s", text);
}

static int ask_coprocess(struct run *run) _suspends_
{
        _cleanup_(asked_done) struct asked answer = {0};
        int r = coprocess_ask(run, &answer);

        if (r < 0)
                return run->dropped ? r : handler_cannot_start(run, r);
        return take_end(run, &answer);
}

static int ask_in_batch(struct run *run) _suspends_
{
        _cleanup_(asked_done) struct asked answer = {0};
        int r = batch_ask(run, &answer);

        if (r == -ENOMEM)
                return handler_cannot_start(run, r);
        return r < 0 ? r : take_end(run, &answer);
}

int handler_run(struct run *run)
{
        int r;

        if (run->watch->config->batch_max > 0)
                return ask_in_batch(run);
        r = waiting_turn(run);
        if (r < 0)
                return r;
        run->handler.ran = true;
        r = run->watch->config->handler_kind == HANDLER_EXEC ? ask_program(run) : ask_coprocess(run);
        waiting_turn_over(run);
        return r;
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
