/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/connections.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "http/http-loop.h"

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

void connections_notify(void *userdata _unused_, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code)
{
        if (code == MHD_CONNECTION_NOTIFY_STARTED)
                connection_begun(connection, socket_context);
        else
                forget_client(*socket_context);
}

uint64_t connections_expire(uint64_t now)
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
