/* SPDX-License-Identifier: Apache-2.0 */
/* See waiting.h. */
#include "worker/waiting.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "kube/notice.h"
#include "worker/run/coprocess.h"

#define PATIENCE_USEC (10 * USEC_PER_MSEC) /* for one handler that others wait for */
#define KEEP_USEC     USEC_PER_MINUTE      /* an answer of a handler waits for so long */
#define LOOK_USEC     USEC_PER_SEC
#define HELD_MAX      ((size_t)16 * 1024 * 1024) /* bytes of objects in runs; with more, no other run begins */
#define TRIM_MIN      ((size_t)512 * 1024)
#define STUCK_USEC    USEC_PER_SEC       /* a request that takes longer holds its run up */
#define OUTSIDE_USEC  (5 * USEC_PER_SEC) /* how long a run that is crowded out waits at least */

/* ---- back to the supervisor */

static int give_back(struct worker *worker, const struct message_run *order)
{
        struct message_done done = {
                .sequence = order->sequence,
                .action = order->action,
                .watch = order->watch,
                .key = order->key,
                .uid = order->uid,
                .result = RESULT_RETURNED,
        };

        return child_send(worker->child, MESSAGE_DONE, &done);
}

static struct message *take_waiting(struct worker *worker, size_t index)
{
        struct message *message = worker->waiting.run[index];

        worker->waiting.count--;
        memmove(worker->waiting.run + index, worker->waiting.run + index + 1,
                (worker->waiting.count - index) * sizeof(struct message *));
        return message;
}

static int return_waiting(struct worker *worker, size_t index)
{
        _cleanup_message_ struct message *message = take_waiting(worker, index);

        return give_back(worker, &message->run);
}

int waiting_return_one(struct worker *worker, uint64_t sequence)
{
        for (size_t i = 0; i < worker->waiting.count; i++)
                if (worker->waiting.run[i]->run.sequence == sequence)
                        return return_waiting(worker, i);
        return -ENOENT;
}

/* The last run goes back first: each one becomes the first of its line. */
static int return_all_waiting(struct worker *worker)
{
        int r = 0;

        while (r >= 0 && worker->waiting.count > 0)
                r = return_waiting(worker, worker->waiting.count - 1);
        return r;
}

/* Unless what it has begun must go on in this worker: a parked attempt has undone something. */
static void send_back(struct run *run)
{
        run->goes_back = run->order->settling[0] == '\0';
        if (run->goes_back && run->gathers)
                fiber_end_sleep(&run->watch->gathering);
        if (run->goes_back && (run->waits_for_turn || run->gathers))
                fiber_wake(run->fiber);
}

int waiting_return(struct worker *worker)
{
        for (struct run *run = worker->runs; run; run = run->next)
                if (!run->at_work && !run->handler.done)
                        send_back(run);
        return return_all_waiting(worker);
}

/* ---- what the supervisor hears of waits */

uint64_t waiting_busy_usec(const struct run *run, uint64_t now)
{
        return now - run->started - (run->worker->config->window > 1 ? run->idle_usec : 0);
}

static bool is_told(const struct run *run)
{
        return run->answer_told ||
               (run->wait_told && !run->handler.done && run->told_keeps_place == run->keeps_place);
}

static int tell_aside(struct run *run)
{
        const struct message_answered answered = {
                .sequence = run->order->sequence,
                .waits = true,
                .answered = run->handler.done,
                .first_of_watch = run->keeps_place,
                .busy_usec = waiting_busy_usec(run, run->idle_since),
        };

        if (is_told(run))
                return 0;
        run->wait_told = true;
        run->answer_told = run->handler.done;
        run->told_keeps_place = run->keeps_place;
        return child_send(run->worker->child, MESSAGE_ANSWERED, &answered);
}

/* Its handler is at work now: the supervisor took the worker for free. */
static int tell_turn(struct run *run)
{
        const struct message_answered turn = {.sequence = run->order->sequence};

        if (!run->wait_told)
                return 0;
        run->wait_told = run->told_keeps_place = false;
        return child_send(run->worker->child, MESSAGE_ANSWERED, &turn);
}

/* The supervisor is told of a run that waits before its handler only if it waits for longer than a moment. After one that its process takes
 * next it would wait for longer, and another worker may have it. */
static int tell_long_waits(struct worker *worker, uint64_t now)
{
        int r = 0;

        for (struct run *run = worker->runs; run && r >= 0; run = run->next) {
                if (!run->is_aside || now - run->idle_since < PATIENCE_USEC)
                        continue;
                if (run->waits_for_turn && !run->keeps_place)
                        send_back(run);
                if (!run->goes_back)
                        r = tell_aside(run);
        }
        return r;
}

