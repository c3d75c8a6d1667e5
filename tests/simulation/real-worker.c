/* SPDX-License-Identifier: Apache-2.0 */
/* See real-worker.h. The linker puts each function here that is called __wrap_NAME in the place of NAME. */
#include "tests/simulation/real-worker.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/config-message.h"
#include "object/keyed-hash.h"
#include "worker/kinds.h"
#include "worker/run/handler.h"
#include "worker/run/run.h"
#include "worker/waiting.h"
#include "worker/watch.h"
#include "worker/worker.h"

#define FOR_HANDLER "the handler"
#define FOR_SERVER  "the API server"

struct real_worker {
        struct worker worker;
        struct child child;
        const struct message_run *order; /* of the run that begins */
};

/* One loop that never turns: fibers go on in rounds of our own. Their stacks serve all seeds. */
static sd_event *loop;
static struct fibers *fibers;

/* ---- a worker's life */

static int begin_once(void)
{
        static const char key[16] = "of no importance";
        int r;

        if (fibers)
                return 0;
        r = keyed_hash_begin(key, sizeof(key));
        if (r >= 0)
                r = sd_event_new(&loop);
        return r < 0 ? r : fibers_new(loop, &fibers);
}

/* Encoded and read again: no text of it is NULL. */
static int read_config(const struct config *config, uint64_t clock_offset, struct message **ret)
{
        struct record_watch watch[2] = {0};
        struct message_config_worker message = {
                .operator_name = config->operator_name,
                .clock_offset = clock_offset,
                .window = config->window,
                .watch = watch,
                .watch_count = config->watch_count,
        };
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        int r = 0;

        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                r = config_worker_watch(config, &config->watch[i], "", "", &watch[i]);
        if (r >= 0)
                r = message_encode(MESSAGE_CONFIG_WORKER, &message, &packet);
        for (size_t i = 0; i < config->watch_count; i++)
                config_worker_watch_done(&watch[i]);
        return r < 0 ? r : message_decode(packet.data, packet.size, ret);
}

int real_worker_new(const struct config *config, uint64_t clock_offset, struct real_worker **ret)
{
        struct real_worker *real = calloc(1, sizeof(*real));
        struct worker *worker = &real->worker;
        int r;

        if (!real)
                return -ENOMEM;
        r = begin_once();
        if (r >= 0)
                r = read_config(config, clock_offset, &worker->config_message);
        if (r >= 0 && !(worker->watch = calloc(config->watch_count, sizeof(*worker->watch))))
                r = -ENOMEM;
        if (r < 0) {
                real_worker_free(real);
                return r;
        }
        real->child.event = loop;
        worker->child = &real->child;
        worker->fibers = fibers;
        worker->config = &worker->config_message->config_worker;
        worker->watch_count = config->watch_count;
        for (size_t i = 0; i < config->watch_count; i++) {
                struct kube_resource resource = {.group = (char[]){""},
                                                 .version = (char[]){"v1"},
                                                 .kind = config->watch[i].kind,
                                                 .plural = (char[]){"things"},
                                                 .namespaced = true,
                                                 .status_subresource = true};

                worker->watch[i].config = &worker->config->watch[i];
                worker->watch[i].reader = (struct store *)&config->watch[i];
                worker->watch[i].discovered = kinds_copy(&resource, &worker->watch[i].resource) >= 0;
        }
        *ret = real;
        return 0;
}

void real_worker_free(struct real_worker *real)
{
        if (!real)
                return;
        for (struct run *run = real->worker.runs; run; run = run->next)
                run_drop(run);
        if (fibers)
                fibers_turn(fibers);
        for (size_t i = 0; i < real->worker.watch_count; i++)
                kube_resource_done(&real->worker.watch[i].resource);
        free(real->worker.watch);
        message_free(real->worker.config_message);
        free(real);
}

/* ---- a run */

static struct run *find_run(const struct real_worker *real, const struct message_run *order)
{
        struct run *run = real->worker.runs;

        while (run && run->order != order)
                run = run->next;
        return run;
}

