/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a jq program compiles, a certificate can be used, and a kubeconfig is one. libjq, GnuTLS and
 * readers of credentials are nothing for a process that must stay small and must not fall: reconciled-jq,
 * reconciled-gateway and reconciled-credential are asked, which takes some milliseconds. Before the start
 * and before a reload: what is wrong is a mistake like any other.
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
#include "config/internal.h"
#include "ipc/spawner/client.h"
#include "os/program-path.h"

#define WAIT_MSEC 10000

#define ARGUMENTS_MAX 5

#define ARGUMENT_MAX ((size_t)128 * 1024) /* of the kernel, with the NUL */

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
static int begin(enum spawner_program program, const char *const *argument, int error_fd, pid_t *ret)
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

static int ask(enum spawner_program program, const char *const *argument, char *complaint, size_t size)
{
        int fd[2], status = 0, r;
        pid_t pid = -1;

        if (pipe2(fd, O_CLOEXEC) < 0)
                return -errno;
        r = begin(program, argument, fd[1], &pid);
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
        const char *const argument[] = {program, NULL};
        char complaint[512] = "";
        int r;

        if (!program || !program[0])
                return;
        if (strlen(program) >= ARGUMENT_MAX) {
                problem_add(reader, node, false, key, "is larger than a jq program may be: %zu bytes of %zu",
                            strlen(program), ARGUMENT_MAX - 1);
                return;
        }
        r = ask(SPAWNER_JQ, argument, complaint, sizeof(complaint));
        note_system_error(reader, r);
        if (r < 0)
                problem_add(reader, node, false, key, "cannot be checked: %s: %s",
                            spawner_program(SPAWNER_JQ)->binary, strerror(-r));
        else if (r != EXIT_CODE_OK)
                problem_add(reader, node, false, key, "is no jq program: %s", complaint);
}

void check_kubeconfig(struct reader *reader, yaml_node_t *node, const char *key, const char *path)
{
        const char *const argument[] = {"--check-kubeconfig", path, NULL};
        char complaint[1024] = "";
        int r = ask(SPAWNER_CREDENTIAL, argument, complaint, sizeof(complaint));

        note_system_error(reader, r == EXIT_CODE_IO ? -EIO : r);
        if (r < 0)
                problem_add(reader, node, false, key, "cannot be checked: %s: %s",
                            spawner_program(SPAWNER_CREDENTIAL)->binary, strerror(-r));
        else if (r != EXIT_CODE_OK)
                problem_add(reader, node, false, key, "%s", complaint);
}

static void add_at_watch(struct reader *reader, const struct config_watch *watch, const char *key,
                         const char *complaint)
{
        const char *file = reader->file;
        size_t before = reader->problems->count;

        reader->file = watch->file;
        problem_add(reader, NULL, false, key, "of watch %s: %s", watch->name, complaint);
        reader->file = file;
        if (reader->problems->count > before)
                reader->problems->problem[before].line = watch->line;
}

/* After the whole is read, because the operator's own access may stand behind its watches. */
void check_separate(struct reader *reader, const struct config_watch *watch)
{
        const struct config *config = reader->config;
        const struct config_handler *handler = &watch->handler;
        const char *key = handler->kubernetes_file ? "handler.kubernetes.kubeconfig"
                                                   : "handler.kubernetes.serviceAccount";
        const char *argument[] = {"--check-separate", handler->kubernetes_file, config->kubeconfig,
                                  config->context, NULL};
        _cleanup_free_ char *account = NULL;
        char complaint[1024] = "";
        int r;

        if (handler->kubernetes_account) {
                argument[0] = "--check-account";
                if (asprintf(&account, "%s/%s",
                             handler->kubernetes_namespace ? handler->kubernetes_namespace : "",
                             handler->kubernetes_account) < 0)
                        account = NULL;
                argument[1] = account;
        }
        if (!argument[1]) {
                reader->out_of_memory = true;
                return;
        }
        r = ask(SPAWNER_CREDENTIAL, argument, complaint, sizeof(complaint));
        note_system_error(reader, r);
        if (r < 0)
                add_at_watch(reader, watch, key, strerror(-r));
        else if (r != EXIT_CODE_OK)
                add_at_watch(reader, watch, key, complaint);
}

int config_check_cluster(const struct config *config, struct error *error)
{
        const char *const argument[] = {"--check-kubeconfig", config->kubeconfig, config->context, NULL};
        char complaint[1024] = "";
        int r;

        if (!config->kubeconfig[0])
                return 0;
        r = ask(SPAWNER_CREDENTIAL, argument, complaint, sizeof(complaint));
        if (r < 0)
                return error_set(error, r, "cluster.kubeconfig cannot be checked: %s: %s",
                                 spawner_program(SPAWNER_CREDENTIAL)->binary, strerror(-r));
        return r == EXIT_CODE_OK ? 0 : error_set(error, -EINVAL, "cluster.kubeconfig: %s", complaint);
}

void check_certificate(struct reader *reader, const char *certificate_file, const char *key_file)
{
        const char *const argument[] = {"--check-certificate", certificate_file, key_file, NULL};
        char complaint[1024] = "";
        int r = ask(SPAWNER_GATEWAY, argument, complaint, sizeof(complaint));

        note_system_error(reader, r);
        if (r < 0)
                problem_add(reader, NULL, false, "gateway.tls", "cannot be checked: %s: %s",
                            spawner_program(SPAWNER_GATEWAY)->binary, strerror(-r));
        else if (r != EXIT_CODE_OK)
                problem_add(reader, NULL, false, "gateway.tls", "%s", complaint);
}
