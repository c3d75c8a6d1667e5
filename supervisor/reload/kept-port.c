/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/reload/kept-port.h"

#include <string.h>

#include "os/listen.h"

static struct {
        bool begun;
        int fd;
        char *listen; /* NULL: none is kept */
} port;

void kept_port_begin(const struct config *config)
{
        if (port.begun)
                return;
        port.begun = true;
        port.fd = config->gateway ? listen_keep(config->gateway_listen) : -1;
        if (port.fd >= 0)
                port.listen = strdup(config->gateway_listen);
}

bool kept_port_is(const char *listen)
{
        return port.listen && strcmp(port.listen, listen) == 0;
}
