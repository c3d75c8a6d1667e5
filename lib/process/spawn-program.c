/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfork: parent and child share memory until exec, so the child may only make system calls and write to the
 * one variable that tells what failed. posix_spawn cannot close every descriptor (LMDB's is not
 * close-on-exec).
 *
 * The parent waits for the exec, and the child's user is the parent's until then: a process of another user
 * could stop it, and setresuid() changes what the kernel keeps with the memory (PR_SET_DUMPABLE). So a program
 * of another user is executed by one of ours, reconciled-become, which changes the user.
 */
#include "process/spawn-program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/file.h"
#include "os/syscall.h"
#include "process/process.h"

#define BECOME_FD     3   /* of reconciled-become */
#define HANDLER_UMASK 022 /* ours hides what we write from other users; a handler's files are its own */

/* The signals that do not have their default action here: few or none (SIGPIPE, those that a shell made us
 * ignore). The kernel is asked once, before the first handler; nothing changes them later. */
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
static void reset_changed_signals(const sigset_t *changed)
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
static int limit_resource(int resource, uint64_t value, uint64_t later)
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
        int r = limit_resource(RLIMIT_DATA, options->memory_data, 0);

        if (r == 0)
                r = limit_resource(RLIMIT_NPROC, options->processes, 0);
        if (r == 0)
                r = limit_resource(RLIMIT_CPU, options->cpu_seconds, 1); /* SIGXCPU, then SIGKILL */
        if (r == 0 && options->group_fd >= 0 && write(options->group_fd, "0", 1) != 1)
                r = errno;
        return r;
}

/* Passes on a pipe, in which reconciled-become reports what it could not do. */
static int pass_failure_pipe(int fd)
{
        return (fd == BECOME_FD ? fcntl(fd, F_SETFD, 0) : dup2(fd, BECOME_FD)) < 0 ? errno : 0;
}

/* Who is in these groups is none of that user yet, and nobody else's business. The system call itself: the C
 * library's function tells other threads, and these are the parent's. */
static int prepare_user(const struct spawn_options *options)
{
        if (syscall(SYS_setgroups, options->user->group_count, options->user->group) < 0)
                return errno;
        return pass_failure_pipe(options->failure_fd);
}

/* Descriptors 0 to 2 of this process are open, so none of `stdio` is one of them. */
static int turn_into_program(const struct spawn_options *options, char *const *argument, pid_t parent,
                             const sigset_t *changed)
{
        /* Without our terminal, and where no other program can join its group, nor it another one. */
        int r = setsid() < 0 ? errno : enter_limits(options);

        if (r != 0)
                return r;
        if (!options->user)
                sys_keep_user_rights_here();
        /* A worker that is killed cannot end its handler. The signal is not sent when that came first. */
        if (sys_parent_death_signal(SIGKILL) < 0)
                return errno;
        if (getppid() != parent)
                return ESRCH;
        for (int i = 0; i < 3; i++)
                if (dup2(options->stdio[i], i) < 0)
                        return errno;
        r = options->user ? prepare_user(options) : 0;
        if (r != 0)
                return r;
        if (sys_close_from(options->user ? BECOME_FD + 1 : 3) < 0 || chdir("/") < 0)
                return errno;
        umask(HANDLER_UMASK);
        reset_changed_signals(changed);
        execve(argument[0], argument, options->environment);
        return errno;
}

static int start(const struct spawn_options *options, char *const *argument, pid_t *ret_pid)
{
        const sigset_t *changed = changed_signals();
        sigset_t all, before;
        volatile int failure = 0;
        pid_t pid, parent = getpid();

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        pid = vfork();
        if (pid == 0) {
                failure = turn_into_program(options, argument, parent, changed);
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

/* The program that executes all those of other users. NULL: no memory. */
static const char *become_path(void)
{
        static char *path;

        if (!path)
                path = program_path("become", "reconciled-become");
        return path;
}

static int start_as_user(const struct spawn_options *options, pid_t *ret_pid)
{
        _cleanup_free_ const char **argument = NULL;
        char number[3][16];
        size_t count = 0;

        while (options->argument[count])
                count++;
        argument = calloc(ELEMENTS(number) + count + 2, sizeof(*argument));
        if (!argument || !become_path())
                return -ENOMEM;
        snprintf(number[0], sizeof(number[0]), "%u", (unsigned)options->user->uid);
        snprintf(number[1], sizeof(number[1]), "%u", (unsigned)options->user->gid);
        snprintf(number[2], sizeof(number[2]), "%u", (unsigned)getpid());
        argument[0] = become_path();
        for (size_t i = 0; i < ELEMENTS(number); i++)
                argument[1 + i] = number[i];
        memcpy(argument + 1 + ELEMENTS(number), options->argument, count * sizeof(*argument));
        return start(options, (char *const *)argument, ret_pid);
}

int spawn_program(const struct spawn_options *options, pid_t *ret_pid)
{
        return options->user ? start_as_user(options, ret_pid) : start(options, options->argument, ret_pid);
}

int spawn_failure(int fd)
{
        int failure;

        return sys_read(fd, &failure, sizeof(failure)) == sizeof(failure) && failure > 0 ? -failure : 0;
}
