/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http-loop.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/duration.h"

static unsigned connections(struct MHD_Daemon *daemon)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

        return info ? info->num_connections : 0;
}

static void run_daemon(struct http_loop *loop)
{
        uint64_t now = clock_monotonic_usec(), next = loop->expire ? loop->expire(now) : UINT64_MAX,
                 wait = UINT64_MAX;
        MHD_UNSIGNED_LONG_LONG timeout;
        unsigned before;

        /* At its limit of connections the daemon does not listen, and it finds out that it may again in its
         * next run only, which nothing would call for: so it is run until a run changes nothing. */
        do {
                before = connections(loop->daemon);
                MHD_run(loop->daemon);
        } while (connections(loop->daemon) != before);
        if (MHD_get_timeout(loop->daemon, &timeout) == MHD_YES)
                wait = timeout * USEC_PER_MSEC;
        if (next != UINT64_MAX && next - now < wait)
                wait = next - now;
        if (wait != UINT64_MAX) {
                sd_event_source_set_time_relative(loop->timer, wait);
                sd_event_source_set_enabled(loop->timer, SD_EVENT_ONESHOT);
        }
}

static int on_http_io(sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_,
                      void *userdata)
{
        run_daemon(userdata);
        return 0;
}

static int on_http_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        run_daemon(userdata);
        return 0;
}

static int on_http_soon(sd_event_source *source _unused_, void *userdata)
{
        run_daemon(userdata);
        return 0;
}

int http_loop_attach(struct http_loop *loop, sd_event *event, struct MHD_Daemon *daemon,
                     uint64_t (*expire)(uint64_t now_usec))
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
        int r;

        assert(!loop->daemon && !loop->io);
        loop->daemon = daemon;
        loop->expire = expire;
        if (!info)
                return -EIO;
        r = sd_event_add_io(event, &loop->io, info->epoll_fd, EPOLLIN, on_http_io, loop);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &loop->timer, CLOCK_MONOTONIC, 0, 1, on_http_timer,
                                               loop);
        if (r >= 0)
                r = sd_event_add_defer(event, &loop->soon, on_http_soon, loop);
        return r < 0 ? r : 0;
}

void http_loop_run_soon(struct http_loop *loop)
{
        if (loop->soon)
                sd_event_source_set_enabled(loop->soon, SD_EVENT_ONESHOT);
}

void http_loop_detach(struct http_loop *loop)
{
        loop->io = sd_event_source_disable_unref(loop->io);
        loop->timer = sd_event_source_disable_unref(loop->timer);
        loop->soon = sd_event_source_disable_unref(loop->soon);
        loop->daemon = NULL;
}

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
