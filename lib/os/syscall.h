/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one door through which the process logic reaches the kernel, so that tests can put faults behind it.
 * Each returns what the call returns, or negative errno; none retries except where POSIX demands it (EINTR).
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>

int sys_socketpair_seqpacket(int ret_fds[2]); /* non-blocking, close-on-exec */
int sys_pipe(int ret_fds[2]);                 /* close-on-exec, blocking */
int sys_set_blocking(int fd);
pid_t sys_fork(void);
int sys_pidfd_open(pid_t pid);
int sys_kill(pid_t pid, int signal); /* pid < 0: the process group */
/* waitpid(pid, status, WNOHANG): the pid reaped, 0 when none is ready, -ECHILD when there is none at all. */
pid_t sys_reap(pid_t pid, int *ret_status);
int sys_close_from(int first); /* close_range(first, ~0) */
/* The kernel kills this process at CLOCK_BOOTTIME `at_usec`, also while it is stopped or hangs. Another call
 * moves the time. What it has started is ended by its parent-death signal. */
int sys_die_at(uint64_t at_usec);
int sys_parent_death_signal(int signal); /* prctl(PR_SET_PDEATHSIG) */
/* The signal comes when our parent dies, which has the other end of this socket. -ESRCH: it has died
 * already.
 */
int sys_follow_parent(int fd, int signal);
int sys_set_subreaper(void);
int sys_set_not_dumpable(void);
/* This process and all that it starts have a new, empty session keyring instead of the one that they inherit. -EOPNOTSUPP where
 * keys are not to be had, as in most containers: then there is none to inherit either. */
int sys_leave_session_keyring(void);
/* Keeps these rights in this process: programs that it starts may neither become another user nor signal
 * processes of others. */
void sys_keep_user_rights_here(void);
int sys_set_no_new_privileges(void); /* for this process and all it starts, for good */
ssize_t sys_read(int fd, void *buffer, size_t size);
ssize_t sys_write(int fd, const void *buffer, size_t size);
ssize_t sys_send(int fd, const void *buffer, size_t size);
ssize_t sys_receive(int fd, void *buffer, size_t size); /* -EMSGSIZE for a packet that does not fit */

/* -EOPNOTSUPP where the kernel has no such thing, it is turned off, or a container does not let us; else the
 * errno that was given. */
int sys_not_there(int status);
