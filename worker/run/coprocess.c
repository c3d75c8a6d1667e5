/* SPDX-License-Identifier: Apache-2.0 */
/* See coprocess.h. */
#include "worker/run/coprocess.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "process/streams.h"
#include "worker/recording.h"
#include "worker/run/arguments.h"
#include "worker/run/environment.h"
#include "worker/run/limits.h"
#include "worker/run/request.h"

#define LOOK_USEC (100 * USEC_PER_MSEC) /* asking what it uses costs as much as a fast run */

struct coprocess {
        struct worker *worker;
        struct worker_watch *watch;
        struct process *process;         /* NULL: not running */
        struct run *run;                 /* under way; NULL: idle */
        struct coprocess_answer *answer; /* of that run */
        bool ending;                     /* was told to end; the next one is started when it is gone */
        char failure[160];               /* why the run fails when the process is gone; "": it does not */
        uint64_t last_id, runs;          /* runs of this process */
        uint64_t answered_id;            /* the newest request that was answered; 0: none */
        char answered_key[512];          /* and its object */
        uint64_t cpu_told;               /* of the time that it has used, what was reported with runs */
        uint64_t looked_at;              /* CLOCK_BOOTTIME: when its usage was last read */
        sd_event_source *timer;          /* of the timeout */
        uint64_t timeout_at;             /* CLOCK_MONOTONIC: of the run that is under way; 0: none */
};

/* ---- the end of a run's request */

/* run: coprocess->run, taken from there; NULL: there is none. */
static void end_run(const struct coprocess *coprocess, const struct run *run, enum coprocess_end end,
                    const char *text, size_t size)
{
        if (!run)
                return;
        coprocess->answer->end = end;
        coprocess->answer->text = strndup(text, size);
        coprocess->answer->size = size;
        fiber_wake(run->fiber);
}

/* ---- what it says */

static void log_line(const char *line, void *userdata)
{
        const struct coprocess *coprocess = userdata;

        if (coprocess->run)
                run_log_line(line, coprocess->run);
        else
                log_write(LOG_INFO, MESSAGE_ID_HANDLER_OUTPUT,
                          LOG_FIELDS({"RECONCILED_WATCH", coprocess->watch->config->name}), "%s", line);
}

/* Whether the line, {"id": 7, ...}, answers the run under way. */
static int take_id(struct span key, struct span value, void *userdata)
{
        if (scan_string_equals(key, "id"))
                *(struct span *)userdata = value;
        return 0;
}

static bool is_answer_to(const char *line, size_t size, uint64_t id)
{
        struct span whole, found = {0};
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, id);
        return scan_value(line, size, &whole) >= 0 && scan_members(whole, take_id, &found) >= 0 &&
               found.start && found.size == strlen(text) && memcmp(found.start, text, found.size) == 0;
}

static bool must_recycle(const struct coprocess *coprocess)
{
        const struct record_watch *config = coprocess->watch->config;

        if (config->recycle_runs > 0 && coprocess->runs >= config->recycle_runs)
                return true;
        return config->recycle_memory > 0 && process_memory(coprocess->process) > config->recycle_memory;
}

/* Reported with a run: the CPU time that was not reported yet, and the peak of the process's memory. */
static void note_usage(struct coprocess *coprocess, struct run *run, const struct process_usage *usage)
{
        run->handler.usage.memory_peak = usage->memory_peak;
        if (usage->cpu_usec <= coprocess->cpu_told)
                return;
        run->handler.usage.cpu_usec = usage->cpu_usec - coprocess->cpu_told;
        coprocess->cpu_told = usage->cpu_usec;
}

static void look_at_usage(struct coprocess *coprocess, struct run *run)
{
        uint64_t now = clock_boottime_usec();
        struct process_usage usage;

        if (now - coprocess->looked_at < LOOK_USEC)
                return;
        coprocess->looked_at = now;
        process_usage(coprocess->process, &usage);
        note_usage(coprocess, run, &usage);
}

static void end_process(struct coprocess *coprocess, uint64_t grace_usec)
{
        coprocess->ending = true;
        process_end(coprocess->process, grace_usec);
}

/* The run ends when its process is gone: until then no other run may work on the object. */
static void end_with_run(struct coprocess *coprocess, uint64_t grace_usec, const char *why)
{
        snprintf(coprocess->failure, sizeof(coprocess->failure), "%s", why);
        coprocess->timeout_at = 0;
        end_process(coprocess, grace_usec);
}

/* Nothing tells which of two answers was meant; the first one was carried out by then. */
static void note_second_answer(const struct coprocess *coprocess)
{
        log_write(LOG_WARNING, MESSAGE_ID_HANDLER_OUTPUT,
                  LOG_FIELDS({"RECONCILED_WATCH", coprocess->watch->config->name},
                             {"RECONCILED_KEY", coprocess->answered_key}),
                  "watch %s: the handler has answered request %" PRIu64
                  ", for %s, a second time: only its first answer counts; mend the handler",
                  coprocess->watch->config->name, coprocess->answered_id, coprocess->answered_key);
}

