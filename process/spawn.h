/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <sys/types.h>

/* Starts a program with these three descriptors and nothing else open, in a process group of its own,
 * default signals, in "/". Uses vfork semantics: cheap whatever the size of this process. 0 and *ret_pid, or
 * negative errno. */
int spawn_program(char *const *argument, char *const *environment, const int stdio[3], pid_t *ret_pid);
