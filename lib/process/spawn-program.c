/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfork: parent and child share memory until exec, so the child may only make system calls and write to the
 * one variable that tells what failed. posix_spawn cannot close every descriptor (LMDB's is not
 * close-on-exec).
 */
#include "process/spawn-program.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/syscall.h"
#include "process/process.h"

#define HANDLER_UMASK 022 /* ours hides what we write from other users; a handler's files are its own */

/* Which signals are not at their default here: few or none (SIGPIPE, what a shell has told us to ignore),
 * and asked of the kernel once, before the first handler. Nothing sets one later. */
static const sigset_t *changed_signals(void)
{
        static sigset_t changed;
        static bool known;

        if (known)
                return &changed;
        sigemptyset(&changed);
        for (int signal = 1; signal < NSIG; signal++) {
                struct sigaction action;

                if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
                        sigaddset(&changed, signal);
        }
        known = true;
        return &changed;
}

/* The child has copies of its signal dispositions; all it needs is the default for each. */
static void reset_signals(const sigset_t *changed)
{
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigset_t none;

        for (int signal = 1; signal < NSIG; signal++)
                if (sigismember(changed, signal) == 1)
                        sigaction(signal, &action, NULL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The hard limit comes that much later than the soft one. */
static int limit(int resource, uint64_t value, uint64_t later)
{
        struct rlimit now;

        if (value == 0)
                return 0;
        if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
                return errno;
        if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value + later)
                return 0; /* stricter already */
        now = (struct rlimit){value, value + later};
        return setrlimit((__rlimit_resource_t)resource, &now) < 0 ? errno : 0;
}

static int enter_limits(const struct spawn_options *options)
{
        int r = limit(RLIMIT_DATA, options->memory_data, 0);

        if (r == 0)
                r = limit(RLIMIT_NPROC, options->processes, 0);
        if (r == 0)
                r = limit(RLIMIT_CPU, options->cpu_seconds, 1); /* SIGXCPU, then SIGKILL */
        if (r == 0 && options->group_fd >= 0 && write(options->group_fd, "0", 1) != 1)
                r = errno;
        return r;
}

/* The system calls themselves: the C library's functions tell other threads, and these are the parent's. */
static int change_user(const struct process_user *user)
{
        if (syscall(SYS_setgroups, user->group_count, user->group) < 0 ||
            syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0 ||
            syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
                return errno;
        return 0;
}

/* Descriptors 0 to 2 of this process are open, so none of `stdio` is one of them. */
static int become(const struct spawn_options *options, pid_t parent, const sigset_t *changed)
{
        /* Without our terminal, and where no other program can join its group, nor it another one. */
        int r = setsid() < 0 ? errno : enter_limits(options);

        if (r == 0 && options->user)
                r = change_user(options->user);
        if (r != 0)
                return r;
        sys_keep_user_rights_here();
        /* After the change of user, which forgets it. A worker that is killed cannot end its handler. The
         * signal is not sent when that came first. */
        if (sys_parent_death_signal(SIGKILL) < 0)
                return errno;
        if (getppid() != parent)
                return ESRCH;
        for (int i = 0; i < 3; i++)
                if (dup2(options->stdio[i], i) < 0)
                        return errno;
        if (sys_close_from(3) < 0 || chdir("/") < 0)
                return errno;
        umask(HANDLER_UMASK);
        reset_signals(changed);
        execve(options->argument[0], options->argument, options->environment);
        return errno;
}

int spawn_program(const struct spawn_options *options, pid_t *ret_pid)
{
        const sigset_t *changed = changed_signals();
        sigset_t all, before;
        volatile int failure = 0;
        pid_t pid, parent = getpid();

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        pid = vfork();
        if (pid == 0) {
                failure = become(options, parent, changed);
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