/* An answer that is too long to be read is only recognised by how it begins. */
static bool is_answer(const struct coprocess *coprocess, const char *line, size_t size, bool cut)
{
        return coprocess->run && !coprocess->ending && line[0] == '{' &&
               (cut || is_answer_to(line, size, coprocess->last_id));
}

static void on_output(const char *line, size_t size, bool cut, void *userdata)
{
        struct coprocess *coprocess = userdata;
        struct run *run = coprocess->run;

        if (size == 0)
                return;
        if (!is_answer(coprocess, line, size, cut)) {
                if (coprocess->answered_id > 0 && line[0] == '{' && !cut &&
                    is_answer_to(line, size, coprocess->answered_id))
                        note_second_answer(coprocess);
                else
                        process_log(coprocess->process, line, size);
                return;
        }
        process_next_run(coprocess->process);
        coprocess->run = NULL;
        coprocess->answered_id = coprocess->last_id;
        snprintf(coprocess->answered_key, sizeof(coprocess->answered_key), "%s", run->order->key);
        coprocess->runs++;
        look_at_usage(coprocess, run);
        coprocess->timeout_at = 0;
        if (must_recycle(coprocess))
                end_process(coprocess, coprocess->watch->config->handler_grace_usec);
        end_run(coprocess, run, cut ? COPROCESS_ANSWERED_TOO_MUCH : COPROCESS_ANSWERED, line,
                cut ? 0 : size);
}

/* ---- its end */

static void fail_run(struct coprocess *coprocess, const char *why)
{
        coprocess->timeout_at = 0;
        end_run(coprocess, TAKE_PTR(coprocess->run), COPROCESS_FAILED, why, strlen(why));
}

static void cannot_start(struct coprocess *coprocess, int status)
{
        bool is_there = coprocess->process || status == -ENOMEM;
        char why[512];

        /* A process that does not listen any more is of no use to the next run either. */
        if (coprocess->process)
                end_process(coprocess, coprocess->watch->config->handler_grace_usec);
        snprintf(why, sizeof(why), "the handler %.300s cannot be started, or does not listen: %s",
                 coprocess->watch->config->handler_exec[0].value, strerror(-status));
        if (is_there) {
                fail_run(coprocess, why);
                return;
        }
        end_run(coprocess, TAKE_PTR(coprocess->run), COPROCESS_NOT_STARTED, why, strlen(why));
}

static void describe_end(const struct record_watch *config, const struct process_result *result, char *end,
                         size_t size)
{
        if (limits_explain(config, result, end, size))
                return;
        if (WIFSIGNALED(result->wait_status))
                snprintf(end, size, "was killed by signal %d", WTERMSIG(result->wait_status));
        else
                snprintf(end, size, "exited with %d", WEXITSTATUS(result->wait_status));
}

static void on_coprocess_done(const struct process_result *result, void *userdata)
{
        struct coprocess *coprocess = userdata;
        struct process *process = TAKE_PTR(coprocess->process);
        bool expected = coprocess->ending, failing = coprocess->failure[0] != '\0';
        char why[640], end[128];

        if (coprocess->run) {
                note_usage(coprocess, coprocess->run, &result->usage);
                coprocess->run->handler.out_of_memory = result->memory_end != MEMORY_ENOUGH;
        }
        if (result->left_over)
                log_line(PROCESS_LEFT_OVER, coprocess);
        describe_end(coprocess->watch->config, result, end, sizeof(end));
        snprintf(why, sizeof(why), "the handler's process %s before it had answered%s%.400s", end,
                 result->last_line[0] ? ": " : "", result->last_line);
        if (failing)
                snprintf(why, sizeof(why), "%s", coprocess->failure);
        coprocess->failure[0] = '\0';
        coprocess->ending = false;
        process_free(process);
        if (coprocess->worker->stopping) {
                fail_run(coprocess, why);
                coprocess->worker->on_part_ended(coprocess->worker);
        } else if (result->start_error < 0 && !failing && coprocess->run) {
                cannot_start(coprocess, result->start_error);
        } else if (expected && !failing && coprocess->run) {
                fiber_wake(coprocess->run->fiber); /* it has waited for the old process to go */
        } else {
                if (!coprocess->run && !expected)
                        log_warning("watch %s: the handler's process %s; the next run starts another one",
                                    coprocess->watch->config->name, end);
                fail_run(coprocess, why);
        }
}

/* ---- a run */

static void time_out(struct coprocess *coprocess)
{
        char why[160], text[64];

        snprintf(why, sizeof(why),
                 "the handler did not answer within its timeout of %s, and its process was ended",
                 duration_format(coprocess->watch->config->handler_timeout_usec, text, sizeof(text)));
        end_with_run(coprocess, coprocess->watch->config->handler_grace_usec, why);
}

static int timer_at(struct coprocess *coprocess, uint64_t usec)
{
        int r = sd_event_source_set_time(coprocess->timer, usec);

        return r < 0 ? r : sd_event_source_set_enabled(coprocess->timer, SD_EVENT_ONESHOT);
}

