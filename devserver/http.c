/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd inside the sd-event loop: one thread, connections suspended while a watch has nothing to
 * say. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/duration.h"
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

static void log_request(struct request *request)
{
        const char *agent = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "User-Agent");
        _cleanup_text_ struct text query = TEXT_EMPTY, line = TEXT_EMPTY;
        FILE *log = request->server->request_log;

        if (!log || request->logged)
                return;
        request->logged = true;
        MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, add_query, &query);
        text_printf(&line, "{\"time\":%.6f,\"method\":", (double)clock_realtime_usec() / 1e6);
        text_json_string(&line, request->method);
        text_append_string(&line, ",\"path\":");
        text_json_string(&line, request->url);
        text_append_string(&line, ",\"query\":");
        text_json_string(&line, query.data);
        text_append_string(&line, ",\"user_agent\":");
        text_json_string(&line, agent);
        text_printf(&line, ",\"status\":%d}\n", request->status);
        if (!line.failed)
                fwrite(line.data, 1, line.size, log);
        fflush(log);
}

/* ---- answers */

static enum MHD_Result send_answer(struct request *request)
{
        struct MHD_Response *response;
        enum MHD_Result r;

        if (request->watch) {
                response = watch_response(request->watch);
        } else {
                size_t size = request->answer.size;
                char *body = text_take(&request->answer);

                response = body ? MHD_create_response_from_buffer(size, body, MHD_RESPMEM_MUST_FREE) : NULL;
        }
        if (!response)
                return MHD_NO;
        MHD_add_response_header(response, "Content-Type", "application/json");
        if (request->status == 504 || request->status == 429)
                MHD_add_response_header(response, "Retry-After", "1");
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
        if (translate_body(request))
                server_handle(request);
        return send_answer(request);
}

static void on_completed(void *userdata _unused_, struct MHD_Connection *connection _unused_, void **state,
                         enum MHD_RequestTerminationCode code _unused_)
{
        struct request *request = *state;

        if (!request)
                return;
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

int http_start(struct server *server, const char *address, uint16_t port, char **ret_url,
               struct error *error)
{
        struct sockaddr_in socket_address = {.sin_family = AF_INET, .sin_port = htons(port)};
        const union MHD_DaemonInfo *info;
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (server->certificate ? MHD_USE_TLS : 0);
        int r;

        if (strcmp(address, "localhost") == 0)
                address = "127.0.0.1";
        if (inet_pton(AF_INET, address, &socket_address.sin_addr) != 1)
                return error_set(error, -EINVAL, "\"%s\" is no IPv4 address", address);
        server->daemon = MHD_start_daemon(
                flags, 0, NULL, NULL, on_access, server, MHD_OPTION_SOCK_ADDR,
                (struct sockaddr *)&socket_address, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
                MHD_OPTION_CONNECTION_LIMIT, 4096U, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
                server->certificate ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, server->certificate,
                MHD_OPTION_HTTPS_MEM_KEY, server->key, MHD_OPTION_END);
        if (!server->daemon)
                return error_set(error, -EADDRINUSE, "%s:%u: cannot listen: %s", address, port,
                                 strerror(errno));
        info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
        if (asprintf(ret_url, "%s://%s:%u", server->certificate ? "https" : "http", address,
                     (unsigned)(info ? info->port : port)) < 0) {
                *ret_url = NULL;
                return error_set(error, -ENOMEM, "no memory");
        }
        r = attach(server);
        return r < 0 ? error_set(error, r, "%s", strerror(-r)) : 0;
}

void http_stop(struct server *server)
{
        watches_end(server, NULL);
        if (server->daemon)
                MHD_run(server->daemon);
        sd_event_source_disable_unref(server->epoll_source);
        sd_event_source_disable_unref(server->run_timer);
        server->run_source = sd_event_source_disable_unref(server->run_source);
        if (server->daemon)
                MHD_stop_daemon(server->daemon);
        server->daemon = NULL;
}