static void carry_out_order(void *userdata) _suspends_
{
        struct real_worker *real = userdata;
        int r = run_carry_out(&real->worker, real->order);

        if (r < 0 && r != -ECANCELED)
                sim_log("a run cannot be carried out");
}

int real_run_begin(struct real_worker *real, const struct message_run *order)
{
        int r;

        real->order = order;
        r = fiber_start(fibers, "run", carry_out_order, real, NULL);
        fibers_turn(fibers);
        return r;
}

enum real_wait real_run_waits(const struct real_worker *real, const struct message_run *order)
{
        const struct run *run = find_run(real, order);
        uint64_t since;

        if (!run)
                return REAL_WAITS_FOR_NOTHING;
        return strcmp(fiber_waits_for(run->fiber, &since), FOR_HANDLER) == 0 ? REAL_WAITS_FOR_HANDLER
                                                                             : REAL_WAITS_FOR_SERVER;
}

static void go_on(struct run *run)
{
        assert(run);
        fiber_wake(run->fiber);
        fibers_turn(fibers);
}

void real_run_answer(struct real_worker *real, const struct message_run *order, const char *text)
{
        struct run *run = find_run(real, order);

        assert(run);
        run->handler.output = text ? strdup(text) : NULL;
        run->handler.done = true;
        go_on(run);
}

void real_run_go_on(struct real_worker *real, const struct message_run *order)
{
        go_on(find_run(real, order));
}

void real_run_cancel(struct real_worker *real, const struct message_run *order, bool cut_off)
{
        struct run *run = find_run(real, order);

        if (!run)
                return;
        run->cancelled = true;
        fiber_ask_to_end(run->fiber);
        if (!cut_off)
                return;
        (void)run_cut_off(run);
        fiber_cancel(run->fiber);
        fibers_turn(fibers);
}

/* ---- what run.c calls: the handler, in the place of run/handler.c */

static int take_answer(struct run *run)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        const struct answer *answer = &run->answer;
        int r = answer_parse(run->handler.output, strlen(run->handler.output), &run->answer, &error);

        if (r < 0)
                return run_finish(run, RESULT_STOP, "the simulation answers nonsense: %s",
                                  error_message(&error));
        if (answer->error)
                return run_finish(run, answer->permanent ? RESULT_PERMANENT : RESULT_RETRY, "%s",
                                  answer->error);
        return RUN_WRITES;
}

int handler_run(struct run *run)
{
        run->handler.ran = true;
        sim_show(run->order, run->action, run->json);
        while (!run->handler.done && !run->dropped)
                (void)!fiber_suspend(FOR_HANDLER);
        if (run->dropped)
                return -ECANCELED;
        return run->handler.output ? take_answer(run)
                                   : run_finish(run, RESULT_CANCELLED,
                                                "the handler was asked to end before it was done");
}

bool handler_end(struct run *run, uint64_t grace_usec _unused_)
{
        return !run->handler.done;
}

/* ---- its waits, in the place of waiting.c */

static int wait_for_server(void) _suspends_
{
        if (fiber_is_ending(fiber_current()))
                return -ECANCELED;
        return sim_server_is_slow() ? fiber_suspend(FOR_SERVER) : 0;
}

static int fill_in(const struct sim_reply *reply, const char *method, struct kube_answer *ret)
{
        struct kube_error *error = &ret->response.error;
        int r = 0;

        ret->response.http_status = reply->http_status;
        if (reply->http_status == 200) {
                r = text_append_string(&ret->body, reply->json);
                ret->response.body = ret->body.data;
                ret->response.body_size = ret->body.size;
                return r;
        }
        r = kube_error_set(error, reply->http_status ? KUBE_FAILURE_HTTP : KUBE_FAILURE_INTERRUPTED,
                           "HTTP %d", reply->http_status);
        error->http_status = reply->http_status;
        if (reply->http_status == 404)
                error->reason = strdup("NotFound");
        error->names_object = reply->http_status == 404;
        error->other_uid = reply->other_uid;
        error->of_read = strcmp(method, "GET") == 0;
        error->retry_after_sec = -1;
        return r;
}

