/* SPDX-License-Identifier: Apache-2.0 */
#include "os/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

/* No names of hosts: nothing is asked of a DNS. */

#define BACKLOG 64

union listen_address {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
};

static int parse_inet(const char *where, union listen_address *ret, socklen_t *ret_size)
{
        const char *colon = strrchr(where, ':');
        char host[64];
        uint16_t port;
        size_t length;

        if (!colon || (size_t)(colon - where) >= sizeof(host))
                return -EINVAL;
        length = (size_t)(colon - where);
        memcpy(host, where, length);
        host[length] = '\0';
        port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
        if (host[0] == '[' && host[length - 1] == ']') {
                host[length - 1] = '\0';
                ret->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
                *ret_size = sizeof(ret->in6);
                return inet_pton(AF_INET6, host + 1, &ret->in6.sin6_addr) == 1 ? 0 : -EINVAL;
        }
        ret->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
        *ret_size = sizeof(ret->in);
        return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &ret->in.sin_addr) ==
                               1
                       ? 0
                       : -EINVAL;
}

static int parse_address(const char *where, union listen_address *ret, socklen_t *ret_size)
{
        if (strncmp(where, "unix:", 5) != 0)
                return parse_inet(where, ret, ret_size);
        if (!where[5])
                return -EINVAL; /* an address without a path is valid for the kernel */
        ret->un = (struct sockaddr_un){.sun_family = AF_UNIX};
        *ret_size = sizeof(ret->un);
        return snprintf(ret->un.sun_path, sizeof(ret->un.sun_path), "%s", where + 5) <
                               (int)sizeof(ret->un.sun_path)
                       ? 0
                       : -ENAMETOOLONG;
}

/* Shares the port with other sockets of this user that share it: nobody else gets it while one of them has
 * it. */
static int share_port(int fd)
{
        return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &(int){1}, sizeof(int));
}

/* Connections of a former life do not matter if they have this as well: they get it from the socket that they
 * came to. */
static int reuse_port(int fd)
{
        return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
}

static int open_socket(const union listen_address *address, int *ret)
{
        *ret = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return *ret < 0 ? -errno : 0;
}

/* A user who may enter the folder of a Unix socket may ask. The mode is not set by the path: the owner of the folder
 * may have put a link there meanwhile. */
static int bind_address(int fd, const union listen_address *address, socklen_t size)
{
        mode_t mask = umask(0111);
        int r = bind(fd, &address->any, size) < 0 ? -errno : 0;

        (void)umask(mask);
        return r;
}

int listen_open(const char *where, bool kept, char **ret_socket_path, struct error *error)
{
        union listen_address address = {0};
        socklen_t size = 0;
        _cleanup_close_ int fd = -1;
        int r = parse_address(where, &address, &size);

        if (r < 0)
                return error_set(error, r, "\"%s\" is not an address to listen on", where);
        r = open_socket(&address, &fd);
        if (r < 0)
                return error_set(error, r, "%s: %s", where, strerror(-r));
        if (address.any.sa_family == AF_UNIX)
                (void)unlink(address.un.sun_path); /* of a former life */
        else
                (void)(reuse_port(fd) < 0 || (kept && share_port(fd) < 0));
        r = bind_address(fd, &address, size);
        if (r < 0)
                return error_set(error, r, "%s: %s", where, strerror(-r));
        /* Its connections get this from the socket, and are not in the way of listen_keep() in the next life. */
        if (address.any.sa_family != AF_UNIX && !kept)
                (void)share_port(fd);
        if (listen(fd, BACKLOG) < 0)
                return error_set(error, -errno, "%s: %s", where, strerror(errno));
        if (address.any.sa_family == AF_UNIX) {
                *ret_socket_path = strdup(address.un.sun_path);
                if (!*ret_socket_path)
                        return error_set(error, -ENOMEM, "no memory");
        }
        return TAKE_FD(fd);
}

/* Sockets that share a port are of one user, but not of one operator: another one may have it. */
static int try_port(const union listen_address *address, socklen_t size)
{
        _cleanup_close_ int fd = -1;
        int r = open_socket(address, &fd);

        return r < 0 ? r : reuse_port(fd) < 0 || bind(fd, &address->any, size) < 0 ? -errno : 0;
}

int listen_keep(const char *where)
{
        union listen_address address = {0};
        socklen_t size = 0;
        _cleanup_close_ int fd = -1;
        int r = parse_address(where, &address, &size);

        if (r >= 0 && address.any.sa_family == AF_UNIX)
                r = -EAFNOSUPPORT;
        if (r >= 0)
                r = try_port(&address, size);
        if (r >= 0)
                r = open_socket(&address, &fd);
        if (r < 0)
                return r;
        /* Without SO_REUSEADDR: any other process that sets it too would get the port as long as nobody
         * listens there. The connections of a former life have SO_REUSEPORT, so they do not matter. */
        return share_port(fd) < 0 || bind(fd, &address.any, size) < 0 ? -errno : TAKE_FD(fd);
}
