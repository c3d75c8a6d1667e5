/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd inside the sd-event loop: three documents to GET, nothing to send. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/duration.h"
#include "gateway/connections.h"
#include "gateway/gateway.h"
#include "gateway/tls.h"

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

static void answer_health(const struct gateway *gateway, struct answer *answer, bool ready)
{
        static char text[sizeof(gateway->reason) + 8];
        const char *reason;

        if (ready ? gateway_is_ready(gateway, &reason) : gateway_is_live(gateway, &reason)) {
                answer_text(answer, MHD_HTTP_OK, "ok\n");
                return;
        }
        snprintf(text, sizeof(text), "%s\n", reason[0] ? reason : "no");
        answer_text(answer, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
        return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void answer_metrics(struct gateway *gateway, struct MHD_Connection *connection, struct answer *answer)
{
        const char *accept = header(connection, "Accept"), *reason;
        bool open;

        if (gateway->token_file[0] &&
            !gateway_token_matches(gateway->token_file, header(connection, "Authorization"))) {
                answer_text(answer, MHD_HTTP_UNAUTHORIZED, "a bearer token is needed\n");
                answer->header = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
                answer->value = "Bearer";
                return;
        }
        /* Old numbers look like live ones: better none. */
        if (!gateway_is_live(gateway, &reason)) {
                answer_health(gateway, answer, false);
                return;
        }
        open = accept && strstr(accept, "application/openmetrics-text");
        *answer = (struct answer){
                .status = MHD_HTTP_OK,
                .body = gateway->document.data ? gateway->document.data : "",
                .size = gateway->document.size,
                .type = open ? OPENMETRICS : PLAIN,
                .shared = &gateway->response[open],
        };
}

void gateway_http_renew(struct gateway *gateway)
{
        for (size_t i = 0; i < ELEMENTS(gateway->response); i++) {
                if (gateway->response[i])
                        MHD_destroy_response(
                                gateway->response[i]); /* those who are being answered keep it */
                gateway->response[i] = NULL;
        }
}

static void find_answer(struct gateway *gateway, struct MHD_Connection *connection, const char *url,
                        const char *method, struct answer *answer)
{
        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
                answer_text(answer, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
                answer->header = MHD_HTTP_HEADER_ALLOW;
                answer->value = "GET, HEAD";
        } else if (strcmp(url, "/healthz") == 0 || strcmp(url, "/livez") == 0) {
                answer_health(gateway, answer, false);
        } else if (strcmp(url, "/readyz") == 0) {
                answer_health(gateway, answer, true);
        } else if (strcmp(url, "/metrics") == 0) {
                answer_metrics(gateway, connection, answer);
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

/* ---- the loop */

static unsigned connections(const struct gateway *gateway)
{
        const union MHD_DaemonInfo *info =
                MHD_get_daemon_info(gateway->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

        return info ? info->num_connections : 0;
}

static void run(struct gateway *gateway)
{
        MHD_UNSIGNED_LONG_LONG timeout;
        uint64_t now = clock_monotonic_usec(), next = connections_expire(now), wait = UINT64_MAX;
        unsigned before;

        /* At its limit it does not listen; that it may again is found out by the next turn only, which
         * nothing would call for: so it is run until a turn changes nothing. */
        do {
                before = connections(gateway);
                MHD_run(gateway->daemon);
        } while (connections(gateway) != before);
        if (MHD_get_timeout(gateway->daemon, &timeout) == MHD_YES)
                wait = timeout * USEC_PER_MSEC;
        if (next != UINT64_MAX && next - now < wait)
                wait = next - now;
        if (wait != UINT64_MAX) {
                sd_event_source_set_time_relative(gateway->http_timer, wait);
                sd_event_source_set_enabled(gateway->http_timer, SD_EVENT_ONESHOT);
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

int gateway_http_start(struct gateway *gateway)
{
        const union MHD_DaemonInfo *info;
        int r;

        struct MHD_OptionItem secure[] = {
                {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, tls_callback()},
                {MHD_OPTION_HTTPS_PRIORITIES, 0, (char[]){TLS_PRIORITIES}},
                {MHD_OPTION_END, 0, NULL},
        };
        struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
        bool tls = tls_is_used();

        gateway->daemon = MHD_start_daemon(
                MHD_USE_EPOLL | (tls ? MHD_USE_TLS : 0), 0, NULL, NULL, on_access, gateway,
                MHD_OPTION_LISTEN_SOCKET, gateway->listen_fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
                MHD_OPTION_CONNECTION_TIMEOUT, CONNECTION_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION, connections_notify, NULL, MHD_OPTION_ARRAY,
                tls ? secure : plain, MHD_OPTION_END);
        if (!gateway->daemon)
                return -EIO;
        info = MHD_get_daemon_info(gateway->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        if (!info)
                return -EIO;
        r = sd_event_add_io(gateway->child.event, &gateway->http_source, info->epoll_fd, EPOLLIN, on_epoll,
                            gateway);
        if (r < 0)
                return r;
        return sd_event_add_time_relative(gateway->child.event, &gateway->http_timer, CLOCK_MONOTONIC, 0, 1,
                                          on_timer, gateway);
}

void gateway_http_stop(struct gateway *gateway)
{
        sd_event_source_disable_unref(gateway->http_source);
        sd_event_source_disable_unref(gateway->http_timer);
        if (gateway->daemon)
                MHD_stop_daemon(gateway->daemon); /* closes the listening socket as well */
        else if (gateway->listen_fd >= 0)
                close(gateway->listen_fd);
        gateway_http_renew(gateway);
}
