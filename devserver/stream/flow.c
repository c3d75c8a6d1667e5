/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each read delivers, in this order: what a fault has injected; the end that it has asked for; else bytes of
 * the source, up to the place where the next fault acts. Lines and bytes are counted on the source alone.
 */
#include "devserver/stream/flow.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "devserver/fault/fault.h"
#include "devserver/http/http-request.h"
#include "devserver/server.h"
#include "devserver/stream/serve-watch.h"
#include "http/http-loop.h"

#define SOURCE_CHUNK  ((size_t)32768)
#define SLOW_STEP     (100 * USEC_PER_MSEC)
#define STEPS_PER_SEC 10

struct flow {
        struct flow *next;
        struct server *server;
        struct MHD_Connection *connection;
        struct request *hanging; /* a request without an answer */
        struct fault *fault[FAULTS_PER_REQUEST];
        size_t fault_count;
        bool done[FAULTS_PER_REQUEST];
        struct watch *watch; /* the source, or */
        struct text body;    /* a complete answer */
        size_t body_sent;
        struct text source, injected; /* not delivered yet, from *_sent on */
        size_t source_sent, injected_sent;
        uint64_t lines, bytes;
        enum fault_close close;
        bool suspended, over, paused;
        sd_event_source *timer;
};

/* ---- life */

static void unlink_flow(struct flow *flow)
{
        struct flow **place = &flow->server->flow;

        while (*place && *place != flow)
                place = &(*place)->next;
        if (*place)
                *place = flow->next;
}

static void flow_free(void *userdata)
{
        struct flow *flow = userdata;

        unlink_flow(flow);
        for (size_t i = 0; i < flow->fault_count; i++)
                fault_unref(flow->fault[i]);
        if (flow->watch)
                watch_free(flow->watch);
        sd_event_source_disable_unref(flow->timer);
        text_done(&flow->body);
        text_done(&flow->source);
        text_done(&flow->injected);
        free(flow);
}

static struct flow *flow_new(struct request *request)
{
        struct flow *flow = calloc(1, sizeof(*flow));

        if (!flow)
                return NULL;
        flow->server = request->server;
        flow->connection = request->connection;
        for (; flow->fault_count < request->fault_count; flow->fault_count++) {
                flow->fault[flow->fault_count] = request->fault[flow->fault_count];
                flow->fault[flow->fault_count]->references++;
        }
        flow->next = request->server->flow;
        request->server->flow = flow;
        return flow;
}

static void suspend(struct flow *flow)
{
        if (flow->server->is_ending) {
                flow->over = true;
                return;
        }
        flow->suspended = true;
        MHD_suspend_connection(flow->connection);
}

static void resume(struct flow *flow)
{
        if (!flow->suspended)
                return;
        flow->suspended = false;
        MHD_resume_connection(flow->connection);
        http_loop_run_soon(&flow->server->loop);
}

/* ---- where the faults act */

/* How many bytes of the source may pass before this fault acts; SIZE_MAX: more than there are. */
static size_t room_before(const struct flow *flow, const struct fault *fault, const char *bytes, size_t size)
{
        uint64_t lines = flow->lines;

        if (fault->at_byte)
                return fault->position - flow->bytes < size ? (size_t)(fault->position - flow->bytes)
                                                            : SIZE_MAX;
        if (lines >= fault->position)
                return 0;
        for (size_t i = 0; i < size; i++)
                if (bytes[i] == '\n' && ++lines >= fault->position)
                        return i + 1;
        return SIZE_MAX;
}

static bool is_due(const struct flow *flow, size_t index)
{
        const struct fault *fault = flow->fault[index];

        if (flow->done[index] || (fault->payload.size == 0 && fault->close == CLOSE_NOT))
                return false;
        return fault->at_byte ? flow->bytes >= fault->position : flow->lines >= fault->position;
}

static bool act(struct flow *flow)
{
        for (size_t i = 0; i < flow->fault_count; i++) {
                if (!is_due(flow, i))
                        continue;
                flow->done[i] = true;
                text_clear(&flow->injected);
                flow->injected_sent = 0;
                text_append(&flow->injected, flow->fault[i]->payload.data, flow->fault[i]->payload.size);
                flow->close = flow->fault[i]->close;
                return true;
        }
        return false;
}

/* ---- speed */

static int on_step(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct flow *flow = userdata;

        flow->timer = sd_event_source_disable_unref(flow->timer);
        resume(flow);
        return 0;
}

/* At most so many bytes in one write, and in one step of time. */
static size_t slowed(struct flow *flow, size_t size)
{
        for (size_t i = 0; i < flow->fault_count; i++) {
                const struct fault *fault = flow->fault[i];

                if (fault->pieces > 0 && size > fault->pieces)
                        size = (size_t)fault->pieces;
                if (fault->bytes_per_second > 0) {
                        uint64_t step = fault->bytes_per_second / STEPS_PER_SEC;

                        step = step > 0 ? step : 1;
                        size = size > step ? (size_t)step : size;
                        flow->paused = true;
                }
        }
        return size;
}

