/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/kube/server.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void server_hang_up(struct server_connection *connection)
{
        struct server *server = connection->server;

        for (size_t i = 0; i < SERVER_CONNECTIONS_MAX; i++)
                if (server->connection[i] == connection)
                        server->connection[i] = NULL;
        if (server->last == connection)
                server->last = NULL;
        sd_event_source_disable_unref(connection->source);
        close(connection->fd);
        text_done(&connection->input);
        free(connection);
}

/* The length of the first complete request in the buffer; 0 when there is none yet. */
static size_t request_size(const struct text *input)
{
        const char *end = input->data ? strstr(input->data, "\r\n\r\n") : NULL, *length;
        size_t size;

        if (!end)
                return 0;
        size = (size_t)(end - input->data) + 4;
        length = strcasestr(input->data, "\r\nContent-Length: ");
        if (length && length < end)
                size += strtoul(length + strlen("\r\nContent-Length: "), NULL, 10);
        return size <= input->size ? size : 0;
}

static void take_request(struct server_connection *connection, size_t size)
{
        struct server *server = connection->server;

        assert(size < sizeof(server->request));
        memcpy(server->request, connection->input.data, size);
        server->request[size] = '\0';
        text_consume(&connection->input, size);
        server->requests++;
        server->last = connection;
        if (server->on_request)
                server->on_request(connection, server->request);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct server_connection *connection = userdata;
        char buffer[4096];
        ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
        size_t size;

        (void)source;
        (void)events;
        if (n <= 0) {
                if (n == 0 || errno != EAGAIN)
                        server_hang_up(connection);
                return 0;
        }
        text_append(&connection->input, buffer, (size_t)n);
        size = request_size(&connection->input);
        if (size > 0)
                take_request(connection, size);
        return 0;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct server *server = userdata;
        struct server_connection *connection = calloc(1, sizeof(*connection));
        size_t i = 0;
        int r;

        (void)source;
        (void)events;
        assert(connection);
        connection->server = server;
        connection->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        assert(connection->fd >= 0);
        r = sd_event_add_io(server->event, &connection->source, connection->fd, EPOLLIN, on_input,
                            connection);
        assert(r >= 0);
        while (i < SERVER_CONNECTIONS_MAX && server->connection[i])
                i++;
        assert(i < SERVER_CONNECTIONS_MAX);
        server->connection[i] = connection;
        server->connections++;
        return 0;
}

void server_start(struct server *server, sd_event *event)
{
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof(address);
        int r;

        *server = (struct server){.event = event};
        server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert(server->fd >= 0);
        r = bind(server->fd, (struct sockaddr *)&address, size);
        assert(r == 0);
        r = listen(server->fd, SERVER_CONNECTIONS_MAX);
        assert(r == 0);
        r = getsockname(server->fd, (struct sockaddr *)&address, &size);
        assert(r == 0);
        server->port = ntohs(address.sin_port);
        snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d", server->port);
        r = sd_event_add_io(event, &server->source, server->fd, EPOLLIN, on_connection, server);
        assert(r >= 0);
}

void server_say_bytes(struct server_connection *connection, const void *bytes, size_t size)
{
        const char *at = bytes;

        while (size > 0) {
                ssize_t n = send(connection->fd, at, size, MSG_NOSIGNAL);

                if (n < 0)
                        return; /* the client hung up: its own business */
                at += n;
                size -= (size_t)n;
        }
}

void server_say(struct server_connection *connection, const char *text)
{
        server_say_bytes(connection, text, strlen(text));
}

void server_answer(struct server_connection *connection, const char *status, const char *headers,
                   const char *body)
{
        struct text text = TEXT_EMPTY;

        text_printf(&text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n%s", status, strlen(body), headers,
                    body);
        assert(!text.failed);
        server_say_bytes(connection, text.data, text.size);
        text_done(&text);
}

void server_stop(struct server *server)
{
        for (size_t i = 0; i < SERVER_CONNECTIONS_MAX; i++)
                if (server->connection[i])
                        server_hang_up(server->connection[i]);
        server->source = sd_event_source_disable_unref(server->source);
        if (server->fd >= 0)
                close(server->fd);
        server->fd = -1;
}
