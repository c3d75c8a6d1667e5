/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run: read, start the handler, judge how it ended, carry its answer out, say DONE. Each step ends in
 * the next or in run_finish(), exactly once.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "object/fingerprint.h"
#include "os/file-stamp.h"
#include "os/file.h"
#include "store/suspect.h"
#include "worker/dependents/dependents.h"
#include "worker/recording.h"
#include "worker/run/coprocess.h"
#include "worker/write/event.h"
#include "worker/write/sibling.h"
#include "worker/write/status.h"

#define MESSAGE_MAX   2048
#define RECORDED_MAX  ((size_t)64 * 1024 * 1024)
#define EXIT_DATAERR  65
#define EXIT_SOFTWARE 70
#define EXIT_TEMPFAIL 75

void run_free(struct run *run)
{
        if (!run)
                return;
        process_free(run->process);
        kube_transfer_cancel(run->transfer);
        kube_discovery_cancel(run->discovery);
        dependents_free(run->dependents);
        park_forget_resumed(run);
        sibling_done(run);
        answer_done(&run->answer);
        store_object_done(&run->object);
        sd_event_source_disable_unref(run->cancel_timer);
        sd_event_source_disable_unref(run->conflict_timer);
        free(run->json);
        free(run->recorded);
        free(run->related);
        free(run->excess);
        free(run->output);
        free(run->current);
        free(run->current_version);
        free(run->own_version);
        cJSON_Delete(run->status);
        free(run->status_text);
        free(run->told);
        free(run->settling);
        message_free(run->message);
        free(run);
}

/* What is done stays done, and what is to be undone stays on record, also when the operator stops. */
static bool is_kept(enum run_result result)
{
        return result == RESULT_SUCCESS || result == RESULT_SETTLING;
}

uint64_t arguments_stamp(const struct record_watch *config)
{
        uint64_t stamp = 0;

        for (size_t i = 0; i < config->handler_exec_count; i++)
                stamp = file_stamp_add_argument(stamp, config->handler_exec[i].value);
        return stamp;
}

/* What was replaced while it ran may have been read by it (a script) or not. */
static uint64_t stamp_of(const struct run *run, enum run_result result)
{
        if (!run->handler_ran || run->handler_stamp == 0)
                return 0;
        return result == RESULT_SUCCESS || arguments_stamp(run->watch->config) == run->handler_stamp
                       ? run->handler_stamp
                       : FILE_STAMP_SEVERAL;
}

static void run_end(struct run *run, enum run_result result, const char *text)
{
        struct worker *worker = run->worker;
        _cleanup_text_ struct text kinds = TEXT_EMPTY;
        uint64_t now = clock_boottime_usec();
        bool kinds_known = run->dependents && recall_kinds(run->dependents, &kinds) >= 0;
        struct message_done done = {
                .sequence = run->order->sequence,
                .action = (uint64_t)run->action,
                .watch = run->order->watch,
                .key = run->order->key,
                .uid = run->order->uid,
                .result = (uint64_t)(run->cancelled && !is_kept(result) ? RESULT_CANCELLED : result),
                .fingerprint = run->fingerprint,
                .resource_version = run->object.resource_version,
                .own_fingerprint = run->changed ? 0 : run->own_fingerprint,
                .changed = run->changed,
                .own_resource_version = run->own_version,
                .known_version = run->known_version,
                .related = run->related_fingerprint,
                .kinds = kinds.data,
                .kinds_known = kinds_known,
                .settling = run->settling,
                .settle_after_usec = run->settle_after_usec,
                .held_usec = run->held_until > now ? run->held_until - now : 0,
                .requeue_after_usec = result == RESULT_SUCCESS ? run->answer.requeue_after_usec : 0,
                .message = text,
                .duration_usec = now - run->started,
                .handler_cpu_usec = run->usage.cpu_usec,
                .handler_memory_peak = run->usage.memory_peak,
                .handler_out_of_memory = run->out_of_memory,
                .wait_status = (uint64_t)(unsigned)run->wait_status,
                .http_status = (uint64_t)run->http_status,
                .heir = run->heir,
                .handler_ran = run->handler_ran,
                .handler_stamp = stamp_of(run, result),
                .not_started = run->not_started,
        };
        int r;

        recorder_run_ended(worker->recorder, run, result, text);
        recording_end(run, (enum run_result)done.result, text);
        r = child_send(worker->child, MESSAGE_DONE, &done);
        worker->run = NULL;
        run_free(run);
        if (r < 0 && !worker->stopping)
                child_fatal(worker->child, EXIT_CODE_SOFTWARE, NULL, NULL,
                            "the end of a run cannot be told: %s", strerror(-r));
        else
                worker_run_ended(worker);
}

