/* SPDX-License-Identifier: Apache-2.0 */
/* One thread: connections are suspended while a watch has nothing to say. */
#include "devserver/daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/text.h"
#include "devserver/fault/fault.h"
#include "devserver/http/certificate.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/http/open-connections.h"
#include "devserver/http/write-kubeconfig.h"
#include "devserver/request-log.h"
#include "devserver/routes.h"
#include "devserver/server.h"
#include "devserver/stream/flow.h"
#include "devserver/stream/serve-watch.h"
#include "http/http-loop.h"
#include "yaml/yaml-tree.h"

#define BODY_MAX     ((size_t)3 * 1024 * 1024) /* as the real server's */
#define WARNINGS_MAX 20                        /* an answer */
#define TICK_USEC    (200 * USEC_PER_MSEC)

/* ---- answers */

static struct MHD_Response *make_response(struct request *request)
{
        size_t size = request->answer.size;
        char *body;

        if (faults_need_flow(request))
                return flow_response(request);
        if (request->watch)
                return watch_response(request->watch);
        body = text_take(&request->answer);
        return body ? MHD_create_response_from_buffer(size, body, MHD_RESPMEM_MUST_FREE) : NULL;
}

static void add_warning(struct MHD_Response *response, const char *words)
{
        _cleanup_text_ struct text header = TEXT_EMPTY;

        text_append_string(&header, "299 - ");
        text_json_string(&header, words);
        if (!header.failed)
                MHD_add_response_header(response, "Warning", header.data);
}

static void add_headers(const struct request *request, struct MHD_Response *response)
{
        long seconds = request->retry_after;
        const cJSON *warning;
        size_t count = 0;
        char text[24];

        MHD_add_response_header(response, "Content-Type",
                                request->content_type ? request->content_type : "application/json");
        if (seconds == 0 && (request->status == 504 || request->status == 429))
                seconds = 1;
        if (seconds > 0) {
                snprintf(text, sizeof(text), "%ld", seconds);
                MHD_add_response_header(response, "Retry-After", text);
        }
        cJSON_ArrayForEach(warning, request->warning) if (count++ < WARNINGS_MAX)
                add_warning(response, warning->valuestring);
        for (size_t i = 0; i < request->fault_count; i++)
                if (request->fault[i]->warning)
                        add_warning(response, request->fault[i]->warning);
}

/* Leaves the request without an answer: the connection ends, or waits for somebody to end it. */
static enum MHD_Result leave_unanswered(struct request *request)
{
        request_log(request);
        if (request->drop || request->flow)
                return MHD_NO;
        return flow_hang(request) < 0 ? MHD_NO : MHD_YES;
}

static bool is_to_be_late(const struct request *request)
{
        return !request->delayed && !request->hang && faults_latency(request) > 0;
}

static enum MHD_Result answer_later(struct request *request)
{
        request->delayed = true;
        return flow_delay(request, faults_latency(request)) < 0 ? MHD_NO : MHD_YES;
}

static enum MHD_Result send_answer(struct request *request)
{
        struct MHD_Response *response;
        enum MHD_Result r;

        if (is_to_be_late(request))
                return answer_later(request);
        if (request->hang || request->drop)
                return leave_unanswered(request);
        response = make_response(request);
        if (!response)
                return MHD_NO;
        add_headers(request, response);
        request_log(request);
        r = MHD_queue_response(request->connection, (unsigned)request->status, response);
        MHD_destroy_response(response);
        return r;
}

/* ---- bodies */

static void take_body(struct request *request, const char *data, size_t size)
{
        if (request->body.size + size > BODY_MAX)
                request->too_large = true;
        if (!request->too_large)
                text_append(&request->body, data, size);
}

static bool content_type_has(const struct request *request, const char *part)
{
        const char *type = http_header(request->connection, "Content-Type");

        return type && strstr(type, part);
}

/* An object may come as YAML; after this everything is JSON. false: answered. */
static bool translate_body(struct request *request)
{
        _cleanup_free_ char *json = NULL;
        cJSON *value;

        if (request->too_large) {
                answer_status(request, 413, "RequestEntityTooLarge",
                              "Request entity too large: limit is %zu", BODY_MAX);
                return false;
        }
        if (content_type_has(request, "protobuf")) {
                answer_status(request, 415, "UnsupportedMediaType",
                              "the body of the request was in an unknown format - accepted media types "
                              "include: application/json, application/yaml");
                return false;
        }
        if (strcmp(request->method, "PATCH") == 0 || !content_type_has(request, "yaml"))
                return true;
        value = yaml_parse_object(&request->body);
        json = value ? cJSON_PrintUnformatted(value) : NULL;
        cJSON_Delete(value);
        text_clear(&request->body);
        text_append_string(&request->body, json ? json : "");
        return true;
}

static enum MHD_Result on_access(void *userdata, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version _unused_, const char *data,
                                 size_t *size, void **state)
{
        struct request *request = *state;

        if (!request) {
                request = calloc(1, sizeof(*request));
                if (!request)
                        return MHD_NO;
                request->server = userdata;
                *state = request;
                return MHD_YES;
        }
        request->connection = connection;
        request->method = method;
        request->url = url;
        if (*size > 0) {
                take_body(request, data, *size);
                *size = 0;
                return MHD_YES;
        }
        /* Asked again after a connection that hung is resumed: it is over. */
        if (request->hang)
                return MHD_NO;
        if (request->delayed)
                return send_answer(request);
        if (translate_body(request))
                server_handle(request);
        return send_answer(request);
}

