/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd inside the sd-event loop: one thread, connections suspended while a watch has nothing to
 * say. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/duration.h"
#include "devserver/flow.h"
#include "devserver/tree.h"

#define BODY_MAX ((size_t)3 * 1024 * 1024) /* as the real server's */

const char *request_argument(const struct request *request, const char *name)
{
        return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool request_flag(const struct request *request, const char *name)
{
        const char *value = request_argument(request, name);

        return value && strcmp(value, "false") != 0 && strcmp(value, "0") != 0;
}

/* ---- the request log */

static enum MHD_Result add_query(void *userdata, enum MHD_ValueKind kind _unused_, const char *key,
                                 const char *value)
{
        struct text *query = userdata;

        text_printf(query, "%s%s%s%s", query->size > 0 ? "&" : "", key, value ? "=" : "",
                    value ? value : "");
        return MHD_YES;
}

static void log_text(struct text *line, const char *name, const char *value)
{
        if (!value || !value[0])
                return;
        text_printf(line, ",\"%s\":", name);
        text_json_string(line, value);
}

/* Headers that say who the client wants to be, and in which form it wants its answer; of a secret only that
 * there is one. */
static enum MHD_Result log_header(void *userdata, enum MHD_ValueKind kind _unused_, const char *key,
                                  const char *value)
{
        struct text *line = userdata;
        const char *space;

        if (strcasecmp(key, "Authorization") == 0) {
                space = value ? strchr(value, ' ') : NULL;
                text_append_string(line, ",\"authorization\":");
                text_json_bytes(line, value, space ? (size_t)(space - value) : 0);
        } else if (strncasecmp(key, "Impersonate-", 12) == 0) {
                text_append_string(line, ",");
                text_json_string(line, key);
                text_append_string(line, ":");
                text_json_string(line, value);
        } else if (strcasecmp(key, "Accept") == 0) {
                log_text(line, "accept", value);
        } else if (strcasecmp(key, "User-Agent") == 0) {
                log_text(line, "user_agent", value);
        }
        return MHD_YES;
}

static void log_faults(const struct request *request, struct text *line)
{
        for (size_t i = 0; i < request->fault_count; i++)
                text_printf(line, "%s%llu", i == 0 ? ",\"faults\":[" : ",",
                            (unsigned long long)request->fault[i]->id);
        if (request->fault_count > 0)
                text_append_string(line, "]");
}

static void log_request(struct request *request)
{
        _cleanup_text_ struct text query = TEXT_EMPTY, line = TEXT_EMPTY;
        FILE *log = request->server->request_log;

        if (!log || request->logged || strncmp(request->url, "/devserver/", 11) == 0)
                return;
        request->logged = true;
        MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, add_query, &query);
        text_printf(&line, "{\"time\":%.6f,\"method\":", (double)clock_realtime_usec() / 1e6);
        text_json_string(&line, request->method);
        text_append_string(&line, ",\"path\":");
        text_json_string(&line, request->url);
        text_append_string(&line, ",\"query\":");
        text_json_string(&line, query.data ? query.data : "");
        log_text(&line, "verb", request->verb);
        log_text(&line, "resource", request->plural);
        log_text(&line, "subresource", request->subresource);
        log_text(&line, "namespace", request->namespace_name);
        log_text(&line, "name", request->name);
        MHD_get_connection_values(request->connection, MHD_HEADER_KIND, log_header, &line);
        log_faults(request, &line);
        /* 0: a fault left it without an answer. */
        text_printf(&line, ",\"status\":%d}\n", request->hang || request->drop ? 0 : request->status);
        if (!line.failed)
                fwrite(line.data, 1, line.size, log);
        fflush(log);
}

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

static void add_headers(const struct request *request, struct MHD_Response *response)
{
        long seconds = request->retry_after;
        char text[24];

        MHD_add_response_header(response, "Content-Type",
                                request->content_type ? request->content_type : "application/json");
        if (seconds == 0 && (request->status == 504 || request->status == 429))
                seconds = 1;
        if (seconds > 0) {
                snprintf(text, sizeof(text), "%ld", seconds);
                MHD_add_response_header(response, "Retry-After", text);
        }
}

/* Without an answer: the connection ends, or waits for somebody to end it. */
static enum MHD_Result leave_unanswered(struct request *request)
{
        log_request(request);
        if (request->drop || request->flow)
                return MHD_NO;
        return flow_hang(request) < 0 ? MHD_NO : MHD_YES;
}

static enum MHD_Result send_answer(struct request *request)
{
        struct MHD_Response *response;
        enum MHD_Result r;

        if (request->hang || request->drop)
                return leave_unanswered(request);
        response = make_response(request);
        if (!response)
                return MHD_NO;
        add_headers(request, response);
        log_request(request);
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
        const char *type = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Content-Type");

