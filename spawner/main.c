/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconciled-spawner: starts the programs that ipc/spawner/spawner-program.h names, one request a packet on
 * descriptor 3, until the supervisor is gone. It keeps no state, reads nothing that strangers write, and logs nothing: what
 * fails is the answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit-code.h"
#include "ipc/spawner/spawner-program.h"
#include "os/file.h"
#include "os/syscall.h"

#define CHANNEL_FD 3
#define STACK_SIZE ((size_t)64 * 1024)

extern char **environ;

struct order {
        struct spawner_request request;
        char text[SPAWNER_TEXT_MAX];
        char *argument[1 + SPAWNER_ARGUMENTS_MAX + 1]; /* the first is the program's own place */
        size_t argument_count;                         /* after that */
        int fd;
};

/* ---- starting */

static void reset_all_signals(void)
{
        sigset_t none;

        signal(SIGINT, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        signal(SIGALRM, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the new process: a copy, so that nothing here is seen by anybody else. */
static int become(void *userdata)
{
        static char *const nothing[] = {NULL};
        struct order *order = userdata;
        const struct spawner_program_info *program = spawner_program(order->request.program);
        bool asked = order->request.order == SPAWNER_ASK;
        int place = asked ? STDERR_FILENO : CHANNEL_FD, null = open("/dev/null", O_RDONLY);

        if (!program->keeps_user_rights)
                sys_keep_user_rights_here();
        if (null >= 0)
                dup2(null, STDIN_FILENO);
        if (order->fd == place ? fcntl(place, F_SETFD, 0) < 0 : dup2(order->fd, place) < 0)
                _exit(127);
        sys_close_from(asked ? STDERR_FILENO + 1 : CHANNEL_FD + 1);
        reset_all_signals();
        execve(order->argument[0], order->argument,
               asked && !program->needs_environment ? nothing : environ);
        _exit(127);
}

/* As a fork, but that the new process is the supervisor's child. */
static int fork_program(struct order *order)
{
        static char stack[STACK_SIZE] __attribute__((aligned(64)));
        const struct spawner_program_info *program = spawner_program(order->request.program);
        _cleanup_free_ char *path = program ? program_path(program->folder, program->binary) : NULL;
        int r;

        if (!program || order->fd < 0)
                return -EPROTO;
        if (!path)
                return -ENOMEM;
        if (access(path, X_OK) < 0)
                return -errno;
        order->argument[0] = path;
        r = clone(become, stack + sizeof(stack), CLONE_PARENT | SIGCHLD, order);
        return r < 0 ? -errno : r;
}

/* The supervisor waits, and other users' groups may be asked of another machine. */
#define CAN_READ_SEC 2

/* Its rights alone become that user's. The real and the saved uid stay ours, so no process of that user may send
 * it a signal, and it always comes to its end. */
static int take_rights_of(const char *name, uid_t uid, gid_t gid)
{
        return initgroups(name, gid) < 0 || setresgid(gid, gid, gid) < 0 ||
                               setresuid((uid_t)-1, uid, (uid_t)-1) < 0
                       ? -errno
                       : 0;
}

/* Asked of the kernel, as that user: folders on the way, groups and lists of rights count as well. */
static int can_read(const struct order *order)
{
        int status = 0;
        pid_t pid;

        if (order->argument_count != 2)
                return -EPROTO;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                reset_all_signals();
                alarm(CAN_READ_SEC);
                if (take_rights_of(order->argument[1], order->request.uid, order->request.gid) < 0)
                        _exit(2);
                _exit(faccessat(AT_FDCWD, order->argument[2], R_OK, AT_EACCESS) == 0 ? 1 : 0);
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (!WIFEXITED(status))
                return -ETIMEDOUT;
        return WEXITSTATUS(status) > 1 ? -EPERM : WEXITSTATUS(status);
}

static int carry_out_order(struct order *order)
{
        switch (order->request.order) {
        case SPAWNER_PING:
                return 0;
        case SPAWNER_START:
        case SPAWNER_ASK:
                return fork_program(order);
        case SPAWNER_CAN_READ:
                return can_read(order);
        default:
                return -EPROTO;
        }
}

/* ---- requests */

static int find_arguments(struct order *order, size_t size)
{
        const char *end = order->text + size;

        order->argument_count = 0;
        if (size > 0 && end[-1] != '\0')
                return -EPROTO;
        for (char *text = order->text; text < end; text += strlen(text) + 1) {
                if (order->argument_count == SPAWNER_ARGUMENTS_MAX)
                        return -EPROTO;
                order->argument[++order->argument_count] = text;
        }
        order->argument[order->argument_count + 1] = NULL;
        return 0;
}

static void take_descriptor(struct order *order, struct msghdr *message)
{
        const struct cmsghdr *header = CMSG_FIRSTHDR(message);

        order->fd = -1;
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(&order->fd, CMSG_DATA(header), sizeof(int));
}

/* 1: a request; 0: the supervisor is gone. */
static int receive_order(struct order *order)
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec part[] = {{&order->request, sizeof(order->request)},
                               {order->text, sizeof(order->text)}};
        struct msghdr message = {.msg_iov = part,
                                 .msg_iovlen = ELEMENTS(part),
                                 .msg_control = &control,
                                 .msg_controllen = sizeof(control)};
        ssize_t size;

        do
                size = recvmsg(CHANNEL_FD, &message, MSG_CMSG_CLOEXEC);
        while (size < 0 && errno == EINTR);
        if (size <= 0)
                return size < 0 ? -errno : 0;
        take_descriptor(order, &message);
        if (size < (ssize_t)sizeof(order->request) || message.msg_flags & MSG_TRUNC)
                return -EPROTO;
        return find_arguments(order, (size_t)size - sizeof(order->request)) < 0 ? -EPROTO : 1;
}

static int serve_orders(void)
{
        static struct order order;
        int r;

        while ((r = receive_order(&order)) > 0) {
                struct spawner_answer answer = {.serial = order.request.serial,
                                                .result = carry_out_order(&order)};

                if (order.fd >= 0)
                        close(order.fd);
                if (send(CHANNEL_FD, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
                        return -errno;
        }
        return r;
}

/* ---- main */

/* What the service manager gave the supervisor alone: with it a child, or a plugin that it runs, would speak for it. */
static void forget_service_manager(void)
{
        static const char *const variable[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                               "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};

        for (size_t i = 0; i < ELEMENTS(variable); i++)
                unsetenv(variable[i]);
}

int main(int argc, char **argv)
{
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("reconciled " RECONCILED_VERSION);
                return EXIT_CODE_OK;
        }
        if (argc == 2 && strcmp(argv[1], "--help") == 0) {
                puts("reconciled-spawner is a child of reconciled(1), which starts it; there is nothing to "
                     "run by hand.");
                return EXIT_CODE_OK;
        }
        umask(077);
        forget_service_manager();
        signal(SIGINT, SIG_IGN); /* a terminal's; the supervisor says what follows from it */
        signal(SIGHUP, SIG_IGN);
        signal(SIGTERM,
               SIG_IGN); /* it may come from a stop of the whole control group; the spawner ends when
                                   * its channel is closed */
        /* All that we start stays in this group. So a signal to the supervisor's group, as from a shell's
         * `kill %1` or from timeout(1), reaches the supervisor alone, which carries out the stop. */
        (void)setpgid(0, 0);
        if (sys_set_not_dumpable() < 0 || sys_follow_parent(CHANNEL_FD, SIGKILL) < 0 ||
            sys_set_blocking(CHANNEL_FD) < 0) {
                fprintf(stderr, "%s: not started by reconciled(1): there is no channel on descriptor 3\n",
                        argv[0]);
                return EXIT_CODE_USAGE;
        }
        return serve_orders() < 0 ? EXIT_CODE_SOFTWARE : EXIT_CODE_OK;
}
