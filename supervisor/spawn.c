/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork + exec of a child, its channel on descriptor 3 and nothing else open. Between fork and exec only
 * async-signal-safe calls: the ledger's checkpointer is a second thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "base/program-path.h"
#include "base/syscall.h"
#include "ipc/child.h"
#include "supervisor/supervisor.h"

static const struct {
        const char *binary, *folder;
        enum role role;
} kind_table[KIND_COUNT] = {
        [KIND_CREDENTIAL] = {"reconciled-credential", "credential", ROLE_CREDENTIAL},
        [KIND_WATCHER] = {"reconciled-watcher", "watcher", ROLE_WATCHER},
        [KIND_WORKER] = {"reconciled-worker", "worker", ROLE_WORKER},
        [KIND_GATEWAY] = {"reconciled-gateway", "gateway", ROLE_GATEWAY},
};

const char *child_binary(enum child_kind kind)
{
        return kind_table[kind].binary;
}

enum role child_role(enum child_kind kind)
{
        return kind_table[kind].role;
}

_noreturn_ static void exec_child(const char *path, const char *log_target, int channel)
{
        char *const argument[] = {(char *)(uintptr_t)path, (char[]){"--log"}, (char *)(uintptr_t)log_target,
                                  NULL};
        sigset_t none;
        int null = open("/dev/null", O_RDONLY);

        sigemptyset(&none);
        if (null >= 0)
                dup2(null, STDIN_FILENO);
        if (channel == CHILD_CHANNEL_FD)
                fcntl(channel, F_SETFD, 0);
        else
                dup2(channel, CHILD_CHANNEL_FD);
        sys_close_from(CHILD_CHANNEL_FD + 1);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execv(path, argument);
        _exit(127);
}

int spawn_child(struct child_slot *child, int *ret_fd)
{
        _cleanup_free_ char *path =
                program_path(kind_table[child->kind].folder, kind_table[child->kind].binary);
        const char *target = log_target_name(LOG_TARGET_AUTO);
        int pair[2], r;
        pid_t pid;

        if (!path)
                return -ENOMEM;
        if (access(path, X_OK) < 0) {
                log_error("%s: %s", path, strerror(errno));
                return -errno;
        }
        r = sys_socketpair_seqpacket(pair);
        if (r < 0)
                return r;
        pid = sys_fork();
        if (pid == 0)
                exec_child(path, target, pair[1]);
        close(pair[1]);
        if (pid < 0) {
                close(pair[0]);
                return pid;
        }
        child->pid = pid;
        *ret_fd = pair[0];
        return 0;
}
