/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconciled-become UID GID PARENT PROGRAM [ARGUMENT...]: changes to that user and executes the program with the
 * same arguments and environment.
 *
 * A worker starts each handler of another user through it. From the change of user on, processes of that user
 * may stop this one, and a program that belongs to them may keep execve() waiting. By then the worker waits for
 * nothing and shares no memory with us. If the program cannot be executed, errno is written to descriptor 3.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAILURE_FD      3
#define ARGUMENTS_FIRST 4 /* of the program's own */
#define EXIT_NOT_FOUND  127

static unsigned read_id(const char *text)
{
        return (unsigned)strtoul(text, NULL, 10);
}

/* The program shall have none of the rights to become another user and to signal others' processes. Ambient
 * rights are handed down. Rights that are only inheritable are not, but they look bad, and are given up
 * where the unit allows capset(). */
static int forget_user_rights(void)
{
        const unsigned rights = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL;
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return -errno;
        if (syscall(SYS_capget, &header, data) < 0 || !(data[0].inheritable & rights))
                return 0;
        data[0].inheritable &= ~rights;
        (void)syscall(SYS_capset, &header, data);
        return 0;
}

/* The session keyring of the operator is inherited, and a process that has it may read and clear its keys,
 * whatever its user. The new one is this user's, and counts in its quota: the operator's own quota is not
 * for handlers. A user who has filled its quota (-EDQUOT) must not get the old one instead. Where keyctl()
 * is not allowed, the program cannot call it either. */
static int leave_user_keyring(void)
{
        long r = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

        return r < 0 && errno != ENOSYS && errno != EPERM ? -errno : 0;
}

static int become_program(char **argument)
{
        unsigned uid = read_id(argument[1]), gid = read_id(argument[2]);
        int r;

        if (fcntl(FAILURE_FD, F_SETFD, FD_CLOEXEC) < 0 || setresgid(gid, gid, gid) < 0 ||
            setresuid(uid, uid, uid) < 0)
                return -errno;
        r = leave_user_keyring();
        if (r >= 0)
                r = forget_user_rights();
        /* The change of user has made the kernel forget it. It is not sent if the worker died before. */
        if (r >= 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                r = -errno;
        if (r >= 0 && (unsigned)getppid() != read_id(argument[3]))
                r = -ESRCH;
        if (r >= 0 && execv(argument[ARGUMENTS_FIRST], argument + ARGUMENTS_FIRST) < 0)
                r = -errno;
        return r;
}

int main(int count, char **argument)
{
        int failure = count > ARGUMENTS_FIRST ? -become_program(argument) : EINVAL;
        ssize_t written = write(FAILURE_FD, &failure, sizeof(failure)); /* there is nobody else to tell */

        (void)written;
        _exit(EXIT_NOT_FOUND);
}