        return type && strstr(type, part);
}

/* An object may come as YAML; behind this everything is JSON. false: answered. */
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
        value = load_yaml_or_json(&request->body);
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
        if (translate_body(request))
                server_handle(request);
        return send_answer(request);
}

/* In a turn of its own: the daemon cannot be stopped from within. */
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
        text_done(&request->body);
        text_done(&request->answer);
        free(request->group);
        free(request->version);
        free(request->namespace_name);
        free(request->plural);
        free(request->name);
        free(request->subresource);
        free(request);
        *state = NULL;
}

/* ---- the loop */

static void run(struct server *server)
{
        MHD_UNSIGNED_LONG_LONG timeout;

        MHD_run(server->daemon);
        if (MHD_get_timeout(server->daemon, &timeout) == MHD_YES) {
                sd_event_source_set_time_relative(server->run_timer, timeout * USEC_PER_MSEC);
                sd_event_source_set_enabled(server->run_timer, SD_EVENT_ONESHOT);
        }
}

static int on_epoll(sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_,
                    void *userdata)
{
        run(userdata);
        return 0;
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        run(userdata);
        return 0;
}

static int on_defer(sd_event_source *source _unused_, void *userdata)
{
        run(userdata);
        return 0;
}

void http_run_soon(struct server *server)
{
        if (server->run_source)
                sd_event_source_set_enabled(server->run_source, SD_EVENT_ONESHOT);
}

static int attach(struct server *server)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        int r;

        if (!info)
                return -EIO;
        r = sd_event_add_io(server->event, &server->epoll_source, info->epoll_fd, EPOLLIN, on_epoll, server);
        if (r >= 0)
                r = sd_event_add_time_relative(server->event, &server->run_timer, CLOCK_MONOTONIC, 0, 1,
                                               on_timer, server);
        if (r >= 0)
                r = sd_event_add_defer(server->event, &server->run_source, on_defer, server);
        return r;
}

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

static void detach(struct server *server)
{
        server->epoll_source = sd_event_source_disable_unref(server->epoll_source);
        server->run_timer = sd_event_source_disable_unref(server->run_timer);
        server->run_source = sd_event_source_disable_unref(server->run_source);
}

static void stop_daemon(struct server *server)
{
        flows_end(server);
        MHD_run(server->daemon); /* what was resumed gets its last turn */
        detach(server);
        MHD_stop_daemon(server->daemon);
        server->daemon = NULL;
}

/* ---- another certificate */

static int renew(struct server *server, struct error *error)
{
        int fd = MHD_quiesce_daemon(server->daemon), r;

        watches_cut(server, NULL, true);
        stop_daemon(server);
        r = tls_make(server, server->authority_due, error);
        if (r < 0)
                return r;
        server->daemon = start_daemon(server, NULL, fd);
        if (!server->daemon)
                return error_set(error, -EIO, "cannot listen again: %s", strerror(errno));
        r = attach(server);
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

void http_renew_certificate_soon(struct server *server, bool new_authority)
{
        server->certificate_due = true;
        server->authority_due = new_authority;
}

/* ---- start and end */

int http_start(struct server *server, const char *address, uint16_t port, struct error *error)
{
        struct sockaddr_in socket_address = {.sin_family = AF_INET, .sin_port = htons(port)};
        const union MHD_DaemonInfo *info;
        int r;

        if (strcmp(address, "localhost") == 0)
                address = "127.0.0.1";
        if (inet_pton(AF_INET, address, &socket_address.sin_addr) != 1)
                return error_set(error, -EINVAL, "\"%s\" is no IPv4 address", address);
        server->daemon = start_daemon(server, &socket_address, -1);
        if (!server->daemon)
                return error_set(error, -EADDRINUSE, "%s:%u: cannot listen: %s", address, port,
                                 strerror(errno));
        info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
        if (asprintf(&server->url, "%s://%s:%u", server->certificate ? "https" : "http", address,
                     (unsigned)(info ? info->port : port)) < 0) {
                server->url = NULL;
                return error_set(error, -ENOMEM, "no memory");
        }
        r = attach(server);
        if (r >= 0)
                r = sd_event_add_defer(server->event, &server->renew_source, on_renew, server);
        if (r >= 0)
                r = sd_event_source_set_enabled(server->renew_source, SD_EVENT_OFF);
        return r < 0 ? error_set(error, r, "%s", strerror(-r)) : 0;
}

void http_stop(struct server *server)
{
        watches_end(server, NULL);
        server->renew_source = sd_event_source_disable_unref(server->renew_source);
        if (server->daemon)
                stop_daemon(server);
}
