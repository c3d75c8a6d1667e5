/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connection.h"

#include <poll.h>

int http_connection_fd(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        return info ? info->connect_fd : -1;
}

bool http_client_has_gone(struct MHD_Connection *connection)
{
        struct pollfd fd = {.fd = http_connection_fd(connection), .events = POLLRDHUP};

        return fd.fd >= 0 && poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

const char *http_header(struct MHD_Connection *connection, const char *name)
{
        return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}
