/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/http-server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "gateway/tls.h"
#include "http/http-loop.h"
#include "os/syscall.h"

/* The file is read for each request, so that a new token is in force at once. */

#define TOKEN_MAX 4096
#define SCHEME    "Bearer "

/* Takes as long for a wrong token as for the right one. */
static bool equal(const char *a, size_t a_size, const char *b, size_t b_size)
{
        unsigned char difference = a_size != b_size;

        for (size_t i = 0; i < a_size; i++)
                difference |= (unsigned char)(a[i] ^ b[i < b_size ? i : 0]);
        return difference == 0;
}

bool gateway_token_matches(const char *file, const char *authorization)
{
        _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        char token[TOKEN_MAX + 1];
        ssize_t size = fd < 0 ? -1 : sys_read(fd, token, TOKEN_MAX);
        bool matches = false;

        while (size > 0 && (token[size - 1] == '\n' || token[size - 1] == '\r'))
                size--;
        /* A file that is not there or empty lets nobody in. */
        if (size > 0 && authorization && strncasecmp(authorization, SCHEME, strlen(SCHEME)) == 0) {
                authorization += strlen(SCHEME);
                matches = equal(authorization, strlen(authorization), token, (size_t)size);
        }
        explicit_bzero(token, sizeof(token));
        return matches;
}

#define CONNECTION_TIMEOUT_S 5U
#define CONNECTION_MEMORY    ((size_t)16 * 1024)
#define TLS_PRIORITIES       "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define OPENMETRICS          "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define PLAIN                "text/plain; version=0.0.4; charset=utf-8"

struct answer {
        unsigned status;
        const char *body, *type, *header, *value;
        size_t size;
        struct MHD_Response **shared; /* made once for all who ask; NULL: for this answer alone */
};

/* ---- what is asked for */

static void answer_text(struct answer *answer, unsigned status, const char *text)
{
        *answer =
                (struct answer){.status = status, .body = text, .size = strlen(text), .type = "text/plain"};
}

static bool is_fresh(const struct report *report, const char **ret_reason)
{
        *ret_reason = "the supervisor has said nothing yet";
        if (report->told_monotonic == 0)
                return false;
        *ret_reason = "the supervisor is silent";
        return clock_monotonic_usec() - report->told_monotonic <= report->deadline_usec;
}

/* Live and ready as a client may believe it now: an old report says that the supervisor is silent. *ret_reason is
 * borrowed until the next report_take(). */
static bool report_is_live(const struct report *report, const char **ret_reason)
{
        if (!is_fresh(report, ret_reason))
                return false;
        *ret_reason = report->reason;
        return report->live;
}

static bool report_is_ready(const struct report *report, const char **ret_reason)
{
        return report_is_live(report, ret_reason) && report->ready;
}