/* ---- patience */

/* Whether any run waits for its turn, or for the API server before that, unknown to the supervisor. */
static bool any_waits(const struct worker *worker)
{
        for (const struct run *run = worker->runs; run; run = run->next)
                if (run->gathers || (run->is_aside ? !is_told(run) : run->waits_for_turn))
                        return true;
        return false;
}

/* Since when those that wait have waited for the same: a handler; or the only run that may be in flight; or, as none of those
 * that have begun has the worker, for memory. */
static uint64_t held_up_since(const struct worker *worker)
{
        if (worker->at_handler)
                return worker->at_handler->turn_since;
        if (worker->config->window <= 1)
                return worker->runs ? worker->runs->started : UINT64_MAX;
        return worker->waiting.busy == 0 ? 0 : UINT64_MAX;
}

static int lose_patience(struct worker *worker)
{
        for (struct run *run = worker->runs; run; run = run->next)
                if ((run->waits_for_turn && !run->keeps_place) || (run->gathers && worker->at_handler))
                        send_back(run);
        return return_all_waiting(worker);
}

static int on_patience_over(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct worker *worker = userdata;
        uint64_t now = clock_boottime_usec(), since = held_up_since(worker),
                 lasted = since < now ? now - since : 0;
        int r = 0;

        r = tell_long_waits(worker, now);
        if (worker->waiting.count == 0 && !any_waits(worker))
                return r;
        if (lasted >= PATIENCE_USEC && r >= 0)
                r = lose_patience(worker);
        if (r >= 0 && (lasted < PATIENCE_USEC || any_waits(worker))) {
                r = sd_event_source_set_time_relative(source, lasted < PATIENCE_USEC ? PATIENCE_USEC - lasted
                                                                                     : PATIENCE_USEC);
                if (r >= 0)
                        r = sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        if (r < 0 && !worker->stopping)
                child_fatal(worker->child, EXIT_CODE_SOFTWARE, "runs cannot be given back: %s",
                            strerror(-r));
        return 0;
}

/* The timer runs on beside many short runs, and looks at what there is when it goes off: a timer for each
 * of them would cost as much as they do. */
static int be_patient(struct worker *worker)
{
        int enabled = SD_EVENT_OFF, r;

        if (!worker->waiting.patience)
                return sd_event_add_time_relative(worker->child->event, &worker->waiting.patience,
                                                  CLOCK_MONOTONIC, PATIENCE_USEC, USEC_PER_MSEC,
                                                  on_patience_over, worker);
        r = sd_event_source_get_enabled(worker->waiting.patience, &enabled);
        if (r < 0 || enabled != SD_EVENT_OFF)
                return r;
        r = sd_event_source_set_time_relative(worker->waiting.patience, PATIENCE_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(worker->waiting.patience, SD_EVENT_ONESHOT);
}

/* ---- what runs hold */

/* Texts: the object as it was read and as the handler is given it; children that the server was asked for; the request, with all
 * that it shows; the answer, the patch that is made of it, and its request; and what is recorded. A run has no large tree while it
 * waits (run/answer.h). */
static size_t bytes_of(const struct run *run)
{
        return 2 * run->object.json_size + run->shown.bytes + (run->handler.done ? 0 : run->request_size) +
               3 * run->answer_size + run->record.size;
}

/* The run waits for the server for longer than a moment. */
static bool is_stuck(const struct run *run, uint64_t now)
{
        bool waits = run->is_aside && !run->at_work && !run->gathers && !run->waits_for_turn;

        return run->keeps_answer || (waits && now - run->idle_since >= STUCK_USEC);
}

static size_t stuck_bytes(const struct worker *worker)
{
        uint64_t now = clock_boottime_usec();
        size_t sum = 0;

        for (const struct run *run = worker->runs; run; run = run->next)
                sum += is_stuck(run, now) ? bytes_of(run) : 0;
        return sum;
}

/* What is stuck counts for half of it at most: the others have the other half. */
static size_t held_bytes(const struct worker *worker)
{
        size_t sum = 0, stuck;

        for (const struct run *run = worker->runs; run; run = run->next)
                sum += bytes_of(run);
        if (sum <= HELD_MAX)
                return sum;
        stuck = stuck_bytes(worker);
        return sum - stuck + (stuck < HELD_MAX / 2 ? stuck : HELD_MAX / 2);
}

/* The run has made trees of large texts, and freed them. The C library would keep that memory in each
 * worker, while others need it. */
void waiting_trim(const struct run *run)
{
        if (bytes_of(run) > TRIM_MIN)
                malloc_trim(0);
}

/* Without those that hold more than their share, a full window has room. */
int waiting_go_on(struct run *run)
{
        const struct worker *worker = run->worker;
        size_t own = bytes_of(run), stuck;

        if (own * worker->config->window <= HELD_MAX || run->order->settling[0])
                return 0;
        stuck = stuck_bytes(worker);
        if (stuck <= HELD_MAX / 4)
                return 0;
        run->is_crowded_out = true;
        run->request.held_until = clock_boottime_usec() + OUTSIDE_USEC;
        return run_finish(run, RESULT_UNAVAILABLE,
                          "it would hold %zu bytes beside runs with %zu bytes whose requests the API server "
                          "does not answer",
                          own, stuck);
}

/* ---- beginning */

/* Whether the next run may begin: no other run has the worker, and there is room; a single one may always begin. */
static bool may_begin_run(const struct worker *worker, size_t others, size_t busy_others)
{
        return worker->waiting.count > 0 && busy_others == 0 &&
               (others == 0 || (others < worker->config->window && held_bytes(worker) <= HELD_MAX));
}

static void carry_out_runs(void *userdata);

static int begin_maybe(struct worker *worker)
{
        int r = may_begin_run(worker, worker->waiting.runners, worker->waiting.busy)
                        ? fiber_start(worker->fibers, "runs", carry_out_runs, worker, NULL)
                        : -EAGAIN;

        if (r >= 0) {
                worker->waiting.runners++;
                worker->waiting.busy++;
        }
        /* Without room for one more stack it begins when another run is over. */
        return r == -EAGAIN || (r == -ENOMEM && worker->waiting.runners > 0) ? 0 : r;
}

static void cannot_carry_out(struct worker *worker, int status)
{
        child_fatal(worker->child, EXIT_CODE_SOFTWARE,
                    "a run cannot be carried out, or its end cannot be reported: %s", strerror(-status));
}

static int carry_out_first(struct worker *worker) _suspends_
{
        _cleanup_message_ struct message *message = take_waiting(worker, 0);
        int r = worker->carry_out(worker, &message->run);

        if (r == -ECANCELED || (r < 0 && !worker->stopping))
                return r;
        worker->on_run_ended(worker);
        return 0;
}

/* The fiber: one run after the other, as long as there are any. So runs that end as soon as they begin cost no
 * turn of the loop each. If the fiber was asked to end, another one carries on; one fiber is enough for the
 * runs that begin. */
static void carry_out_runs(void *userdata) _suspends_
{
        struct worker *worker = userdata;
        int r = 0;

        while (r >= 0 && may_begin_run(worker, worker->waiting.runners - 1, worker->waiting.busy - 1) &&
               !fiber_is_ending(fiber_current()))
                r = carry_out_first(worker);
        assert(worker->waiting.runners > 0 && worker->waiting.busy > 0);
        worker->waiting.runners--;
        worker->waiting.busy--;
        if (r >= 0)
                r = begin_maybe(worker);
        if (r < 0 && r != -ECANCELED)
                cannot_carry_out(worker, r);
}

int waiting_take(struct worker *worker, struct message **message)
{
        int r;

        if (worker->stopping)
                return give_back(worker, &(*message)->run);
        if (worker->waiting.count == WORKER_WAITING_MAX)
                return -EPROTO;
        worker->waiting.run[worker->waiting.count++] = TAKE_PTR(*message);
        r = begin_maybe(worker);
        return r < 0 || worker->waiting.runners == 0 ? r : be_patient(worker);
}

/* ---- while the server answers */

/* Others may have the worker. */
static void let_others(struct run *run)
{
        struct worker *worker = run->worker;
        int r = 0;

        run->idle_since = clock_boottime_usec();
        run->is_aside = worker->config->window > 1;
        worker->waiting.busy--;
        if (run->is_aside)
                r = run->handler.done || run->at_work || run->gathers ? tell_aside(run) : be_patient(worker);
        if (r >= 0)
                r = begin_maybe(worker);
        if (r < 0 && !worker->stopping)
                cannot_carry_out(worker, r);
}

static void go_on_waiting(struct run *run)
{
        run->idle_usec += clock_boottime_usec() - run->idle_since;
        run->is_aside = false;
        run->worker->waiting.busy++;
}

/* A quarter of the window is for answers that are kept: the rest is for others. */
static bool may_keep(const struct run *run)
{
        const struct worker *worker = run->worker;
        size_t count = 0, bytes = 0;

        for (const struct run *other = worker->runs; other; other = other->next)
                if (other->keeps_answer && other != run) {
                        count++;
                        bytes += bytes_of(other);
                }
        return run->keeps_answer || (4 * count < worker->config->window && bytes <= HELD_MAX / 4);
}

/* The server will take the request soon, and the handler need not run again for that. The run holds nobody up. */
static bool keeps_answer(const struct run *run, const struct kube_error *error, uint64_t give_up)
{
        bool is_unsent = error->failure == KUBE_FAILURE_HELD || error->http_status == 429;
        uint64_t wait = (uint64_t)(error->retry_after_sec > 0 ? error->retry_after_sec : 0) * USEC_PER_SEC;

        return run->worker->config->window > 1 && run->handler.done && !run->worker->stopping &&
               !run->order->alone && is_unsent && wait > 0 && clock_boottime_usec() + wait <= give_up &&
               may_keep(run);
}

#define HTTP_GATEWAY_TIMEOUT 504

/* Whether the server may carry out a write, or do so later, though nobody has told us. */
static bool is_unanswered(const struct kube_request *request, int status, const struct kube_error *error)
{
        if (!request->method || strcmp(request->method, "GET") == 0)
                return false;
        return status == -ECANCELED ||
               (status >= 0 &&
                (error->failure == KUBE_FAILURE_INTERRUPTED || error->failure == KUBE_FAILURE_TIMEOUT ||
                 error->failure == KUBE_FAILURE_PROTOCOL || error->failure == KUBE_FAILURE_CANCELLED ||
                 error->http_status == HTTP_GATEWAY_TIMEOUT));
}

static int ask_and_wait(struct run *run, const struct kube_request *request,
                        struct kube_answer *ret) _suspends_
{
        int r;

        let_others(run);
        r = kube_ask(run->worker->client, request, ret);
        go_on_waiting(run);
        run->unanswered = run->unanswered || is_unanswered(request, r, &ret->response.error);
        return r;
}

int run_request(struct run *run, const struct kube_request *request, struct kube_answer *ret)
{
        uint64_t give_up = clock_boottime_usec() + KEEP_USEC;
        int r;

        waiting_trim(run);
        r = ask_and_wait(run, request, ret);
        while (r >= 0 && keeps_answer(run, &ret->response.error, give_up)) {
                run->keeps_answer = true;
                (void)notice_throttle(run->worker->child, run->worker->client, &ret->response.error);
                kube_answer_done(ret);
                r = run_sleep(run, LOOK_USEC, "the API server, which asks us to wait (Retry-After)");
                if (r >= 0)
                        r = ask_and_wait(run, request, ret);
        }
        run->keeps_answer = false;
        return r == -ECANCELED ? run_cut_off(run) : r;
}

int run_ask_kind(struct run *run, const char *api_version, const char *kind, struct kube_finding *ret)
{
        int r;

        let_others(run);
        r = kube_ask_kind(run->worker->client, api_version, kind, ret);
        go_on_waiting(run);
        return r;
}

int run_ask_all_versions(struct run *run, const char *api_version, const char *kind,
                         struct kube_finding *ret)
{
        int r;

        let_others(run);
        r = kube_ask_all_versions(run->worker->client, api_version, kind, ret);
        go_on_waiting(run);
        return r;
}

int run_sleep(struct run *run, uint64_t usec, const char *why)
{
        int r;

        let_others(run);
        r = fiber_sleep(usec, why);
        go_on_waiting(run);
        return r;
}

/* ---- the handler's turn */

/* How large requests are shows only when they are built: a process that takes several gets no other one while there is no room. */
static bool lacks_room(const struct run *run)
{
        return asked_at_once(run) > 1 && held_bytes(run->worker) + run->related.size > HELD_MAX;
}

static bool process_is_shared(const struct worker_watch *watch, const struct run *run)
{
        while (run && !(run->at_work && run->is_aside && run->watch == watch))
                run = run->next;
        return run;
}

/* Whether the run waits until its process has answered the requests that it has: the process takes this run
 * alone, or takes no other one at all. A run that has the worker, and waits for a process of its own, is a
 * handler like any other. */
static bool must_wait_for_process(const struct run *run)
{
        const struct run *last = run->worker->at_handler;

        return (coprocess_is_leaving(run->watch->coprocess) && !(last && last->watch == run->watch)) ||
               ((asked_at_once(run) == 1 || lacks_room(run)) &&
                process_is_shared(run->watch, run->worker->runs));
}

/* The first run of its watch that waits for the process: this one, or one that has begun before it and is
 * not overtaken. NULL if none waits. */
static const struct run *next_of_process(const struct run *run)
{
        const struct run *next = run->worker->runs;

        while (next != run &&
               !(next->watch == run->watch && next->waits_for_turn && must_wait_for_process(next)))
                next = next->next;
        return next != run || must_wait_for_process(run) ? next : NULL;
}

/* The first of the runs that wait for the worker alone. */
static struct run *first_in_line(const struct worker *worker)
{
        struct run *run = worker->runs;

        while (run && !(run->waits_for_turn && !next_of_process(run)))
                run = run->next;
        return run;
}

static void wake_first_in_line(const struct worker *worker)
{
        struct run *next = worker->at_handler ? NULL : first_in_line(worker);

        if (next)
                fiber_wake(next->fiber);
}

static size_t count_at_work(const struct run *of)
{
        size_t count = 0;

        for (const struct run *run = of->worker->runs; run; run = run->next)
                count += run->at_work && run->watch == of->watch;
        return count;
}

static bool has_turn(const struct run *run)
{
        return !run->worker->at_handler && first_in_line(run->worker) == run;
}

bool waiting_is_called_off(const struct run *run)
{
        return run->goes_back || run->cancelled || run->dropped || run->worker->stopping;
}

int waiting_call_off(struct run *run)
{
        if (run->dropped)
                return -ECANCELED;
        if (run->order->settling[0])
                return run_finish(run, RESULT_CANCELLED,
                                  "the operator stops before the handler was started");
        return run_finish(run, RESULT_RETURNED, "%s", "");
}

/* A process that takes more holds nobody up. */
static int take_turn(struct run *run)
{
        run->at_work = true;
        if (count_at_work(run) < asked_at_once(run)) {
                let_others(run);
                wake_first_in_line(run->worker);
                return 0;
        }
        run->worker->at_handler = run;
        return tell_turn(run);
}

/* What its process has may take as long as a handler may: the run waits beside others, as if for the API server. The next one of
 * the process does not go back: what would come instead might keep the process from it forever. */
static bool stand_aside(struct run *run)
{
        const struct run *next = next_of_process(run);

        if (!next)
                return false;
        run->keeps_place = run->keeps_place || next == run;
        let_others(run);
        wake_first_in_line(run->worker);
        return true;
}

int waiting_turn(struct run *run)
{
        struct worker *worker = run->worker;
        uint64_t since = clock_boottime_usec(), idle_usec = run->idle_usec;
        bool has, is_aside = false;
        int r = 0;

        run->waits_for_turn = true;
        run->turn_since = since;
        if (!has_turn(run))
                r = be_patient(worker);
        while (r >= 0 && !waiting_is_called_off(run) && !has_turn(run)) {
                is_aside = is_aside || stand_aside(run);
                r = fiber_suspend(is_aside ? "its process, which has requests of others"
                                           : "the end of another run's handler");
        }
        has = r >= 0 && !waiting_is_called_off(run);
        if (is_aside)
                go_on_waiting(run);
        run->waits_for_turn = run->keeps_place = false;
        run->turn_since = clock_boottime_usec();
        run->idle_usec = idle_usec + run->turn_since - since;
        if (!has) {
                wake_first_in_line(worker);
                return waiting_call_off(run);
        }
        r = take_turn(run);
        if (r < 0 && !worker->stopping)
                cannot_carry_out(worker, r);
        return 0;
}

void waiting_turn_over(struct run *run)
{
        struct worker *worker = run->worker;
        struct run *last = worker->at_handler;

        assert(run->at_work);
        run->at_work = false;
        if (run->is_aside)
                go_on_waiting(run);
        if (last && last->watch == run->watch)
                worker->at_handler = NULL;
        if (last && last != run && last->watch == run->watch)
                let_others(last); /* there is room in their process again */
        wake_first_in_line(worker);
}

void waiting_gather(struct run *run)
{
        run->gathers = true;
        let_others(run);
}

void waiting_gathered(struct run *run)
{
        run->gathers = false;
        go_on_waiting(run);
}

int waiting_gather_for(struct run *run, uint64_t usec)
{
        int r;

        waiting_gather(run);
        r = fiber_sleep_at_most(usec, "more runs for its batch", &run->watch->gathering);
        waiting_gathered(run);
        return r;
}

bool waiting_any_at_work(const struct worker *worker)
{
        const struct run *run = worker->runs;

        while (run && !run->at_work)
                run = run->next;
        return run;
}

void waiting_done(struct worker *worker)
{
        while (worker->waiting.count > 0)
                message_free(worker->waiting.run[--worker->waiting.count]);
        sd_event_source_disable_unref(worker->waiting.patience);
}
