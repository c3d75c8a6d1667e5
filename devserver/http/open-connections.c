/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/http/open-connections.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "devserver/server.h"
#include "http/http-loop.h"

struct connection {
        struct connection *next;
        struct MHD_Connection *connection;
};

static void remove_connection(struct server *server, struct MHD_Connection *connection)
{
        struct connection **place = &server->connection;

        while (*place && (*place)->connection != connection)
                place = &(*place)->next;
        if (*place) {
                struct connection *found = *place;

                *place = found->next;
                free(found);
        }
}

void connections_note(void *userdata, struct MHD_Connection *connection, void **state _unused_,
                      enum MHD_ConnectionNotificationCode code)
{
        struct server *server = userdata;
        struct connection *entry;

        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
                remove_connection(server, connection);
                return;
        }
        entry = malloc(sizeof(*entry));
        if (!entry)
                return;
        entry->connection = connection;
        entry->next = server->connection;
        server->connection = entry;
}

void connections_shut(struct server *server, const struct MHD_Connection *except)
{
        for (struct connection *entry = server->connection; entry; entry = entry->next)
                if (entry->connection != except)
                        shutdown(http_connection_fd(entry->connection), SHUT_RDWR);
}
