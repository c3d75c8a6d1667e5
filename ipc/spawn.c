/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "ipc/child.h"
#include "os/syscall.h"

_noreturn_ static void exec_child(const char *path, const char *log_target, int channel)
{
        char *const argument[] = {(char *)(uintptr_t)path,
                                  (char[]){"--log"},
                                  (char *)(uintptr_t)log_target,
                                  (char[]){"--log-level"},
                                  (char *)(uintptr_t)log_level_name(),
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

int spawn_with_channel(const char *path, const char *log_target, pid_t *ret_pid, int *ret_fd)
{
        int pair[2], r;
        pid_t pid;

        r = sys_socketpair_seqpacket(pair);
        if (r < 0)
                return r;
        pid = sys_fork();
        if (pid == 0)
                exec_child(path, log_target, pair[1]);
        close(pair[1]);
        if (pid < 0) {
                close(pair[0]);
                return pid;
        }
        *ret_pid = pid;
        *ret_fd = pair[0];
        return 0;
}
