/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfork: parent and child share memory until exec, so the child may only make system calls and write to the
 * one variable that tells what failed. posix_spawn cannot close every descriptor (LMDB's is not
 * close-on-exec).
 */
#include "process/spawn.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/syscall.h"

#define HANDLER_UMASK 022 /* ours hides what we write from other users; a handler's files are its own */

/* The child has copies of its signal dispositions; all it needs is the default for each. */
static void reset_signals(void)
{
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigset_t none;

        for (int signal = 1; signal < NSIG; signal++)
                sigaction(signal, &action, NULL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Descriptors 0 to 2 of this process are open, so none of `stdio` is one of them. */
static int become(char *const *argument, char *const *environment, const int stdio[3], pid_t parent)
{
        if (setpgid(0, 0) < 0)
                return errno;
        /* A worker that is killed cannot end its handler. The signal is not sent when that came first. */
        if (sys_parent_death_signal(SIGKILL) < 0)
                return errno;
        if (getppid() != parent)
                return ESRCH;
        for (int i = 0; i < 3; i++)
                if (dup2(stdio[i], i) < 0)
                        return errno;
        if (sys_close_from(3) < 0 || chdir("/") < 0)
                return errno;
        umask(HANDLER_UMASK);
        reset_signals();
        execve(argument[0], argument, environment);
        return errno;
}

int spawn_program(char *const *argument, char *const *environment, const int stdio[3], pid_t *ret_pid)
{
        sigset_t all, before;
        volatile int failure = 0;
        pid_t pid, parent = getpid();

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        pid = vfork();
        if (pid == 0) {
                failure = become(argument, environment, stdio, parent);
                _exit(127);
        }
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (pid < 0)
                return -errno;
        if (failure != 0) {
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
                return -failure;
        }
        *ret_pid = pid;
        return 0;
}