int run_request(struct run *run, const struct kube_request *request, struct kube_answer *ret)
{
        struct sim_reply reply = {0};
        int r = wait_for_server();

        *ret = (struct kube_answer)KUBE_ANSWER_EMPTY;
        if (r < 0)
                return run_cut_off(run);
        sim_serve(run->order, request->method, strstr(request->path, "/status?"), request->body, &reply);
        return fill_in(&reply, request->method, ret);
}

int run_ask_kind(struct run *run, const char *api_version _unused_, const char *kind _unused_,
                 struct kube_finding *ret)
{
        int r = wait_for_server();

        *ret = (struct kube_finding)KUBE_FINDING_EMPTY;
        return r < 0 ? r : kinds_copy(&run->watch->resource, &ret->resource);
}

int run_ask_all_versions(struct run *run, const char *api_version, const char *kind,
                         struct kube_finding *ret)
{
        return run_ask_kind(run, api_version, kind, ret);
}

int run_sleep(struct run *run _unused_, uint64_t usec _unused_, const char *why _unused_)
{
        return wait_for_server();
}

int waiting_go_on(struct run *run _unused_)
{
        return 0;
}

void waiting_trim(const struct run *run _unused_)
{
}

uint64_t waiting_busy_usec(const struct run *run _unused_, uint64_t now _unused_)
{
        return 0;
}

/* ---- and others */

int __wrap_store_read(struct store *store, uint64_t generation, const char *key, struct store_object *ret);
int __wrap_store_read_tombstone(struct store *store, uint64_t generation, const char *key, const char *uid,
                                struct store_object *ret);
uint64_t __wrap_kube_client_throttled_until(const struct kube_client *client, const char *path);
int __wrap_trigger_fingerprint(const struct trigger_basis *basis, const char *json, size_t size,
                               uint64_t *ret, struct error *error);
int __wrap_child_send(struct child *child, enum message_type type, const void *fields);
uint64_t __wrap_clock_boottime_usec(void);
uint64_t __wrap_clock_realtime_usec(void);
void __wrap_log_write(int priority, const char *message_id, const struct log_field *field,
                      const char *format, ...);

static int copy_read(const struct sim_read *read, const char *key, struct store_object *ret)
{
        *ret = (struct store_object){
                .key = strdup(key),
                .uid = strdup(read->uid),
                .resource_version = strdup(read->version),
                .json = strdup(read->json),
                .json_size = strlen(read->json),
                .fingerprint = read->fingerprint,
                .held = read->held,
        };
        return ret->key && ret->uid && ret->resource_version && ret->json ? 0 : -ENOMEM;
}

/* The readers of real_worker_new() are the watches. */
int __wrap_store_read(struct store *store, uint64_t generation _unused_, const char *key,
                      struct store_object *ret)
{
        struct sim_read read = {0};

        return sim_read_store((const struct config_watch *)store, key, &read) ? copy_read(&read, key, ret)
                                                                              : -ENOENT;
}

int __wrap_store_read_tombstone(struct store *store, uint64_t generation _unused_, const char *key,
                                const char *uid, struct store_object *ret)
{
        struct sim_read read = {0};

        return sim_read_tombstone((const struct config_watch *)store, key, uid, &read)
                       ? copy_read(&read, key, ret)
                       : -ENOENT;
}

uint64_t __wrap_kube_client_throttled_until(const struct kube_client *client _unused_,
                                            const char *path _unused_)
{
        return 0;
}

int __wrap_trigger_fingerprint(const struct trigger_basis *basis _unused_, const char *json,
                               size_t size _unused_, uint64_t *ret, struct error *error _unused_)
{
        *ret = sim_trigger(json);
        return 0;
}

int __wrap_child_send(struct child *child _unused_, enum message_type type, const void *fields)
{
        if (type == MESSAGE_DONE)
                sim_done(fields);
        return 0;
}

uint64_t __wrap_clock_boottime_usec(void)
{
        return sim_time(false);
}

uint64_t __wrap_clock_realtime_usec(void)
{
        return sim_time(true);
}

void __wrap_log_write(int priority _unused_, const char *message_id _unused_,
                      const struct log_field *field _unused_, const char *format, ...)
{
        char text[1024];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        sim_log(text);
}