static bool must_wait(struct flow *flow)
{
        if (!flow->paused || flow->over)
                return false;
        flow->paused = false;
        if (sd_event_add_time_relative(flow->server->event, &flow->timer, CLOCK_MONOTONIC, SLOW_STEP, 1,
                                       on_step, flow) < 0)
                return false;
        suspend(flow);
        return true;
}

/* ---- reading */

static ssize_t flow_deliver(struct flow *flow, struct text *from, size_t *sent, size_t size, char *out)
{
        size = slowed(flow, size);
        memcpy(out, from->data + *sent, size);
        *sent += size;
        return (ssize_t)size;
}

static ssize_t deliver_source(struct flow *flow, char *out, size_t max)
{
        const char *bytes = flow->source.data + flow->source_sent;
        size_t size = flow->source.size - flow->source_sent;
        ssize_t delivered;

        for (size_t i = 0; i < flow->fault_count; i++) {
                size_t room;

                if (flow->done[i] ||
                    (flow->fault[i]->payload.size == 0 && flow->fault[i]->close == CLOSE_NOT))
                        continue;
                room = room_before(flow, flow->fault[i], bytes, size);
                size = room < size ? room : size;
        }
        delivered = flow_deliver(flow, &flow->source, &flow->source_sent, size < max ? size : max, out);
        for (ssize_t i = 0; i < delivered; i++)
                flow->lines += bytes[i] == '\n' ? 1 : 0;
        flow->bytes += (uint64_t)delivered;
        return delivered;
}

/* Positive: there is something; 0: not now, the connection sleeps; negative: MHD's end. */
static ssize_t read_source(struct flow *flow)
{
        char buffer[SOURCE_CHUNK];
        ssize_t size;

        if (flow->watch) {
                size = watch_read(flow->watch, buffer, sizeof(buffer));
        } else {
                size_t rest = flow->body.size - flow->body_sent;

                size = (ssize_t)(rest < sizeof(buffer) ? rest : sizeof(buffer));
                memcpy(buffer, flow->body.data + flow->body_sent, (size_t)size);
                flow->body_sent += (size_t)size;
                if (size == 0)
                        return MHD_CONTENT_READER_END_OF_STREAM;
        }
        if (size <= 0)
                return size;
        text_clear(&flow->source);
        flow->source_sent = 0;
        text_append(&flow->source, buffer, (size_t)size);
        return flow->source.failed ? MHD_CONTENT_READER_END_WITH_ERROR : size;
}

static ssize_t end_asked_for(struct flow *flow)
{
        if (flow->close == CLOSE_CLEAN)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (flow->close == CLOSE_CUT)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        suspend(flow);
        return 0;
}

static ssize_t on_flow_read(void *userdata, uint64_t position _unused_, char *out, size_t max)
{
        struct flow *flow = userdata;

        if (flow->over)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (must_wait(flow))
                return 0;
        for (;;) {
                size_t injected = flow->injected.size - flow->injected_sent;
                ssize_t size;

                if (injected > 0)
                        return flow_deliver(flow, &flow->injected, &flow->injected_sent,
                                            injected < max ? injected : max, out);
                if (flow->close != CLOSE_NOT)
                        return end_asked_for(flow);
                if (act(flow))
                        continue;
                if (flow->source_sent < flow->source.size)
                        return deliver_source(flow, out, max);
                size = read_source(flow);
                if (size <= 0)
                        return size;
        }
}

struct MHD_Response *flow_response(struct request *request)
{
        struct flow *flow = flow_new(request);
        struct MHD_Response *response;

        if (!flow)
                return NULL;
        flow->watch = TAKE_PTR(request->watch);
        flow->body = request->answer;
        request->answer = TEXT_EMPTY;
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, SOURCE_CHUNK, on_flow_read, flow,
                                                     flow_free);
        if (!response)
                flow_free(flow);
        return response;
}

/* ---- no answer at all, or later */

int flow_hang(struct request *request)
{
        struct flow *flow = flow_new(request);

        if (!flow)
                return -ENOMEM;
        flow->hanging = request;
        request->flow = flow;
        suspend(flow);
        return 0;
}

int flow_delay(struct request *request, uint64_t usec)
{
        int r = flow_hang(request);

        return r < 0 ? r
                     : sd_event_add_time_relative(request->server->event, &request->flow->timer,
                                                  CLOCK_MONOTONIC, usec, 1, on_step, request->flow);
}

void flow_hang_done(struct flow *flow)
{
        if (flow)
                flow_free(flow);
}

/* ---- clients */

static void end_flow(struct flow *flow)
{
        flow->over = true;
        if (flow->hanging)
                flow->hanging->drop = true;
        resume(flow);
}

void flows_look_for_clients(struct server *server)
{
        for (struct flow *flow = server->flow; flow; flow = flow->next)
                if (flow->suspended && http_client_has_gone(flow->connection))
                        end_flow(flow);
}

void flows_end(struct server *server)
{
        for (struct flow *flow = server->flow; flow; flow = flow->next)
                end_flow(flow);
}
