/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner is asked one thing at a time, and answers before the next: a packet there, a packet back. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/spawn.h"
#include "ipc/spawner/spawner-client.h"
#include "os/descendants.h"
#include "os/file.h"
#include "os/syscall.h"

/* What the spawner does takes a millisecond, and longer if it has to wait for another user's names. */
#define ANSWER_MSEC 5000
#define END_MSEC    2000

static struct {
        int fd;
        pid_t pid;
        uint32_t serial, ping; /* ping: not answered yet; 0 */
        uint64_t pinged_usec;
} spawner = {.fd = -1};

/* ---- its life */

pid_t spawner_pid(void)
{
        return spawner.pid;
}

bool spawner_is(pid_t pid)
{
        return spawner.pid > 0 && pid == spawner.pid;
}

int spawner_start(const char *log_target)
{
        _cleanup_free_ char *path = program_path("spawner", "reconciled-spawner");
        int r;

        if (spawner.pid > 0)
                return 0;
        if (!path)
                return -ENOMEM;
        if (access(path, X_OK) < 0)
                return -errno;
        r = spawn_with_channel(path, log_target, &spawner.pid, &spawner.fd);
        if (r < 0)
                return r;
        spawner.serial = spawner.ping = 0;
        return descendants_spare(spawner.pid,
                                 DESCENDANTS_ANY); /* handlers that are left over are ended without it */
}

void spawner_ended(void)
{
        descendants_spare_no_more(spawner.pid);
        close(spawner.fd);
        spawner.fd = -1;
        spawner.pid = 0;
}

void spawner_await_end(void)
{
        _cleanup_close_ int pidfd = sys_pidfd_open(spawner.pid);
        struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};

        if (pidfd >= 0)
                (void)poll(&poll_fd, 1, END_MSEC);
}

void spawner_stop(void)
{
        int status;

        if (spawner.pid <= 0)
                return;
        (void)sys_kill(spawner.pid, SIGKILL);
        spawner_await_end();
        (void)sys_reap(spawner.pid, &status);
        spawner_ended();
}

/* ---- questions and answers */

static int send_to_spawner(const struct spawner_request *request, const char *const *argument, int fd)
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct iovec part[1 + SPAWNER_ARGUMENTS_MAX] = {{(void *)(uintptr_t)request, sizeof(*request)}};
        struct msghdr message = {.msg_iov = part, .msg_iovlen = 1};
        size_t left = SPAWNER_TEXT_MAX;

        for (; argument && *argument; argument++) {
                size_t size = strlen(*argument) + 1;

                if (message.msg_iovlen == ELEMENTS(part) || size > left)
                        return -E2BIG;
                left -= size;
                part[message.msg_iovlen++] = (struct iovec){(void *)(uintptr_t)*argument, size};
        }
        if (fd >= 0) {
                message.msg_control = &control;
                message.msg_controllen = sizeof(control.room);
                control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
                                                  .cmsg_level = SOL_SOCKET,
                                                  .cmsg_type = SCM_RIGHTS};
                memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        }
        return sendmsg(spawner.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* 1: there is one. */
static int take_answer(struct spawner_answer *ret)
{
        ssize_t r = sys_receive(spawner.fd, ret, sizeof(*ret));

        if (r == -EAGAIN)
                return 0;
        if (r != sizeof(*ret))
                return r < 0 && r != -EMSGSIZE ? (int)r : -ECONNRESET;
        if (ret->serial == spawner.ping)
                spawner.ping = 0;
        return 1;
}

static uint64_t now_msec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int await_answer(uint32_t serial)
{
        struct pollfd poll_fd = {.fd = spawner.fd, .events = POLLIN};
        uint64_t end = now_msec() + ANSWER_MSEC;
        struct spawner_answer answer;

        for (;;) {
                int r = take_answer(&answer);
                uint64_t now = now_msec();

                if (r < 0)
                        return r;
                if (r > 0 && answer.serial == serial)
                        return answer.result;
                if (r == 0 && now >= end)
                        return -ETIMEDOUT;
                if (r == 0 && poll(&poll_fd, 1, (int)(end - now)) < 0 && errno != EINTR)
                        return -errno;
        }
}

static uint32_t next_serial(void)
{
        if (++spawner.serial == 0)
                spawner.serial++;
        return spawner.serial;
}

static int ask_spawner(struct spawner_request *request, const char *const *argument, int fd)
{
        int r;

        if (spawner.pid <= 0)
                return -ECONNRESET;
        request->serial = next_serial();
        r = send_to_spawner(request, argument, fd);
        if (r == -EPIPE)
                return -ECONNRESET;
        return r < 0 ? r : await_answer(request->serial);
}

int spawner_run(enum spawner_program program, bool asked, const char *const *argument, int fd,
                pid_t *ret_pid)
{
        struct spawner_request request = {.order = asked ? SPAWNER_ASK : SPAWNER_START, .program = program};
        int r = ask_spawner(&request, argument, fd);

        if (r <= 0)
                return r < 0 ? r : -EPROTO;
        *ret_pid = r;
        return 0;
}

int spawner_can_read(const char *user, uid_t uid, gid_t gid, const char *path)
{
        struct spawner_request request = {.order = SPAWNER_CAN_READ, .uid = uid, .gid = gid};

        return ask_spawner(&request, (const char *const[]){user, path, NULL}, -1);
}

uint64_t spawner_silence(uint64_t now_usec)
{
        struct spawner_answer answer;
        struct spawner_request request = {.order = SPAWNER_PING};

        if (spawner.pid <= 0)
                return 0;
        while (take_answer(&answer) > 0)
                ;
        if (spawner.ping != 0)
                return now_usec - spawner.pinged_usec;
        request.serial = next_serial();
        (void)send_to_spawner(&request, NULL, -1); /* if that fails, it does not answer either */
        spawner.ping = request.serial;
        spawner.pinged_usec = now_usec;
        return 0;
}
