/* SPDX-License-Identifier: Apache-2.0 */
/* The connections that there are, so that they can be broken, the idle ones as well. */
#include <string.h>
#include <sys/socket.h>

#include "devserver/flow.h"

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

void connections_break(struct server *server, const struct MHD_Connection *except)
{
        for (struct connection *entry = server->connection; entry; entry = entry->next) {
                const union MHD_ConnectionInfo *info =
                        MHD_get_connection_info(entry->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

                if (entry->connection != except && info)
                        shutdown(info->connect_fd, SHUT_RDWR);
        }
        flows_end(server);
        watches_cut(server, NULL, true);
        http_run_soon(server);
}
