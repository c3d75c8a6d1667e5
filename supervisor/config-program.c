/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a jq program compiles, and whether a certificate can be used. libjq and GnuTLS are no libraries
 * for a process that must stay small and must not fall: reconciled-jq and reconciled-gateway are asked,
 * which takes some milliseconds. Before the start and before a reload: what is wrong is a mistake like any
 * other.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/program-path.h"
#include "supervisor/config-internal.h"

#define WAIT_MSEC 10000

static int spawn(char *const *argument, int error_fd, pid_t *ret)
{
        char *const environment[] = {NULL};
        posix_spawn_file_actions_t action;
        int r = posix_spawn_file_actions_init(&action);

        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&action, error_fd, STDERR_FILENO);
        if (r == 0)
                r = posix_spawn(ret, argument[0], &action, NULL, argument, environment);
        posix_spawn_file_actions_destroy(&action);
        return -r;
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

static int ask(char *const *argument, char *complaint, size_t size)
{
        int fd[2], status = 0, r;
        pid_t pid = -1;

        if (pipe2(fd, O_CLOEXEC) < 0)
                return -errno;
        r = spawn(argument, fd[1], &pid);
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

void check_program(struct reader *reader, yaml_node_t *node, const char *key, const char *program)
{
        _cleanup_free_ char *path = program_path("jq", "reconciled-jq");
        char *const argument[] = {path, (char *)(uintptr_t)program, NULL};
        char complaint[512] = "";
        int r;

        if (!program || !program[0])
                return;
        r = path ? ask(argument, complaint, sizeof(complaint)) : -ENOMEM;
        if (r < 0)
                problem_add(reader, node, false, key, "cannot be checked: %s: %s", path ? path : "",
                            strerror(-r));
        else if (r != EXIT_CODE_OK)
                problem_add(reader, node, false, key, "is no jq program: %s", complaint);
}

void check_certificate(struct reader *reader, char *certificate_file, char *key_file)
{
        _cleanup_free_ char *path = program_path("gateway", "reconciled-gateway");
        char *const argument[] = {path, (char[]){"--check-certificate"}, certificate_file, key_file, NULL};
        char complaint[1024] = "";
        int r = path ? ask(argument, complaint, sizeof(complaint)) : -ENOMEM;

        if (r < 0)
                problem_add(reader, NULL, false, "gateway.tls", "cannot be checked: %s: %s",
                            path ? path : "", strerror(-r));
        else if (r != EXIT_CODE_OK)
                problem_add(reader, NULL, false, "gateway.tls", "%s", complaint);
}