void run_finish(struct run *run, enum run_result result, const char *format, ...)
{
        char text[MESSAGE_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        utf8_clean(text);
        if (run->told) { /* how it ended was settled before its status was told of it */
                snprintf(text, sizeof(text), "%s", run->told);
                result = run->told_result;
        } else if (status_tell_failure(run, result, text)) {
                return; /* and ends again, the same way */
        }
        run_end(run, result, text);
}

bool run_is_replay(const struct run *run)
{
        return run->worker->config->replay_folder[0] != '\0';
}

/* ---- reading */

/* Trying again would read the same; only the watch's own process may build the store anew, and at its start.
 */
int run_store_damaged(const struct run *run, const struct record_watch *config)
{
        (void)store_suspect_mark(config->store_folder, "a checksum in it was found wrong");
        return child_fatal(run->worker->child, EXIT_CODE_IO, run->order->watch, NULL,
                           "the object store of watch %s is damaged: a checksum that was read for %s is "
                           "wrong; the next start builds it anew from the API server",
                           config->name, run->order->key);
}

static int read_reconcile(struct run *run)
{
        const struct message_run *order = run->order;
        int r = store_read(run->watch->reader, order->generation, order->key, &run->object);

        if (r == -EBADMSG)
                return run_store_damaged(run, run->watch->config);
        if (r < 0)
                return r;
        if (strcmp(run->object.uid, order->uid) != 0)
                return -ENOENT;
        if (resource_version_less(run->object.resource_version, order->at_least_version))
                return -EAGAIN;
        run->fingerprint = run->object.fingerprint;
        return 0;
}

/* Where the last state is lost, the identity is what we have. */
static int read_deleted(struct run *run)
{
        const struct message_run *order = run->order;
        int r = store_read_tombstone(run->watch->reader, order->generation, order->key, order->uid,
                                     &run->object);

        if (r == -ENOENT || r == -EBADMSG) {
                run->object = (struct store_object){.resource_version = strdup("")};
                r = run->object.resource_version ? 0 : -ENOMEM;
        }
        return r;
}

static int read_object(struct run *run)
{
        int r = run->order->action == ACTION_DELETED ? read_deleted(run) : read_reconcile(run);

        if (r >= 0)
                r = request_complete_object(run, &run->json);
        return r;
}

/* ---- the handler's end */

void run_log_line(const char *line, void *userdata)
{
        const struct run *run = userdata;
        char attempt[24];

        if (recording_is_by_hand(run->worker->recording)) {
                fprintf(stderr, "%s\n", line);
                return;
        }
        snprintf(attempt, sizeof(attempt), "%llu", (unsigned long long)run->order->attempt);
        log_write(LOG_INFO, MESSAGE_ID_HANDLER_OUTPUT,
                  LOG_FIELDS({"RECONCILED_WATCH", run->order->watch}, {"RECONCILED_KEY", run->order->key},
                             {"RECONCILED_UID", run->order->uid},
                             {"RECONCILED_ACTION", run_action_name(run->action)},
                             {"RECONCILED_ATTEMPT", attempt}),
                  "%s", line);
}

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

/* The text must live as long as the run. */
static void carry_out(struct run *run, const char *text, size_t size)
{
        _cleanup_error_ struct error error = ERROR_NONE;

        int r = answer_parse(text, size, &run->answer, &error);

        if (r < 0)
                run_finish(run, r == -ENOMEM ? RESULT_RETRY : RESULT_PERMANENT, "%s", error_message(&error));
        else if (run->answer.error)
                run_finish(run, error_result(&run->answer), "the handler has failed: %s", run->answer.error);
        else
                write_start(run);
}

void coprocess_answered(struct run *run, const char *line, size_t size)
{
        run->handler_done = true;
        recording_answer(run, line, size);
        run->output = strndup(line, size);
        if (run->output)
                carry_out(run, run->output, size);
        else
                run_finish(run, RESULT_RETRY, "no memory for the handler's answer");
}

static void answered_too_much(struct run *run)
{
        run_finish(run, RESULT_PERMANENT, "the handler's answer is larger than %zu bytes",
                   PROCESS_ANSWER_MAX);
}

void coprocess_answered_too_much(struct run *run)
{
        run->handler_done = true;
        answered_too_much(run);
}

void coprocess_failed(struct run *run, const char *why)
{
        run->handler_done = true;
        run_finish(run, RESULT_RETRY, "%s", why);
}

/* Neither its failure nor the object's: a volume that is being mounted, a package that is being upgraded. */
static void not_started(struct run *run, const char *why)
{
        run->handler_ran = false;
        run->not_started = true;
        run_finish(run, RESULT_UNAVAILABLE, "%s", why);
}

void coprocess_not_started(struct run *run, const char *why)
{
        run->handler_done = true;
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

        run->wait_status = status;
        run->usage = result->usage;
        run->out_of_memory = result->memory_end != MEMORY_ENOUGH;
        run->handler_done = true;
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

/* ---- starting */

#define PLUGIN_HOST "reconciled-plugin-host"

/* Beside this program, or where the build folder has it. One path a process. */
static const char *plugin_host(void)
{
        static char path[4096 + sizeof("/../plugin/" PLUGIN_HOST)];
        char self[4096], *slash;
        ssize_t length = path[0] ? 0 : readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (length <= 0)
                return path;
        self[length] = '\0';
        slash = strrchr(self, '/');
        snprintf(path, sizeof(path), "%.*s/../plugin/" PLUGIN_HOST, (int)(slash - self), self);
        if (access(path, X_OK) < 0)
                snprintf(path, sizeof(path), "%.*s/" PLUGIN_HOST, (int)(slash - self), self);
        return path;
}

char **arguments_build(const struct record_watch *config)
{
        bool hosted = config->handler_kind == HANDLER_PLUGIN;
        char **argument = calloc(config->handler_exec_count + 2, sizeof(char *));

        if (argument && hosted)
                argument[0] = (char *)(uintptr_t)plugin_host();
        for (size_t i = 0; argument && i < config->handler_exec_count; i++)
                argument[i + hosted] = (char *)(uintptr_t)config->handler_exec[i].value;
        return argument;
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
                run->handler_stamp = arguments_stamp(config);
                r = process_start(run->worker->child->event, &options, &run->process);
        }
        if (environment)
                environment_free(run->watch, environment);
        return r;
}

static int start_handler(struct run *run)
{
        return run->watch->config->handler_kind == HANDLER_EXEC ? start_exec(run) : coprocess_run(run);
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

/* An attempt that failed is undone first; that of an object which is going is over: its dependents go too. */
static bool order_is_settling(const struct run *run)
{
        struct scan_object object;

        return run->order->settling[0] && run->action == ACTION_RECONCILE &&
               scan_object(run->json, strlen(run->json), &object) >= 0 && !object.deletion_timestamp.start;
}

/* A change of something related runs everybody who might depend on it. What an attempt that waits for its
 * dependents has begun is no success yet: nothing is as it was after the last one. */
static bool is_unneeded(const struct run *run)
{
        const struct message_run *order = run->order;

        return run->action == ACTION_RECONCILE && !order->settling[0] &&
               strcmp(order->reason, "related changed") == 0 && order->known_fingerprint != 0 &&
               order->known_fingerprint == run->fingerprint &&
               order->known_related == run->related_fingerprint;
}

/* false: the run was ended. */
static bool related_are_there(struct run *run)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = related_collect(run, &error);

        if (r == -ECANCELED)
                return false;
        if ((r == -EBADMSG || r == -E2BIG) && run->action != ACTION_RECONCILE)
                r = 0; /* what is going needs no more than itself */
        if (r == -EBADMSG || r == -E2BIG)
                run_finish(run, RESULT_PERMANENT, "%s", error_message(&error));
        else if (r < 0)
                run_finish(run, RESULT_RETRY, "related objects cannot be read from their store: %s",
                           strerror(-r));
        else if (is_unneeded(run))
                write_unneeded(run);
        else
                return true;
        return false;
}

static int read_recorded(struct run *run)
{
        const char *folder = run->worker->config->replay_folder;
        _cleanup_free_ char *path = NULL;
        size_t size;

        if (asprintf(&path, "%s/%" PRIu64, folder, run->order->sequence) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return file_read(path, RECORDED_MAX, &run->recorded, &size);
}

/* Its handler would run for an answer that cannot be written, and a worker wait for that. false: ended. */
static bool may_write(struct run *run)
{
        _cleanup_free_ char *path =
                run->watch->discovered ? kube_path(&run->watch->resource, NULL, NULL, NULL) : NULL;
        uint64_t until = kube_client_throttled_until(run->worker->client, path ? path : "");

        if (until <= clock_boottime_usec() + RUN_PATIENCE_USEC)
                return true;
        run->held_until = until;
        run_finish(run, RESULT_UNAVAILABLE, "for now the API server wants no requests%s%s (Retry-After)",
                   path ? " for " : "", path ? run->watch->resource.plural : "");
        return false;
}

static void begin(struct run *run)
{
        int r;

        if (run_is_replay(run)) {
                r = read_recorded(run);
                if (r < 0)
                        run_finish(run, RESULT_RETRY, "the recorded request cannot be read: %s",
                                   strerror(-r));
                else
                        run_handler(run);
                return;
        }

        if (!may_write(run))
                return;
        /* By hand somebody may be faster than the watch: "delete it, and then let it go". */
        if (run->action == ACTION_UNSELECTED || run->action == ACTION_RELEASE) {
                unselected_fetch(run);
                return;
        }
        r = read_object(run);

        if (r == -ECANCELED)
                return;
        if (r == -ENOENT) {
                run_finish(run, RESULT_STALE, "the object is gone or was made anew");
                return;
        }
        if (r == -EAGAIN) {
                run_finish(run, RESULT_BEHIND, "the store does not show our own last write yet");
                return;
        }
        if (r < 0) {
                run_finish(run, RESULT_RETRY, "the object cannot be read from the store: %s", strerror(-r));
                return;
        }
        if (run->action == ACTION_FINALIZER)
                write_prepare(run);
        else if (order_is_settling(run))
                dependents_go_on(run);
        else
                run_attempt(run);
}

void run_attempt(struct run *run)
{
        if (related_are_there(run))
                write_prepare(run);
}

void run_finish_too_large(struct run *run)
{
        run->handler_ran = false;
        run_finish(run, RESULT_PERMANENT, "%s", run->excess);
}

static void cannot_start(struct run *run, int status)
{
        char why[MESSAGE_MAX];

        snprintf(why, sizeof(why), "the handler %s cannot be started: %s%s",
                 run->watch->config->handler_exec[0].value, strerror(-status), start_advice(status));
        if (status == -ENOMEM)
                run_finish(run, RESULT_RETRY, "%s", why);
        else
                not_started(run, why);
}

void run_handler(struct run *run)
{
        int r;

        if (run->cancelled) {
                run_finish(run, RESULT_CANCELLED, "the operator stops before the handler was begun");
                return;
        }
        run->handler_ran = true;
        r = start_handler(run);
        if (r == -E2BIG)
                run_finish_too_large(run);
        else if (r < 0 && r != -ECANCELED)
                cannot_start(run, r);
}

int run_start(struct worker *worker, struct message **message)
{
        struct run *run;

        if (worker->run || (*message)->run.action >= ACTION_COUNT)
                return -EPROTO;
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        run->worker = worker;
        run->message = TAKE_PTR(*message);
        run->order = &run->message->run;
        run->action = (enum run_action)run->order->action;
        run->started = clock_boottime_usec();
        run->watch = worker_watch_find(worker, run->order->watch);
        if (!run->watch) {
                run_free(run);
                return -EPROTO;
        }
        worker->run = run;
        worker->runs++;
        begin(run);
        return 0;
}

static int on_cancel_overdue(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        run_finish(userdata, RESULT_CANCELLED, "the run was cut off because the operator stops");
        return 0;
}

/* false: it is not at work, not yet or not any more. */
static bool end_handler(struct run *run, uint64_t grace_usec)
{
        if (run->handler_done)
                return false;
        if (!run->process)
                return coprocess_cancel(run, grace_usec);
        process_end(run->process, grace_usec);
        return true;
}

/* Asked again, the earlier end counts. */
void run_cancel(struct run *run, uint64_t grace_usec)
{
        uint64_t at = clock_boottime_usec() + grace_usec;

        run->cancelled = true;
        if (end_handler(run, grace_usec))
                return;
        /* A request that is under way may still end; no other one is begun, and no handler. */
        if (run->cancel_at > 0 && run->cancel_at <= at)
                return;
        run->cancel_at = at;
        run->cancel_timer = sd_event_source_disable_unref(run->cancel_timer);
        if (sd_event_add_time_relative(run->worker->child->event, &run->cancel_timer, CLOCK_MONOTONIC,
                                       grace_usec, 1, on_cancel_overdue, run) < 0)
                on_cancel_overdue(NULL, 0, run);
}