static void serve_health(const struct gateway_server *server, struct answer *answer, bool ready)
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
                serve_health(server, answer, false);
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
                serve_health(server, answer, false);
        } else if (strcmp(url, "/readyz") == 0) {
                serve_health(server, answer, true);
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
        /* Where a request ends, libmicrohttpd and a proxy before it may read differently (two lengths, a length
         * and chunks, folded lines). So a connection gets one answer, and nothing that is smuggled in after the
         * request counts as another one. */
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
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

/* ---- who is connected */

/*
 * The connections, and how long they may last. libmicrohttpd bounds the silence of a connection, not its
 * age: a client that sends a byte now and then would keep its place forever, and a few hundred of them all
 * places. So a connection has an absolute deadline, and one above the limit takes the place of the oldest
 * one: of its own address first.
 */
#define CONNECTIONS_MAX         512U /* as libmicrohttpd bounds them */
#define CONNECTIONS_TOTAL       480U /* as many stay: there is room for those who come */
#define CONNECTIONS_PER_ADDRESS 64U
#define CONNECTION_AGE_USEC     UINT64_C(10000000)

struct client {
        struct client *newer, *older;
        struct MHD_Connection *connection;
        uint64_t since;            /* CLOCK_MONOTONIC */
        unsigned char address[16]; /* zeros: a Unix socket, which knows none */
        bool ended;
};

static struct {
        struct client *oldest, *newest;
        unsigned count;
} clients;

static void take_address(struct client *client, const struct sockaddr *address)
{
        if (address && address->sa_family == AF_INET)
                memcpy(client->address, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        else if (address && address->sa_family == AF_INET6)
                memcpy(client->address, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                       16);
}

/* libmicrohttpd may overlook the end of a socket; with nothing to come the shortest timeout finds it. */
static void end_connection(struct client *client)
{
        int fd = http_connection_fd(client->connection);

        if (client->ended)
                return;
        client->ended = true;
        clients.count--;
        if (fd >= 0)
                (void)shutdown(fd, SHUT_RDWR);
        (void)MHD_set_connection_option(client->connection, MHD_CONNECTION_OPTION_TIMEOUT, 1U);
}

static bool has_address(const struct client *client)
{
        static const unsigned char none[sizeof(client->address)];

        return memcmp(client->address, none, sizeof(none)) != 0;
}

/* The oldest one of this address where that has too many, or of all. NULL: nobody has to go. */
static struct client *too_many(const struct client *newcomer)
{
        struct client *oldest = NULL, *of_address = NULL;
        unsigned same = 0;

        for (struct client *client = clients.newest; client; client = client->older) {
                if (client->ended || client == newcomer)
                        continue;
                oldest = client;
                if (has_address(newcomer) &&
                    memcmp(client->address, newcomer->address, sizeof(client->address)) == 0) {
                        same++;
                        of_address = client;
                }
        }
        if (same >= CONNECTIONS_PER_ADDRESS)
                return of_address;
        return clients.count > CONNECTIONS_TOTAL ? oldest : NULL;
}

static void connection_begun(struct MHD_Connection *connection, void **context)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        struct client *client = calloc(1, sizeof(*client)), *victim;

        if (!client)
                return; /* libmicrohttpd's own bounds hold */
        *client = (struct client){
                .connection = connection, .since = clock_monotonic_usec(), .older = clients.newest};
        take_address(client, info ? info->client_addr : NULL);
        *(clients.newest ? &clients.newest->newer : &clients.oldest) = client;
        clients.newest = client;
        clients.count++;
        *context = client;
        victim = too_many(client);
        if (victim)
                end_connection(victim);
}

static void forget_client(struct client *client)
{
        if (!client)
                return;
        *(client->newer ? &client->newer->older : &clients.newest) = client->older;
        *(client->older ? &client->older->newer : &clients.oldest) = client->newer;
        clients.count -= !client->ended;
        free(client);
}

/* For MHD_OPTION_NOTIFY_CONNECTION. One list a process. */
static void connections_notify(void *userdata _unused_, struct MHD_Connection *connection,
                               void **socket_context, enum MHD_ConnectionNotificationCode code)
{
        if (code == MHD_CONNECTION_NOTIFY_STARTED)
                connection_begun(connection, socket_context);
        else
                forget_client(*socket_context);
}

/* Ends those that are too old at `now` (CLOCK_MONOTONIC). Returns when the next one will be; UINT64_MAX if there is
 * none. */
static uint64_t connections_expire(uint64_t now)
{
        for (struct client *client = clients.oldest; client; client = client->newer) {
                if (client->ended)
                        continue;
                if (now < client->since + CONNECTION_AGE_USEC)
                        return client->since + CONNECTION_AGE_USEC;
                end_connection(client);
        }
        return UINT64_MAX;
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

#define DOCUMENT_MAX ((size_t)64 * 1024 * 1024)

int report_take(struct report *report, const struct message_metrics *metrics)
{
        int renewed = 0;

        if (report->coming.size + metrics->body_size > DOCUMENT_MAX)
                return -EPROTO;
        text_append(&report->coming, metrics->body, metrics->body_size);
        if (!metrics->last)
                return 0;
        report->live = metrics->live;
        report->ready = metrics->ready;
        snprintf(report->reason, sizeof(report->reason), "%s", metrics->reason);
        report->told_monotonic = clock_monotonic_usec();
        if (!report->coming.failed) {
                text_done(&report->document);
                report->document = report->coming;
                report->coming = TEXT_EMPTY;
                renewed = 1;
        }
        text_done(&report->coming);
        report->coming = TEXT_EMPTY;
        return renewed;
}

void report_done(struct report *report)
{
        text_done(&report->document);
        text_done(&report->coming);
}
