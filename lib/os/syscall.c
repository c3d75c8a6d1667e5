/* SPDX-License-Identifier: Apache-2.0 */
#include "os/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int result(int r)
{
        return r < 0 ? -errno : r;
}

int sys_socketpair_seqpacket(int ret_fds[2])
{
        return result(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_fds));
}

int sys_pipe(int ret_fds[2])
{
        return result(pipe2(ret_fds, O_CLOEXEC));
}

int sys_set_blocking(int fd)
{
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0)
                return -errno;
        return result(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK));
}

pid_t sys_fork(void)
{
        return result(fork());
}

int sys_pidfd_open(pid_t pid)
{
        return result((int)syscall(SYS_pidfd_open, pid, 0));
}

int sys_kill(pid_t pid, int signal)
{
        return result(kill(pid, signal));
}

pid_t sys_reap(pid_t pid, int *ret_status)
{
        return result(waitpid(pid, ret_status, WNOHANG));
}

int sys_close_from(int first)
{
        return result((int)syscall(SYS_close_range, (unsigned)first, ~0U, 0));
}

int sys_die_at(uint64_t at_usec)
{
        static timer_t timer;
        static bool exists;
        const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(at_usec / 1000000),
                                                   .tv_nsec = (long)(at_usec % 1000000) * 1000 + 1}};

        if (!exists && timer_create(CLOCK_BOOTTIME,
                                    &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL},
                                    &timer) < 0)
                return -errno;
        exists = true;
        return result(timer_settime(timer, TIMER_ABSTIME, &at, NULL));
}

int sys_parent_death_signal(int signal)
{
        return result(prctl(PR_SET_PDEATHSIG, signal));
}

int sys_follow_parent(int fd, int signal)
{
        struct ucred peer;
        socklen_t size = sizeof(peer);
        int r = sys_parent_death_signal(signal);

        if (r < 0)
                return r;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        /* The parent may have died before the kernel was told: then the signal would never come. */
        return peer.pid == getppid() ? 0 : -ESRCH;
}

int sys_set_subreaper(void)
{
        return result(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
}

int sys_leave_session_keyring(void)
{
        return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ? sys_not_there(-errno) : 0;
}

int sys_set_no_new_privileges(void)
{
        return result(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

/* A capability that is not inheritable is not ambient either. */
void sys_keep_user_rights_here(void)
{
        const unsigned rights = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL;
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        /* Only inheritable capabilities are handed down; and a unit may forbid capset(). */
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_SETUID, 0, 0);
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_SETGID, 0, 0);
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_KILL, 0, 0);
        if (syscall(SYS_capget, &header, data) < 0 || !(data[0].inheritable & rights))
                return;
        data[0].inheritable &= ~rights;
        (void)syscall(SYS_capset, &header, data);
}

int sys_set_not_dumpable(void)
{
        return result(prctl(PR_SET_DUMPABLE, 0));
}

#define RETRY_INTERRUPTED(call)                                                                             \
        ({                                                                                                  \
                ssize_t result_;                                                                            \
                do                                                                                          \
                        result_ = (call);                                                                   \
                while (result_ < 0 && errno == EINTR);                                                      \
                result_ < 0 ? -errno : result_;                                                             \
        })

ssize_t sys_read(int fd, void *buffer, size_t size)
{
        return RETRY_INTERRUPTED(read(fd, buffer, size));
}

ssize_t sys_write(int fd, const void *buffer, size_t size)
{
        return RETRY_INTERRUPTED(write(fd, buffer, size));
}

ssize_t sys_send(int fd, const void *buffer, size_t size)
{
        return RETRY_INTERRUPTED(send(fd, buffer, size, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static ssize_t receive_whole(int fd, void *buffer, size_t size)
{
        return RETRY_INTERRUPTED(recv(fd, buffer, size, MSG_DONTWAIT | MSG_TRUNC));
}

/* If a peer has gone and left messages of ours unread, the kernel reports that first, once; the last
 * messages of the peer come after it. */
ssize_t sys_receive(int fd, void *buffer, size_t size)
{
        ssize_t r = receive_whole(fd, buffer, size);

        if (r == -ECONNRESET)
                r = receive_whole(fd, buffer, size);
        return r > (ssize_t)size ? -EMSGSIZE : r;
}

int sys_not_there(int status)
{
        return status == -EINVAL || status == -ENOSYS || status == -EPERM || status == -EACCES ? -EOPNOTSUPP
                                                                                               : status;
}
