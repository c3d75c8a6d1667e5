/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconciled-become UID GID PARENT PROGRAM [ARGUMENT...]: changes to that user and executes the program with the
 * same arguments and environment.
 *
 * A worker starts each handler of another user through it. From the change of user on, processes of that user
 * may stop this one, and a program that belongs to them may keep execve() waiting. By then the worker waits for
 * nothing and shares no memory with us. If the program cannot be executed, errno is written to descriptor 3.
 *
 * Each run passes here, so we do without the C library: its start takes longer than the handler of a fast run.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define FAILURE_FD      3
#define ARGUMENTS_FIRST 4 /* of the program's own */
#define EXIT_NOT_FOUND  127

#if defined(BARE) && defined(__x86_64__)
static long call(long number, long a, long b, long c)
{
        long result;

        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "a"(number), "D"(a), "S"(b), "d"(c)
                         : "rcx", "r11", "memory");
        return result;
}

__asm__(".globl _start\n"
        "_start:\n"
        "       xor %ebp, %ebp\n"
        "       mov %rsp, %rdi\n"
        "       and $-16, %rsp\n"
        "       call become_start\n");
#elif defined(BARE) && defined(__aarch64__)
static long call(long number, long a, long b, long c)
{
        register long which __asm__("x8") = number, first __asm__("x0") = a, second __asm__("x1") = b,
                            third __asm__("x2") = c;

        __asm__ volatile("svc #0" : "+r"(first) : "r"(which), "r"(second), "r"(third) : "memory");
        return first;
}

__asm__(".globl _start\n"
        "_start:\n"
        "       mov x0, sp\n"
        "       bl become_start\n");
#else
#include <unistd.h>

static long call(long number, long a, long b, long c)
{
        long result = syscall(number, a, b, c);

        return result < 0 ? -errno : result;
}
#endif

static long call_with(long number, long a, const void *b, const void *c)
{
        return call(number, a, (long)(intptr_t)b, (long)(intptr_t)c);
}

static unsigned read_number(const char *text)
{
        unsigned number = 0;

        for (; *text >= '0' && *text <= '9'; text++)
                number = number * 10 + (unsigned)(*text - '0');
        return number;
}

/* The program shall have none of the rights to become another user and to signal others' processes. A
 * capability that is not inheritable is not ambient either. */
static long forget_user_rights(void)
{
        const unsigned rights = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL;
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
        long r = call_with(SYS_capget, (long)(intptr_t)&header, data, 0);

        if (r < 0 || !(data[0].inheritable & rights))
                return r;
        data[0].inheritable &= ~rights;
        return call_with(SYS_capset, (long)(intptr_t)&header, data, 0);
}

static long become(char **argument, char **environment)
{
        long uid = (long)read_number(argument[1]), gid = (long)read_number(argument[2]);
        long r = call(SYS_fcntl, FAILURE_FD, F_SETFD, FD_CLOEXEC);

        if (r >= 0)
                r = call(SYS_setresgid, gid, gid, gid);
        if (r >= 0)
                r = call(SYS_setresuid, uid, uid, uid);
        if (r >= 0)
                r = forget_user_rights();
        /* The change of user has made the kernel forget it. It is not sent if the worker died before. */
        if (r >= 0)
                r = call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
        if (r >= 0 && call(SYS_getppid, 0, 0, 0) != (long)read_number(argument[3]))
                r = -ESRCH;
        return r < 0 ? r
                     : call_with(SYS_execve, (long)(intptr_t)argument[ARGUMENTS_FIRST],
                                 argument + ARGUMENTS_FIRST, environment);
}

static void become_or_tell(int count, char **argument, char **environment)
{
        int failure = count > ARGUMENTS_FIRST ? (int)-become(argument, environment) : EINVAL;

        (void)call_with(SYS_write, FAILURE_FD, &failure, (const void *)sizeof(failure));
        (void)call(SYS_exit_group, EXIT_NOT_FOUND, 0, 0);
}

#ifdef BARE
/* What the kernel puts on the first stack: the count, the arguments, NULL, the environment. */
__attribute__((used, noreturn)) void become_start(long *stack);
__attribute__((used, noreturn)) void become_start(long *stack)
{
        char **argument = (char **)(stack + 1);

        become_or_tell((int)stack[0], argument, argument + stack[0] + 1);
        __builtin_trap();
}
#else
int main(int count, char **argument, char **environment)
{
        become_or_tell(count, argument, environment);
        return EXIT_NOT_FOUND;
}
#endif
