/* SPDX-License-Identifier: Apache-2.0 */
#include "config/read/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/message.h"
#include "ipc/spawner/spawner-client.h"
#include "os/file.h"

#define WAIT_MSEC     10000
#define ARGUMENTS_MAX 5

static int spawn(enum spawner_program program, const char *const *more, int error_fd, pid_t *ret)
{
        const struct spawner_program_info *info = spawner_program(program);
        _cleanup_free_ char *path = program_path(info->folder, info->binary);
        char *argument[ARGUMENTS_MAX + 1] = {path}, *const nothing[] = {NULL};
        posix_spawn_file_actions_t action;
        int r;

        if (!path)
                return -ENOMEM;
        for (size_t i = 1; i < ARGUMENTS_MAX && *more; i++)
                argument[i] = (char *)(uintptr_t)*more++;
        r = posix_spawn_file_actions_init(&action);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&action, error_fd, STDERR_FILENO);
        if (r == 0)
                r = posix_spawn(ret, path, &action, NULL, argument,
                                info->needs_environment ? environ : nothing);
        posix_spawn_file_actions_destroy(&action);
        return -r;
}

/* A supervisor that runs can start nothing itself; at its start, and in reconciledctl, there is no spawner.
 */
static int begin_program(enum spawner_program program, const char *const *argument, int error_fd, pid_t *ret)
{
        return spawner_pid() > 0 ? spawner_run(program, true, argument, error_fd, ret)
                                 : spawn(program, argument, error_fd, ret);
}

/* Until it ends, or says nothing for too long. */
static void read_complaint(int fd, char *complaint, size_t size)
{
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        size_t length = 0;
        ssize_t n = 1;

        while (length < size - 1 && n > 0 && poll(&poll_fd, 1, WAIT_MSEC) > 0) {
                n = read(fd, complaint + length, size - 1 - length);
                length += n > 0 ? (size_t)n : 0;
        }
        complaint[length] = '\0';
        complaint[strcspn(complaint, "\n")] = '\0';
        utf8_clean(complaint);
}

int program_ask(enum spawner_program program, const char *const *argument, char *complaint, size_t size)
{
        int fd[2], status = 0, r;
        pid_t pid = -1;

        if (pipe2(fd, O_CLOEXEC) < 0)
                return -errno;
        r = begin_program(program, argument, fd[1], &pid);
        close(fd[1]);
        if (r >= 0 && pid > 0) {
                read_complaint(fd[0], complaint, size);
                kill(pid, SIGKILL); /* one that has ended does not mind */
                while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                        ;
        }
        close(fd[0]);
        return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : -ETIMEDOUT;
}
