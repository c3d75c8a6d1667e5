/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/try-server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "os/file.h"
#include "os/syscall.h"

#define OWN_ARGUMENTS 6
#define ADDRESS_MAX   128
#define LOOK_MSEC     100

_noreturn_ static void exec_server(const char *const *argument, const char *log, int output, pid_t parent)
{
        int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        (void)setpgid(0, 0); /* Ctrl-C is not for it */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it has died before that */
                _exit(127);
        dup2(output, STDOUT_FILENO);
        if (fd >= 0)
                dup2(fd, STDERR_FILENO);
        execv(argument[0], (char *const *)(uintptr_t)argument);
        _exit(127);
}

/* The signals are blocked: a caller that has a loop for them has not begun it yet. */
static bool is_interrupted(void)
{
        static const int interrupt[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
        sigset_t pending;

        sigpending(&pending);
        for (size_t i = 0; i < ELEMENTS(interrupt); i++)
                if (sigismember(&pending, interrupt[i]))
                        return true;
        return false;
}

static int await_output(int fd)
{
        struct pollfd output = {.fd = fd, .events = POLLIN};
        int r;

        do {
                if (is_interrupted())
                        return -EINTR;
                r = poll(&output, 1, LOOK_MSEC);
        } while (r == 0 || (r < 0 && errno == EINTR));
        return r < 0 ? -errno : 0;
}

/* The server prints its address when it is ready, and closes its output if it cannot start. */
static int await_address(int fd, char **ret)
{
        char address[ADDRESS_MAX];
        size_t size = 0;
        int r;

        while (size < sizeof(address)) {
                r = await_output(fd);
                if (r < 0)
                        return r;
                if (sys_read(fd, &address[size], 1) != 1)
                        break;
                if (address[size] == '\n') {
                        *ret = strndup(address, size);
                        return *ret ? 0 : -ENOMEM;
                }
                size++;
        }
        return -EIO; /* and it has said why */
}

/* Every user of the machine reaches the server's port; the objects are for this user and the handler. */
static int write_token(const char *path, char **ret)
{
        const struct file_rules rules = {.mode = 0600};
        _cleanup_free_ char *new = format_string("%s.new", path);
        uint8_t random[32];
        char token[2 * sizeof(random) + 1];

        if (!new)
                return -ENOMEM;
        if (getrandom(random, sizeof(random), 0) != sizeof(random))
                return -EIO;
        for (size_t i = 0; i < sizeof(random); i++)
                snprintf(token + 2 * i, 3, "%02x", random[i]);
        *ret = strdup(token);
        return *ret ? file_replace(path, new, token, strlen(token), &rules) : -ENOMEM;
}

static int fork_server(struct try_server *server, const char *const *argument, const char *log)
{
        int output[2], r = sys_pipe(output);
        pid_t parent = getpid();

        if (r < 0)
                return r;
        server->pid = sys_fork();
        if (server->pid == 0)
                exec_server(argument, log, output[1], parent);
        close(output[1]);
        if (server->pid > 0) {
                r = await_address(output[0], &server->url);
        } else {
                r = server->pid;
                server->pid = 0;
        }
        close(output[0]);
        return r;
}

int try_server_start(struct try_server *server, const char *folder, const char *const *argument,
                     const char *log)
{
        _cleanup_free_ char *path = program_path("devserver", "reconciled-devserver");
        _cleanup_free_ char *token = format_string("%s/token", folder);
        _cleanup_free_ const char **all = NULL;
        size_t count = 0;
        int r;

        server->kubeconfig = format_string("%s/kubeconfig", folder);
        while (argument[count])
                count++;
        all = calloc(count + OWN_ARGUMENTS, sizeof(char *));
        if (!path || !token || !server->kubeconfig || !all)
                return -ENOMEM;
        if (access(path, X_OK) < 0) {
                fprintf(stderr,
                        "reconciledctl: %s: %s; this server is needed (package reconciled-devserver)\n",
                        path, strerror(errno));
                return -EIO;
        }
        r = write_token(token, &server->token);
        if (r < 0)
                return r;
        memcpy(all, (const char *const[]){path, "--kubeconfig", server->kubeconfig, "--token-file", token},
               (OWN_ARGUMENTS - 1) * sizeof(char *));
        memcpy(all + OWN_ARGUMENTS - 1, argument, count * sizeof(char *));
        return fork_server(server, all, log);
}

void try_server_end(struct try_server *server)
{
        if (server->pid > 0) {
                (void)sys_kill(server->pid, SIGKILL);
                (void)waitpid(server->pid, NULL, 0);
        }
        free(server->kubeconfig);
        free(server->url);
        if (server->token)
                explicit_bzero(server->token, strlen(server->token));
        free(server->token);
        *server = (struct try_server){0};
}
