/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>
#include <sys/types.h>

struct process_user;

struct spawn_options {
        char *const *argument, *const *environment;
        int stdio[3];
        const struct process_user *user; /* NULL: as we do */
        int failure_fd;                  /* with `user`: the write end of a pipe, for spawn_failure() */
        int group_fd;                    /* cgroup.procs of the control group it begins in; -1: ours */
        uint64_t memory_data;            /* RLIMIT_DATA; 0: as ours */
        uint64_t processes;              /* RLIMIT_NPROC; 0: as ours */
        uint64_t cpu_seconds;            /* RLIMIT_CPU; 0: as ours */
};

/* Starts a program with these three descriptors and nothing else open, in a session of its own, without a terminal,
 * default signals, in "/". Uses vfork semantics: cheap whatever the size of this process. 0 and *ret_pid, or
 * negative errno. The program of another user may not have been executed by then. */
int spawn_program(const struct spawn_options *options, pid_t *ret_pid);
/* Reads from the other end of failure_fd, when the process has ended, why the program was not executed: a negative
 * errno, or 0 if it was. */
int spawn_failure(int fd);
