/* SPDX-License-Identifier: Apache-2.0 */
/* See coprocess.h. */
#include "worker/run/coprocess.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "process/streams.h"
#include "worker/recording.h"
#include "worker/run/environment.h"
#include "worker/run/launch.h"
#include "worker/run/request.h"

#define CUT_OFF "the run was cut off because the operator stops"

#define UNCLEAR                                                                                                                       \
        "the handler has written a line that begins with '{' and is no answer to one of its requests (see the log): its exit status " \
        "0 says nothing of the others"

#define TOO_LONG                                                                                            \
        "the handler wrote an answer that is too long and does not begin with its id, so nobody knows whose it is"

#define LOOK_USEC (100 * USEC_PER_MSEC) /* asking what it uses costs as much as a fast run */

struct coprocess {
        struct worker *worker;
        struct worker_watch *watch;
        struct process *process; /* NULL: not running */
        struct asked *first;     /* requests that it has, and requests that it will get */
        bool retiring;           /* gets no other request, and ends when it has answered those that it has */
        bool ending;             /* was told to end; the next one is started when it is gone */
        bool unclear;  /* it has written what begins as an answer, and is not the answer to one request */
        bool nameless; /* likewise, a line that is too long and cannot be assigned to a request */
        char failure[160];      /* why it was ended over its requests; "": it was not */
        uint64_t given, runs;   /* of this process: requests that it got, and has answered */
        uint64_t answered_id;   /* the newest request that was answered; 0 if there is none, or twice */
        char answered_key[512]; /* and its object */
        uint64_t cpu_told;      /* of the time that it has used, what was reported with runs */
        uint64_t looked_at;     /* CLOCK_BOOTTIME: when its usage was last read */
        sd_event_source *timer; /* of the timeouts */
};

/* ---- its requests */

static struct asked *first_sent(const struct coprocess *coprocess)
{
        struct asked *asked = coprocess->first;

        while (asked && asked->id == 0)
                asked = asked->next;
        return asked;
}

/* NULL: it has none, or several. */
static struct run *only_run(const struct coprocess *coprocess)
{
        const struct asked *asked = first_sent(coprocess);

        return asked && asked_count_sent(coprocess->first) == 1 ? asked->run : NULL;
}

static void end_asked(struct coprocess *coprocess, struct asked *asked, enum asked_end end, const char *text)
{
        asked_end(&coprocess->first, asked, end, text, strlen(text));
}

static bool is_of_batch(const struct coprocess *coprocess)
{
        return coprocess->watch->config->batch_max > 0;
}

/* Whether its output before it answers is about the only request that it has: no thread of it has any other. */
static bool speaks_of_one(const struct coprocess *coprocess)
{
        return coprocess->given == 1 || (!is_of_batch(coprocess) && coprocess->watch->config->parallel <= 1);
}

/* ---- what it says */

