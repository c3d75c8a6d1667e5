/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/http-server.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/connections.h"
#include "gateway/tls.h"
#include "gateway/token.h"
#include "http/connection.h"

#define CONNECTION_TIMEOUT_S 5U
#define CONNECTION_MEMORY    ((size_t)16 * 1024)
#define TLS_PRIORITIES       "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define OPENMETRICS          "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define PLAIN                "text/plain; version=0.0.4; charset=utf-8"

struct answer {
        unsigned status;
        const char *body, *type, *header, *value;
        size_t size;
        struct MHD_Response **shared; /* made once for all who ask; NULL: of this answer alone */
};

/* ---- what is asked for */

static void answer_text(struct answer *answer, unsigned status, const char *text)
{
        *answer =
                (struct answer){.status = status, .body = text, .size = strlen(text), .type = "text/plain"};
}

static void answer_health(const struct gateway_server *server, struct answer *answer, bool ready)
{
        static char text[sizeof(server->report->reason) + 8];
        const char *reason;

        if (ready ? report_is_ready(server->report, &reason) : report_is_live(server->report, &reason)) {
                answer_text(answer, MHD_HTTP_OK, "ok\n");
                return;
        }
        snprintf(text, sizeof(text), "%s\n", reason[0] ? reason : "no");
        answer_text(answer, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

static void answer_metrics(struct gateway_server *server, struct MHD_Connection *connection,
                           struct answer *answer)
{
        const char *accept = http_header(connection, "Accept"), *reason;
        bool open;

        if (server->token_file[0] &&
            !gateway_token_matches(server->token_file, http_header(connection, "Authorization"))) {
                answer_text(answer, MHD_HTTP_UNAUTHORIZED, "a bearer token is needed\n");
                answer->header = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
                answer->value = "Bearer";
                return;
        }
        /* Old numbers look like live ones: better none. */
        if (!report_is_live(server->report, &reason)) {
                answer_health(server, answer, false);
                return;
        }
        open = accept && strstr(accept, "application/openmetrics-text");
        *answer = (struct answer){
                .status = MHD_HTTP_OK,
                .body = server->report->document.data ? server->report->document.data : "",
                .size = server->report->document.size,
                .type = open ? OPENMETRICS : PLAIN,
                .shared = &server->response[open],
        };
}

void gateway_server_renew(struct gateway_server *server)
{
        for (size_t i = 0; i < ELEMENTS(server->response); i++) {
                if (server->response[i])
                        MHD_destroy_response(server->response[i]); /* those who are being answered keep it */
                server->response[i] = NULL;
        }
}

static void find_answer(struct gateway_server *server, struct MHD_Connection *connection, const char *url,
                        const char *method, struct answer *answer)
{
        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
                answer_text(answer, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
                answer->header = MHD_HTTP_HEADER_ALLOW;
                answer->value = "GET, HEAD";
        } else if (strcmp(url, "/healthz") == 0 || strcmp(url, "/livez") == 0) {
                answer_health(server, answer, false);
        } else if (strcmp(url, "/readyz") == 0) {
                answer_health(server, answer, true);
        } else if (strcmp(url, "/metrics") == 0) {
                answer_metrics(server, connection, answer);
        } else {
                answer_text(answer, MHD_HTTP_NOT_FOUND, "there are /healthz, /readyz and /metrics\n");
        }
}

static struct MHD_Response *make_response(const struct answer *answer)
{
        struct MHD_Response *response = MHD_create_response_from_buffer(
                answer->size, (void *)(uintptr_t)answer->body, MHD_RESPMEM_MUST_COPY);

        if (!response)
                return NULL;
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        if (answer->header)
                MHD_add_response_header(response, answer->header, answer->value);
        return response;
}

static enum MHD_Result on_access(void *userdata, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version _unused_, const char *data _unused_,
                                 size_t *size, void **state)
{
        static int seen;
        struct answer answer;
        struct MHD_Response *response;
        enum MHD_Result r;

        /* The first call has the head only; a body is taken and thrown away. */
        if (!*state || *size > 0) {
                *state = &seen;
                *size = 0;
                return MHD_YES;
        }
        find_answer(userdata, connection, url, method, &answer);
        response = answer.shared && *answer.shared ? *answer.shared : make_response(&answer);
        if (!response)
                return MHD_NO;
        r = MHD_queue_response(connection, answer.status, response);
        if (answer.shared)
                *answer.shared = response;
        else
                MHD_destroy_response(response);
        return r;
}

/* ---- life */

int gateway_server_start(struct gateway_server *server, sd_event *event, const struct report *report,
                         const char *token_file)
{
        struct MHD_OptionItem secure[] = {
                {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, tls_callback()},
                {MHD_OPTION_HTTPS_PRIORITIES, 0, (char[]){TLS_PRIORITIES}},
                {MHD_OPTION_END, 0, NULL},
        };
        struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
        struct MHD_Daemon *daemon;
        bool tls = tls_is_used();

        server->report = report;
        server->token_file = token_file;
        daemon = MHD_start_daemon(MHD_USE_EPOLL | (tls ? MHD_USE_TLS : 0), 0, NULL, NULL, on_access, server,
                                  MHD_OPTION_LISTEN_SOCKET, server->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
                                  CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, CONNECTION_TIMEOUT_S,
                                  MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
                                  MHD_OPTION_NOTIFY_CONNECTION, connections_notify, NULL, MHD_OPTION_ARRAY,
                                  tls ? secure : plain, MHD_OPTION_END);
        return daemon ? http_loop_attach(&server->loop, event, daemon, connections_expire) : -EIO;
}

void gateway_server_stop(struct gateway_server *server)
{
        struct MHD_Daemon *daemon = server->loop.daemon;

        http_loop_detach(&server->loop);
        if (daemon)
                MHD_stop_daemon(daemon); /* closes the listening socket as well */
        else if (server->listen_fd >= 0)
                close(server->listen_fd);
        gateway_server_renew(server);
}