static int on_handler_time(sd_event_source *source _unused_, uint64_t usec, void *userdata)
{
        struct coprocess *coprocess = userdata;

        if (coprocess->timeout_at > usec)
                return timer_at(coprocess, coprocess->timeout_at);
        if (coprocess->timeout_at > 0)
                time_out(coprocess);
        return 0;
}

/* The timer of an earlier run goes off no later than this run's timeout, and then is set again: a timer
 * for each of many short runs would cost as much as they do. */
static int start_clock(struct coprocess *coprocess)
{
        sd_event *event = coprocess->worker->child->event;
        int enabled = SD_EVENT_OFF;
        uint64_t now;
        int r = sd_event_now(event, CLOCK_MONOTONIC, &now);

        if (r < 0)
                return r;
        coprocess->timeout_at = now + coprocess->watch->config->handler_timeout_usec;
        if (!coprocess->timer)
                return sd_event_add_time(event, &coprocess->timer, CLOCK_MONOTONIC, coprocess->timeout_at, 1,
                                         on_handler_time, coprocess);
        r = sd_event_source_get_enabled(coprocess->timer, &enabled);
        return r < 0 || enabled != SD_EVENT_OFF ? r : timer_at(coprocess, coprocess->timeout_at);
}

static int send_request(struct coprocess *coprocess)
{
        _cleanup_text_ struct text request = TEXT_EMPTY;
        int r = request_build(coprocess->run, ++coprocess->last_id, &request);

        if (r >= 0) {
                recording_request(coprocess->run, &request);
                r = process_write(coprocess->process, &request);
        }
        if (r >= 0)
                r = start_clock(coprocess);
        return r;
}

/* ---- its start */

static int launch(struct coprocess *coprocess)
{
        const struct record_watch *config = coprocess->watch->config;
        _cleanup_free_ char **argument = arguments_build(config);
        char *const *environment = environment_of_watch(coprocess->watch);
        struct process_options options = {
                .argument = argument,
                .environment = environment,
                .grace_usec = config->handler_grace_usec,
                .on_output = on_output,
                .on_line = log_line,
                .on_done = on_coprocess_done,
                .userdata = coprocess,
        };
        int r;

        limits_apply(coprocess->worker, coprocess->watch, &options);
        r = argument && environment
                    ? process_start(coprocess->worker->child->event, &options, &coprocess->process)
                    : -ENOMEM;

        coprocess->runs = coprocess->cpu_told = coprocess->answered_id = 0;
        return r;
}

/* Until there is a process that listens, or the run has ended: an old one that was told to end is waited for. One that died is
 * followed at once: the object that it died over has a backoff of its own, and others must not wait for that. */
static int make_ready(struct coprocess *coprocess) _suspends_
{
        const struct run *run = coprocess->run;

        while (coprocess->process && coprocess->ending && coprocess->run && !run->dropped)
                (void)!fiber_suspend("the end of the former handler process");
        return coprocess->process || !coprocess->run || run->dropped ? 0 : launch(coprocess);
}

static struct coprocess *coprocess_of(struct run *run)
{
        struct worker_watch *watch = run->watch;

        if (!watch->coprocess) {
                watch->coprocess = calloc(1, sizeof(*watch->coprocess));
                if (watch->coprocess) {
                        watch->coprocess->worker = run->worker;
                        watch->coprocess->watch = watch;
                }
        }
        return watch->coprocess;
}

int coprocess_ask(struct run *run, struct coprocess_answer *ret)
{
        struct coprocess *coprocess = coprocess_of(run);
        int r;

        if (!coprocess)
                return -ENOMEM;
        assert(!coprocess->run);
        coprocess->run = run;
        coprocess->answer = ret;
        r = make_ready(coprocess);
        if (r >= 0 && coprocess->run)
                r = send_request(coprocess);
        if (r == -E2BIG)
                end_run(coprocess, TAKE_PTR(coprocess->run), COPROCESS_TOO_LARGE, "", 0);
        else if (r < 0 && coprocess->run && !run->dropped)
                cannot_start(coprocess, r);
        while (coprocess->run && !run->dropped)
                (void)!fiber_suspend("the handler's answer");
        coprocess->run = NULL;
        return run->dropped ? -ECANCELED : 0;
}

void coprocess_answer_done(struct coprocess_answer *answer)
{
        free(answer->text);
}

/* ---- ends from outside */

bool coprocess_cancel(struct run *run, uint64_t grace_usec)
{
        static const char why[] = "the run was cut off because the operator stops";
        struct coprocess *coprocess = run->watch->coprocess;

        if (!coprocess || coprocess->run != run || !coprocess->process)
                return false;
        end_with_run(coprocess, grace_usec, why);
        return true;
}

bool coprocess_is_running(const struct coprocess *coprocess)
{
        return coprocess && coprocess->process;
}

void coprocess_stop(struct coprocess *coprocess, uint64_t grace_usec)
{
        if (coprocess_is_running(coprocess))
                end_process(coprocess, grace_usec);
}

void coprocess_free(struct coprocess *coprocess)
{
        if (!coprocess)
                return;
        process_free(coprocess->process);
        sd_event_source_disable_unref(coprocess->timer);
        free(coprocess);
}
