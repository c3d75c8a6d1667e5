/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distance: a relay on loopback through which every byte takes its time, in both directions, so that an API server on
 * the same machine is as far away as one elsewhere. Bandwidth is not limited.
 *
 *     bench-relay PORT MICROSECONDS     to 127.0.0.1:PORT, each way; prints the port that it listens on
 *
 * All bytes wait for the same time, so one queue in the order of their arrival is enough.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define READ_MAX   65536
#define EVENTS_MAX 64

/* One end of a connection. Both are freed when both have said that no more will come. */
struct end {
        int fd;
        struct end *other;
        int is_over; /* nothing more is read here, and the other end has been told */
};

struct chunk {
        struct chunk *next;
        uint64_t due;
        struct end *to;
        size_t size; /* 0: the end of what comes */
        char data[];
};

static struct {
        int epoll, listener;
        uint64_t delay_ns;
        struct sockaddr_in server;
        struct chunk *first, **last;
} relay = {.last = &relay.first};

static _Noreturn void die(const char *what)
{
        fprintf(stderr, "bench-relay: %s: %s\n", what, strerror(errno));
        exit(1);
}

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void watch_fd(int fd, void *what)
{
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

        if (epoll_ctl(relay.epoll, EPOLL_CTL_ADD, fd, &event) < 0)
                die("epoll");
}

static struct end *new_end(int fd)
{
        struct end *end = calloc(1, sizeof(*end));
        int on = 1;

        if (!end || fd < 0)
                die("a connection");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        end->fd = fd;
        return end;
}

static void take_connection(void)
{
        int fd = accept4(relay.listener, NULL, NULL, SOCK_CLOEXEC),
            to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct end *near = new_end(fd), *far = new_end(to);

        if (connect(to, (struct sockaddr *)&relay.server, sizeof(relay.server)) < 0)
                die("the server");
        near->other = far;
        far->other = near;
        watch_fd(fd, near);
        watch_fd(to, far);
}

static void take_bytes(struct end *from)
{
        struct chunk *chunk = malloc(sizeof(*chunk) + READ_MAX);
        ssize_t size;

        if (!chunk)
                die("memory");
        size = read(from->fd, chunk->data, READ_MAX);
        chunk->size = size > 0 ? (size_t)size : 0;
        if (chunk->size == 0)
                epoll_ctl(relay.epoll, EPOLL_CTL_DEL, from->fd, NULL);
        chunk = realloc(chunk, sizeof(*chunk) + chunk->size);
        if (!chunk)
                die("memory");
        chunk->next = NULL;
        chunk->due = now_ns() + relay.delay_ns;
        chunk->to = from->other;
        *relay.last = chunk;
        relay.last = &chunk->next;
}

static void end_connection(struct end *end)
{
        close(end->fd);
        close(end->other->fd);
        free(end->other);
        free(end);
}

static void deliver(const struct chunk *chunk)
{
        struct end *to = chunk->to;

        for (size_t done = 0; done < chunk->size;) {
                ssize_t n = send(to->fd, chunk->data + done, chunk->size - done, MSG_NOSIGNAL);

                if (n <= 0)
                        return; /* it has gone; its own end comes as well */
                done += (size_t)n;
        }
        if (chunk->size > 0)
                return;
        shutdown(to->fd, SHUT_WR);
        to->other->is_over = 1;
        if (to->is_over)
                end_connection(to);
}

static void deliver_due(void)
{
        while (relay.first && relay.first->due <= now_ns()) {
                struct chunk *chunk = relay.first;

                relay.first = chunk->next;
                if (!relay.first)
                        relay.last = &relay.first;
                deliver(chunk);
                free(chunk);
        }
}

static int wait_events(struct epoll_event event[EVENTS_MAX])
{
        uint64_t now = now_ns(), due = relay.first ? relay.first->due : 0, left = due > now ? due - now : 0;
        struct timespec timeout = {.tv_sec = (time_t)(left / 1000000000),
                                   .tv_nsec = (long)(left % 1000000000)};
        int count = epoll_pwait2(relay.epoll, event, EVENTS_MAX, relay.first ? &timeout : NULL, NULL);

        if (count < 0 && errno != EINTR)
                die("epoll");
        return count;
}

int main(int argc, char *argv[])
{
        struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct epoll_event event[EVENTS_MAX];
        socklen_t size = sizeof(own);

        if (argc != 3) {
                fputs("usage: bench-relay PORT MICROSECONDS\n", stderr);
                return 64;
        }
        relay.server = own;
        relay.server.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
        relay.delay_ns = strtoull(argv[2], NULL, 10) * 1000;
        relay.epoll = epoll_create1(EPOLL_CLOEXEC);
        relay.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(relay.listener, (struct sockaddr *)&own, sizeof(own)) < 0 ||
            listen(relay.listener, SOMAXCONN) < 0 ||
            getsockname(relay.listener, (struct sockaddr *)&own, &size) < 0)
                die("a socket");
        watch_fd(relay.listener, NULL);
        printf("%u\n", ntohs(own.sin_port));
        fflush(stdout);
        for (;;) {
                int count = wait_events(event);

                for (int i = 0; i < count; i++) {
                        if (event[i].data.ptr)
                                take_bytes(event[i].data.ptr);
                        else
                                take_connection();
                }
                deliver_due();
        }
}
