/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a jq program compiles, a certificate can be used, and a kubeconfig is one. */
#include "config/check/check-program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "config/read/problem.h"
#include "ipc/message.h"
#include "ipc/spawner/spawner-client.h"
#include "os/file.h"
#include "os/folder.h"

#define WAIT_MSEC     10000
#define ARGUMENTS_MAX 5

static int spawn_check(enum spawner_program program, const char *const *more, int error_fd, pid_t *ret)
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
                                 : spawn_check(program, argument, error_fd, ret);
}

/* Waits until the program ends, or prints nothing for too long. */
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

static int program_ask(enum spawner_program program, const char *const *argument, char *complaint,
                       size_t size)
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

#define ARGUMENT_MAX ((size_t)128 * 1024) /* of the kernel, with the NUL */

/* Notes the problem that the program reports; said: its subject. */
static void ask_about(struct reader *reader, const yaml_node_t *node, const char *key,
                      enum spawner_program program, const char *const *argument, const char *said)
{
        char complaint[1024] = "";
        int r = program_ask(program, argument, complaint, sizeof(complaint));

        note_system_error(reader, r == EXIT_CODE_IO ? -EIO : r);
        if (r < 0)
                problem_add(reader, node, false, key, "cannot be checked: %s: %s",
                            spawner_program(program)->binary, strerror(-r));
        else if (r != EXIT_CODE_OK)
                problem_add(reader, node, false, key, "%s%s", said, complaint);
}

void check_program(struct reader *reader, yaml_node_t *node, const char *key, const char *program)
{
        if (!program || !program[0])
                return;
        if (strlen(program) >= ARGUMENT_MAX)
                problem_add(reader, node, false, key,
                            "is too large for a jq program: %zu bytes; at most %zu", strlen(program),
                            ARGUMENT_MAX - 1);
        else
                ask_about(reader, node, key, SPAWNER_JQ, (const char *const[]){program, NULL},
                          "is not a jq program: ");
}

void check_kubeconfig(struct reader *reader, yaml_node_t *node, const char *key, const char *path)
{
        ask_about(reader, node, key, SPAWNER_CREDENTIAL,
                  (const char *const[]){"--check-kubeconfig", path, NULL}, "");
}

static void add_at_watch(struct reader *reader, const struct config_watch *watch, bool warning,
                         const char *key, const char *complaint)
{
        const char *file = reader->file;
        size_t before = reader->problems->count;

        reader->file = watch->file;
        problem_add(reader, NULL, warning, key, "of watch %s: %s", watch->name, complaint);
        reader->file = file;
        if (reader->problems->count > before)
                reader->problems->problem[before].line = watch->line;
}

/* copied: a file whose text others may have made so is no error; the operator copies none that is refused here. */
static void ask_separate(struct reader *reader, const struct config_watch *watch, bool copied,
                         const char *key, const char *mode, const char *what)
{
        const struct config *config = reader->config;
        const char *argument[] = {mode, what, config->kubeconfig, config->context, NULL};
        char complaint[1024] = "";
        int r = program_ask(SPAWNER_CREDENTIAL, argument, complaint, sizeof(complaint));

        note_system_error(reader, r);
        if (r < 0)
                add_at_watch(reader, watch, false, key, strerror(-r));
        else if (r != EXIT_CODE_OK)
                add_at_watch(reader, watch, copied && file_is_of_others(what), key, complaint);
}

/* Called once the whole file is read, because `cluster` may follow the watches. */
void check_separate(struct reader *reader, const struct config_watch *watch)
{
        const struct config_handler *handler = &watch->handler;
        const char *space = handler->kubernetes_namespace ? handler->kubernetes_namespace : "";
        _cleanup_free_ char *account = NULL;

        for (size_t i = 0; i < handler->credentials_count; i++)
                ask_separate(reader, watch, true, "handler.credentials", "--check-separate",
                             handler->credentials[i].value);
        if (handler->kubernetes_file && handler->kubernetes_account)
                return; /* another check complains */
        if (handler->kubernetes_file)
                ask_separate(reader, watch, false, "handler.kubernetes.kubeconfig", "--check-separate",
                             handler->kubernetes_file);
        if (!handler->kubernetes_account)
                return;
        account = format_string("%s/%s", space, handler->kubernetes_account);
        if (account)
                ask_separate(reader, watch, false, "handler.kubernetes.serviceAccount", "--check-account",
                             account);
        else
                reader->out_of_memory = true;
}

void check_certificate(struct reader *reader, const char *certificate_file, const char *key_file)
{
        ask_about(reader, NULL, "gateway.tls", SPAWNER_GATEWAY,
                  (const char *const[]){"--check-certificate", certificate_file, key_file, NULL}, "");
}

int config_check_cluster(const struct config *config, struct error *error)
{
        const char *const argument[] = {"--check-kubeconfig", config->kubeconfig, config->context, NULL};
        char complaint[1024] = "";
        int r;

        if (!config->kubeconfig[0])
                return 0;
        r = program_ask(SPAWNER_CREDENTIAL, argument, complaint, sizeof(complaint));
        if (r < 0)
                return error_set(error, r, "%s:%u: cluster.kubeconfig cannot be checked: %s: %s",
                                 config->kubeconfig_file, config->kubeconfig_line,
                                 spawner_program(SPAWNER_CREDENTIAL)->binary, strerror(-r));
        if (r != EXIT_CODE_OK)
                return error_set(error, -EINVAL, "%s:%u: cluster.kubeconfig: %s", config->kubeconfig_file,
                                 config->kubeconfig_line, complaint);
        return 0;
}
