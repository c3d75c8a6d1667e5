/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: read the object, prepare, run the handler, carry its answer out, say DONE. This file decides the order, and so
 * calls all the others; none of them calls it.
 */
#include "worker/run/run.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "os/slot.h"
#include "worker/dependents/children.h"
#include "worker/dependents/parked/park.h"
#include "worker/dependents/recall.h"
#include "worker/given.h"
#include "worker/recording.h"
#include "worker/run/handler.h"
#include "worker/run/reading.h"
#include "worker/waiting.h"
#include "worker/write/answer-metrics.h"
#include "worker/write/event.h"
#include "worker/write/status.h"
#include "worker/write/write.h"

/* ---- the end */

static void run_done(struct run *run)
{
        process_free(run->handler.process);
        dependents_free(run->dependents);
        park_forget_resumed(run);
        answer_done(&run->answer);
        store_object_done(&run->object);
        sd_event_source_disable_unref(run->cancel_timer);
        free(run->json);
        free(run->recorded);
        shown_done(&run->shown);
        child_versions_done(&run->versions);
        free(run->excess);
        free(run->handler.output);
        free(run->now.json);
        free(run->now.version);
        free(run->own.version);
        free(run->end.text);
        free(run->parked.plan);
        free(run->parked.given);
        text_done(&run->record);
        run_forget_writes(run);
}

/* When the operator stops, a success still counts, and a plan that was begun stays on record. */
static bool is_kept(enum run_result result)
{
        return result == RESULT_SUCCESS || result == RESULT_SETTLING || result == RESULT_RETURNED;
}

static int report_end(struct run *run)
{
        enum run_result result = run->end.result;
        const char *text = run->end.text ? run->end.text : "no memory for its message";
        struct worker *worker = run->worker;
        _cleanup_text_ struct text kinds = TEXT_EMPTY;
        uint64_t now = clock_boottime_usec();
        bool kinds_known = recall_kinds(run, &kinds) >= 0;
        int r;
        struct message_done done = {
                .sequence = run->order->sequence,
                .action = run->action,
                .watch = run->order->watch,
                .key = run->order->key,
                .uid = run->order->uid,
                .result = (run->cancelled && !is_kept(result) ? RESULT_CANCELLED : result),
                .fingerprint = run->fingerprint,
                .resource_version = run->object.resource_version,
                .own_fingerprint = run->changed ? 0 : run->own.fingerprint,
                .changed = run->changed,
                .own_resource_version = run->own.version,
                .known_version = run->own.known_version,
                .related = run->related.fingerprint,
                .kinds = kinds.data,
                .kinds_known = kinds_known,
                .settling = run->parked.plan,
                .settle_after_usec = run->parked.after_usec,
                .held_usec = run->request.held_until > now ? run->request.held_until - now : 0,
                .requeue_after_usec = result == RESULT_SUCCESS
                                              ? answer_requeue_after(&run->answer, clock_realtime_usec())
                                      : result == RESULT_RETRY ? run->answer.retry_after_usec
                                                               : 0,
                .message = text,
                .duration_usec = now - run->started,
                .busy_usec = waiting_busy_usec(run, now),
                .handler_cpu_usec = run->handler.usage.cpu_usec,
                .handler_memory_peak = run->handler.usage.memory_peak,
                .handler_out_of_memory = run->handler.out_of_memory,
                .wait_status = (uint64_t)(unsigned)run->handler.wait_status,
                .http_status = (uint64_t)run->request.http_status,
                .handler_ran = run->handler.ran,
                .unanswered = run->unanswered,
                .handler_failed = run->handler.failed,
                .not_started = run->handler.not_started,
                .write = run->writes.item,
                .write_count = run->writes.count,
                .writes_left_out = run->writes.left_out,
                .given_version = result == RESULT_SUCCESS ? given_keep(run) : "",
        };

        if (result != RESULT_RETURNED) {
                recorder_run_ended(worker->recorder, run, result, text);
                recording_end(run, done.result, text);
        }
        r = measured_tell(run);
        return r < 0 ? r : child_send(worker->child, MESSAGE_DONE, &done);
}

/* ---- the order */

static int ask_handler(struct run *run) _suspends_
{
        int r = children_look(run);

        return r < 0 ? r : handler_run(run);
}

static int go_on_with(struct run *run, int next)
{
        int r = waiting_go_on(run);

        return r < 0 ? r : next;
}

static void carry_out(struct run *run) _suspends_
{
        int next = reading_begin(run);

        if (next == RUN_RESUMES)
                next = children_resume(run);
        if (next == RUN_ATTEMPTS)
                next = reading_related(run);
        if (next == RUN_PREPARES)
                next = go_on_with(run, next);
        if (next == RUN_PREPARES)
                next = write_prepare(run);
        if (next == RUN_ASKS) {
                next = ask_handler(run);
                run->handler.failed = run->handler.ran && next != RUN_WRITES;
        }
        if (next == RUN_WRITES)
                next = go_on_with(run, next);
        if (next == RUN_WRITES)
                next = write_answer(run);
        assert(next < 0 && (run->end.is_set || run->dropped));
}

static void begin(struct run *run)
{
        struct run **end = &run->worker->runs;

        while (*end)
                end = &(*end)->next;
        *end = run;
        run->worker->begun++;
        slot_set(run->worker->slot, SLOT_READING, run->order->key, run->order->uid);
}

static void leave(struct run *run)
{
        struct run **place = &run->worker->runs;

        while (*place != run)
                place = &(*place)->next;
        *place = run->next;
        slot_clear(run->worker->slot);
}

int run_carry_out(struct worker *worker, const struct message_run *order)
{
        _cleanup_(run_done) struct run run = {
                .worker = worker,
                .watch = worker_watch_find(worker, order->watch),
                .fiber = fiber_current(),
                .order = order,
                .action = order->action,
                .started = clock_boottime_usec(),
        };
        int r = -ECANCELED;

        if (!run.watch)
                return -EPROTO;
        begin(&run);
        carry_out(&run);
        if (!run.dropped)
                status_tell_failure(&run); /* in the object's status first */
        if (!run.dropped)
                r = report_end(&run);
        waiting_trim(&run);
        leave(&run);
        return r;
}

void run_drop(struct run *run)
{
        run->dropped = true;
        fiber_cancel(run->fiber);
}

static int on_cancel_overdue(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct run *run = userdata;

        run_cut_off(run);
        fiber_cancel(run->fiber);
        return 0;
}

void run_cancel(struct run *run, uint64_t grace_usec)
{
        uint64_t at = clock_boottime_usec() + grace_usec;

        run->cancelled = true;
        fiber_ask_to_end(run->fiber);
        if (handler_end(run, grace_usec))
                return;
        /* A request in flight may still end; no other one, and no handler, is begun. */
        if (run->cancel_at > 0 && run->cancel_at <= at)
                return;
        run->cancel_at = at;
        run->cancel_timer = sd_event_source_disable_unref(run->cancel_timer);
        if (sd_event_add_time_relative(run->worker->child->event, &run->cancel_timer, CLOCK_MONOTONIC,
                                       grace_usec, 1, on_cancel_overdue, run) < 0)
                on_cancel_overdue(NULL, 0, run);
}