static void log_line(const char *line, void *userdata)
{
        const struct coprocess *coprocess = userdata;
        /* The line of a batch may be about a request that was answered. */
        struct run *run = is_of_batch(coprocess) && coprocess->runs > 0 ? NULL : only_run(coprocess);

        if (run)
                run_log_line(line, run);
        else
                log_write(LOG_INFO, MESSAGE_ID_HANDLER_OUTPUT,
                          LOG_FIELDS({"RECONCILED_WATCH", coprocess->watch->config->name}), "%s", line);
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

/* Its runs end when it is gone: until then no other run may work on their objects. */
static void end_with_runs(struct coprocess *coprocess, uint64_t grace_usec, const char *why)
{
        snprintf(coprocess->failure, sizeof(coprocess->failure), "%s", why);
        end_process(coprocess, grace_usec);
}

/* Which of two answers was meant is unknown; the first was carried out. A third is a line like any other. */
static void note_second_answer(struct coprocess *coprocess)
{
        log_write(LOG_WARNING, MESSAGE_ID_HANDLER_OUTPUT,
                  LOG_FIELDS({"RECONCILED_WATCH", coprocess->watch->config->name},
                             {"RECONCILED_KEY", coprocess->answered_key}),
                  "watch %s: the handler has answered request %" PRIu64
                  ", for %s, a second time: only its first answer counts; mend the handler",
                  coprocess->watch->config->name, coprocess->answered_id, coprocess->answered_key);
        coprocess->answered_id = 0;
}

static void take_output(struct coprocess *coprocess, const char *line, size_t size, bool cut)
{
        if (coprocess->answered_id > 0 && line[0] == '{' && !cut &&
            asked_is_answer_to(line, size, coprocess->answered_id))
                note_second_answer(coprocess);
        else
                process_log(coprocess->process, line, size);
}

static void retire_maybe(struct coprocess *coprocess)
{
        coprocess->retiring = coprocess->retiring || must_recycle(coprocess);
        if (coprocess->retiring && !first_sent(coprocess))
                end_process(coprocess, coprocess->watch->config->handler_grace_usec);
}

/* By its requests. What a call leaves without an answer is settled when it ends, which is soon. */
static bool is_waited_for(const struct coprocess *coprocess)
{
        return !is_of_batch(coprocess) && !coprocess->ending && first_sent(coprocess);
}

static void on_output(const char *line, size_t size, bool cut, void *userdata)
{
        struct coprocess *coprocess = userdata;
        struct asked *asked;

        if (size == 0)
                return;
        asked = coprocess->ending ? NULL
                                  : asked_find(coprocess->first, line, size, cut, coprocess->given == 1);
        coprocess->unclear =
                coprocess->unclear || (line[0] == '{' && (!asked || cut || !asked_is_whole(line, size)));
        if (!asked) {
                take_output(coprocess, line, size, cut);
                if (cut && line[0] == '{' && is_waited_for(coprocess)) {
                        coprocess->nameless = true;
                        end_with_runs(coprocess, coprocess->watch->config->handler_grace_usec, TOO_LONG);
                }
                return;
        }
        process_next_run(coprocess->process);
        coprocess->answered_id = asked->id;
        snprintf(coprocess->answered_key, sizeof(coprocess->answered_key), "%s", asked->run->order->key);
        coprocess->runs++;
        look_at_usage(coprocess, asked->run);
        asked_note_answer(asked->run);
        asked_end(&coprocess->first, asked, cut ? ASKED_TOO_MUCH : ASKED_ANSWERED, line, cut ? 0 : size);
        retire_maybe(coprocess);
}

/* ---- its end */

static const char *start_failure(const struct coprocess *coprocess, int status, char *why, size_t size)
{
        snprintf(why, size, "the handler %.300s cannot be started, or does not listen: %s",
                 coprocess->watch->config->handler_exec[0].value, strerror(-status));
        return why;
}

static void process_cannot_start(struct coprocess *coprocess, struct asked *asked, int status)
{
        bool is_there = coprocess->process || status == -ENOMEM;
        char why[512];

        /* A process that does not listen any more is of no use to the next run either. */
        if (coprocess->process)
                end_process(coprocess, coprocess->watch->config->handler_grace_usec);
        if (coprocess->process && first_sent(coprocess)) {
                asked->id = UINT64_MAX; /* it goes the way of the others; no answer has this */
                return;
        }
        start_failure(coprocess, status, why, sizeof(why));
        end_asked(coprocess, asked, is_there ? ASKED_FAILED : ASKED_NOT_STARTED, why);
}

static void describe_end(const struct record_watch *config, const struct process_result *result, char *end,
                         size_t size)
{
        if (launch_explain_limit(config, result, end, size))
                return;
        if (WIFSIGNALED(result->wait_status))
                snprintf(end, size, "was killed by signal %d", WTERMSIG(result->wait_status));
        else
                snprintf(end, size, "exited with %d", WEXITSTATUS(result->wait_status));
}

static void explain_timeout(const struct coprocess *coprocess, char *why, size_t size)
{
        char text[64];

        snprintf(why, size, "the handler did not answer within its timeout of %s, and its process was ended",
                 duration_format(coprocess->watch->config->handler_timeout_usec, text, sizeof(text)));
}

static void none_started(struct coprocess *coprocess, int status)
{
        char why[512];
        struct asked *asked;

        start_failure(coprocess, status, why, sizeof(why));
        while ((asked = first_sent(coprocess)))
                end_asked(coprocess, asked, status == -ENOMEM ? ASKED_FAILED : ASKED_NOT_STARTED, why);
}

static bool is_cut_off(const struct coprocess *coprocess)
{
        for (const struct asked *asked = coprocess->first; asked; asked = asked->next)
                if (asked->id > 0 && asked->run->cancelled)
                        return true;
        return false;
}

static bool ended_well(const struct process_result *result)
{
        return result->end == PROCESS_EXITED && WIFEXITED(result->wait_status) &&
               WEXITSTATUS(result->wait_status) == 0;
}

/* Its exit status is the result of the requests that it has not answered; 0 says nothing about them. */
static void settle_batch(struct coprocess *coprocess, const struct process_result *result, const char *why)
{
        struct run *run = only_run(coprocess);
        struct asked *asked;

        if (run)
                run->handler.result = *result;
        /* The last line may be about an object that was answered, perhaps of another tenant. */
        if (!ended_well(result))
                asked_settle(&coprocess->first, !is_cut_off(coprocess), ASKED_EXITED, why,
                             coprocess->given == 1 ? result->last_line : "");
        else if (coprocess->unclear)
                asked_settle_unclear(&coprocess->first, coprocess->given > 1, UNCLEAR);
        while ((asked = first_sent(coprocess))) {
                asked_note_answer(asked->run);
                end_asked(coprocess, asked, ASKED_ANSWERED, "");
        }
}

static void explain(const struct coprocess *coprocess, const struct process_result *result,
                    const char *ended, char *why, size_t size)
{
        if (coprocess->failure[0])
                snprintf(why, size, "%s", coprocess->failure);
        else if (result->end == PROCESS_TIMED_OUT)
                explain_timeout(coprocess, why, size);
        else
                snprintf(why, size, "the handler's process %s before it had answered", ended);
}

/* Ends the requests that it has not answered when it is gone. `ended`: how it ended. */
static void settle_all(struct coprocess *coprocess, const struct process_result *result, const char *ended)
{
        bool failing = coprocess->failure[0] != '\0';
        char why[256];

        explain(coprocess, result, ended, why, sizeof(why));
        if (result->start_error < 0 && !failing && !coprocess->worker->stopping)
                none_started(coprocess, result->start_error);
        else if (coprocess->nameless && !is_cut_off(coprocess))
                asked_settle_unclear(&coprocess->first, true, why);
        else if (is_of_batch(coprocess) && !failing)
                settle_batch(coprocess, result, why);
        else
                asked_settle(&coprocess->first, !is_cut_off(coprocess), ASKED_FAILED, why,
                             failing || !speaks_of_one(coprocess) ? "" : result->last_line);
}

/* When there is no run that it concerns. */
static void tell_end(const struct coprocess *coprocess, const struct process_result *result,
                     const char *ended)
{
        if (!is_of_batch(coprocess))
                log_warning("watch %s: the handler's process %s; the next run starts another one",
                            coprocess->watch->config->name, ended);
        else if (!ended_well(result))
                log_warning("watch %s: the handler's process %s after it had answered all its requests",
                            coprocess->watch->config->name,
                            result->end == PROCESS_TIMED_OUT ? "did not end within its timeout" : ended);
}

/* Wakes runs that wait for the old process to end; when the operator stops, there is no new one. */
static void wake_unsent(struct coprocess *coprocess)
{
        struct asked *asked = coprocess->first;

        while (asked) {
                struct asked *next = asked->next;

                if (coprocess->worker->stopping)
                        end_asked(coprocess, asked, ASKED_LOST, CUT_OFF);
                else
                        fiber_wake(asked->run->fiber);
                asked = next;
        }
}

/* Wakes the runs that have waited for it to go. */
static void wake_line(const struct coprocess *coprocess)
{
        for (struct run *run = coprocess->worker->runs; run; run = run->next)
                if (run->watch == coprocess->watch && run->waits_for_turn)
                        fiber_wake(run->fiber);
}

static void on_coprocess_done(const struct process_result *result, void *userdata)
{
        struct coprocess *coprocess = userdata;
        struct process *process = TAKE_PTR(coprocess->process);
        struct run *run = only_run(coprocess);
        char ended[128];

        if (run || coprocess->watch->leader)
                note_usage(coprocess, run ? run : coprocess->watch->leader, &result->usage);
        if (run)
                run->handler.out_of_memory = result->memory_end != MEMORY_ENOUGH;
        if (result->left_over)
                log_line(PROCESS_LEFT_OVER, coprocess);
        describe_end(coprocess->watch->config, result, ended, sizeof(ended));
        if (!first_sent(coprocess) && !coprocess->ending && !coprocess->worker->stopping)
                tell_end(coprocess, result, ended);
        settle_all(coprocess, result, ended);
        coprocess->failure[0] = '\0';
        coprocess->ending = coprocess->retiring = false;
        process_free(process);
        wake_unsent(coprocess);
        wake_line(coprocess);
        if (coprocess->watch->leader)
                fiber_wake(coprocess->watch->leader->fiber);
        if (coprocess->worker->stopping)
                coprocess->worker->on_part_ended(coprocess->worker);
}

/* ---- a run */

static void time_out(struct coprocess *coprocess)
{
        char why[160];

        explain_timeout(coprocess, why, sizeof(why));
        end_with_runs(coprocess, coprocess->watch->config->handler_grace_usec, why);
}

static int timer_at(struct coprocess *coprocess, uint64_t usec)
{
        int r = sd_event_source_set_time(coprocess->timer, usec);

        return r < 0 ? r : sd_event_source_set_enabled(coprocess->timer, SD_EVENT_ONESHOT);
}

/* Each request has its own timeout; the first one began first. */
static int on_handler_time(sd_event_source *source _unused_, uint64_t usec, void *userdata)
{
        struct coprocess *coprocess = userdata;
        const struct asked *asked = coprocess->ending ? NULL : first_sent(coprocess);

        if (asked && asked->timeout_at > usec)
                return timer_at(coprocess, asked->timeout_at);
        if (asked)
                time_out(coprocess);
        return 0;
}

/* The timer of an earlier run goes off no later than this run's timeout, and then is set again: a timer
 * for each of many short runs would cost as much as they do. */
static int start_clock(struct coprocess *coprocess, struct asked *asked)
{
        sd_event *event = coprocess->worker->child->event;
        int enabled = SD_EVENT_OFF;
        uint64_t now;
        int r = sd_event_now(event, CLOCK_MONOTONIC, &now);

        if (r < 0)
                return r;
        asked->timeout_at = now + coprocess->watch->config->handler_timeout_usec;
        if (!coprocess->timer)
                return sd_event_add_time(event, &coprocess->timer, CLOCK_MONOTONIC, asked->timeout_at, 1,
                                         on_handler_time, coprocess);
        r = sd_event_source_get_enabled(coprocess->timer, &enabled);
        return r < 0 || enabled != SD_EVENT_OFF ? r : timer_at(coprocess, asked->timeout_at);
}

/* A number of at most 15 digits, which every language can hold and nobody can guess: what a handler prints
 * about an object must not answer the request of another one. 0: there is no random number. */
static uint64_t new_id(void)
{
        uint64_t random;

        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return 0;
        return (random >> 15) | 1;
}

static int send_request(struct coprocess *coprocess, struct asked *asked)
{
        _cleanup_text_ struct text request = TEXT_EMPTY;
        uint64_t id = new_id();
        int r = id > 0 ? request_build(asked->run, id, &request) : -EIO;

        if (r >= 0) {
                recording_request(asked->run, &request);
                process_forget_last_line(coprocess->process);
                r = process_write(coprocess->process, &request);
        }
        if (r >= 0)
                r = start_clock(coprocess, asked);
        if (r < 0)
                return r;
        asked->id = id;
        coprocess->given++;
        return 0;
}

/* ---- its start */

/* input: all that a batch gets; NULL: it gets more, line by line. */
static int launch(struct coprocess *coprocess, struct text *input)
{
        struct worker_watch *watch = coprocess->watch;
        struct process_options options = {
                .input = input,
                .input_ends = input != NULL,
                .timeout_usec = input ? watch->config->handler_timeout_usec : 0,
                .on_output = on_output,
                .on_line = log_line,
                .on_done = on_coprocess_done,
                .userdata = coprocess,
        };

        coprocess->runs = coprocess->cpu_told = coprocess->answered_id = 0;
        coprocess->unclear = coprocess->nameless = false;
        return launch_handler(coprocess->worker, watch, environment_of_watch(watch), &options,
                              &coprocess->process);
}

/* Waits until a process listens, or the run has ended. One that was told to end is waited for; one that died
 * is followed at once: the object that it died over has a backoff, and others must not wait for that. */
static int make_ready(struct coprocess *coprocess, const struct asked *asked) _suspends_
{
        const struct run *run = asked->run;

        if (coprocess->process &&
            (process_has_ended(coprocess->process) || (coprocess->given > 0 && asked_is_feared(run)))) {
                coprocess->retiring = true;
                retire_maybe(coprocess);
        }
        while (coprocess_is_leaving(coprocess) && !asked->is_over && !run->dropped)
                (void)!fiber_suspend("the end of the former handler process");
        if (coprocess->process || asked->is_over || run->dropped)
                return 0;
        coprocess->given = 0;
        return run->cancelled ? -ECANCELED : launch(coprocess, NULL);
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

static int ask_process(struct coprocess *coprocess, struct asked *asked) _suspends_
{
        int r = make_ready(coprocess, asked);

        return r < 0 || asked->is_over || asked->run->dropped ? r : send_request(coprocess, asked);
}

int coprocess_join(struct run *run, struct asked *asked)
{
        struct coprocess *coprocess = coprocess_of(run);

        if (!coprocess)
                return -ENOMEM;
        asked->run = run;
        asked_add(&coprocess->first, asked);
        return 0;
}

void coprocess_leave(struct run *run, const struct asked *asked)
{
        asked_remove(&run->watch->coprocess->first, asked);
}

int coprocess_ask(struct run *run, struct asked *asked)
{
        struct coprocess *coprocess;
        int r = coprocess_join(run, asked);

        if (r < 0)
                return r;
        coprocess = run->watch->coprocess;
        r = ask_process(coprocess, asked);
        if (r == -E2BIG)
                end_asked(coprocess, asked, ASKED_TOO_LARGE, "");
        else if (r == -ECANCELED && !run->dropped)
                end_asked(coprocess, asked, ASKED_LOST, CUT_OFF);
        else if (r < 0 && !run->dropped)
                process_cannot_start(coprocess, asked, r);
        while (!asked->is_over && !run->dropped)
                (void)!fiber_suspend("the handler's answer");
        coprocess_leave(run, asked);
        return run->dropped ? -ECANCELED : 0;
}

/* ---- a batch */

size_t coprocess_count_waiting(const struct coprocess *coprocess)
{
        return asked_count_unsent(coprocess->first);
}

void coprocess_wake_waiting(const struct coprocess *coprocess)
{
        for (const struct asked *asked = coprocess->first; asked; asked = asked->next)
                fiber_wake(asked->run->fiber);
}

/* All requests of a batch together are no larger than a single one may be. */
static bool has_room(const struct coprocess *coprocess, const struct text *input, const struct text *request)
{
        uint64_t max = coprocess->watch->config->request_max;

        return input->size == 0 || max == 0 || input->size + request->size <= max;
}

static int append_request(struct text *input, struct text *request)
{
        if (input->size > 0)
                return text_append(input, request->data, request->size);
        *input = *request;
        *request = TEXT_EMPTY;
        return 0;
}

/* False: it has to wait for the next batch. */
static bool hand_over(struct coprocess *coprocess, struct asked *asked, struct text *input)
{
        _cleanup_text_ struct text request = TEXT_EMPTY;
        uint64_t id = new_id();
        int r = id > 0 ? request_build(asked->run, id, &request) : -EIO;

        if (r >= 0 && !has_room(coprocess, input, &request))
                return false;
        if (r >= 0) {
                recording_request(asked->run, &request);
                r = append_request(input, &request);
        }
        if (r == -E2BIG)
                end_asked(coprocess, asked, ASKED_TOO_LARGE, "");
        else if (r < 0 && !asked->run->dropped)
                process_cannot_start(coprocess, asked, r);
        if (r < 0)
                return true;
        asked->id = id;
        coprocess->given++;
        asked->run->handler.ran = true;
        asked->run->gathers = false; /* it cannot go back any more */
        return true;
}

static void gather_requests(struct coprocess *coprocess, const struct run *leader, struct text *input)
{
        size_t most = asked_together(leader);
        struct asked *asked = coprocess->first, *next;
        bool has_room = true;

        coprocess->given = 0;

        while (asked && asked->run != leader)
                asked = asked->next;
        if (asked)
                has_room = hand_over(coprocess, asked, input);
        for (asked = coprocess->first; asked && has_room && asked_count_sent(coprocess->first) < most;
             asked = next) {
                next = asked->next;
                if (asked->id == 0 && asked_together(asked->run) > 1)
                        has_room = hand_over(coprocess, asked, input);
        }
}

void coprocess_start_batch(struct run *leader)
{
        struct coprocess *coprocess = leader->watch->coprocess;
        _cleanup_text_ struct text input = TEXT_EMPTY;
        int r;

        assert(!coprocess->process && !first_sent(coprocess));
        gather_requests(coprocess, leader, &input);
        r = first_sent(coprocess) ? launch(coprocess, &input) : 0;
        if (r < 0)
                none_started(coprocess, r);
}

/* ---- ends from outside */

static bool has_request(const struct coprocess *coprocess, const struct run *run)
{
        for (const struct asked *asked = coprocess->first; asked; asked = asked->next)
                if (asked->run == run && asked->id > 0)
                        return true;
        return false;
}

bool coprocess_cancel(struct run *run, uint64_t grace_usec)
{
        struct coprocess *coprocess = run->watch->coprocess;

        if (!coprocess || !coprocess->process ||
            !(has_request(coprocess, run) || coprocess->watch->leader == run))
                return false;
        end_with_runs(coprocess, grace_usec, CUT_OFF);
        return true;
}

bool coprocess_is_running(const struct coprocess *coprocess)
{
        return coprocess && coprocess->process;
}

bool coprocess_is_leaving(const struct coprocess *coprocess)
{
        return coprocess_is_running(coprocess) && (coprocess->ending || coprocess->retiring);
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