/* Runs in a turn of its own: the daemon cannot be stopped from within. */
static void renew_if_due(struct server *server)
{
        if (server->certificate_due && server->renew_source)
                sd_event_source_set_enabled(server->renew_source, SD_EVENT_ONESHOT);
}

static void on_completed(void *userdata, struct MHD_Connection *connection _unused_, void **state,
                         enum MHD_RequestTerminationCode code _unused_)
{
        struct request *request = *state;
        struct server *server = userdata;

        if (!request)
                return;
        for (size_t i = 0; i < request->fault_count; i++)
                fault_unref(request->fault[i]);
        flow_hang_done(request->flow);
        renew_if_due(server);
        request_free(request);
        *state = NULL;
}

/* ---- the daemon */

static struct MHD_Daemon *start_daemon(struct server *server, const struct sockaddr_in *address, int fd)
{
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (server->certificate ? MHD_USE_TLS : 0);
        struct MHD_OptionItem option[12] = {
                {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, server},
                {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)connections_note, server},
                {MHD_OPTION_CONNECTION_LIMIT, 4096, NULL},
                {MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL},
                {MHD_OPTION_LISTENING_ADDRESS_REUSE, 1, NULL},
        };
        size_t count = 5;

        if (fd >= 0)
                option[count++] = (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, fd, NULL};
        if (server->certificate) {
                option[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, server->certificate};
                option[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, server->key};
        }
        option[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
        return MHD_start_daemon(flags, 0, NULL, NULL, on_access, server, MHD_OPTION_SOCK_ADDR,
                                (const struct sockaddr *)address, MHD_OPTION_ARRAY, option, MHD_OPTION_END);
}

static void stop_daemon(struct server *server)
{
        struct MHD_Daemon *daemon = server->loop.daemon;

        server->is_ending =
                true; /* what begins in the last turn waits for nothing: libmicrohttpd would abort */
        flows_end(server);
        MHD_run(daemon); /* what was resumed gets its last turn */
        http_loop_detach(&server->loop);
        MHD_stop_daemon(daemon);
        server->is_ending = false;
}

/* ---- another certificate */

static int renew(struct server *server, struct error *error)
{
        struct MHD_Daemon *daemon;
        int fd = MHD_quiesce_daemon(server->loop.daemon), r;

        watches_cut(server, NULL, true);
        stop_daemon(server);
        r = certificate_make(server, server->authority_due, error);
        if (r < 0)
                return r;
        daemon = start_daemon(server, NULL, fd);
        if (!daemon)
                return error_set(error, -EIO, "cannot listen again: %s", strerror(errno));
        r = http_loop_attach(&server->loop, server->event, daemon, NULL);
        if (r >= 0 && server->authority_due)
                r = kubeconfig_write(server, error);
        return r;
}

static int on_renew(sd_event_source *source _unused_, void *userdata)
{
        struct server *server = userdata;
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = renew(server, &error);

        server->certificate_due = server->authority_due = false;
        if (r < 0) {
                fprintf(stderr, "reconciled-devserver: %s\n", error_message(&error));
                return sd_event_exit(server->event, 1);
        }
        return 0;
}

/* ---- time */

static int on_tick(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct server *server = userdata;
        int r;

        watches_tick(server);
        flows_look_for_clients(server);
        r = sd_event_source_set_time_relative(source, TICK_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- start and end */

int daemon_start(struct server *server, const char *address, uint16_t port, struct error *error)
{
        struct sockaddr_in socket_address = {.sin_family = AF_INET, .sin_port = htons(port)};
        const union MHD_DaemonInfo *info;
        struct MHD_Daemon *daemon;
        int r;

        if (strcmp(address, "localhost") == 0)
                address = "127.0.0.1";
        if (inet_pton(AF_INET, address, &socket_address.sin_addr) != 1)
                return error_set(error, -EINVAL, "\"%s\" is no IPv4 address", address);
        daemon = start_daemon(server, &socket_address, -1);
        if (!daemon)
                return error_set(error, -EADDRINUSE, "%s:%u: cannot listen: %s", address, port,
                                 strerror(errno));
        r = http_loop_attach(&server->loop, server->event, daemon, NULL);
        info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
        if (asprintf(&server->url, "%s://%s:%u", server->certificate ? "https" : "http", address,
                     (unsigned)(info ? info->port : port)) < 0) {
                server->url = NULL;
                return error_set(error, -ENOMEM, "no memory");
        }
        if (r >= 0)
                r = sd_event_add_defer(server->event, &server->renew_source, on_renew, server);
        if (r >= 0)
                r = sd_event_source_set_enabled(server->renew_source, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time_relative(server->event, NULL, CLOCK_MONOTONIC, TICK_USEC, 0, on_tick,
                                               server);
        return r < 0 ? error_set(error, r, "%s", strerror(-r)) : 0;
}

void daemon_stop(struct server *server)
{
        watches_end(server, NULL);
        server->renew_source = sd_event_source_disable_unref(server->renew_source);
        if (server->loop.daemon)
                stop_daemon(server);
}
