/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a process ended, in words. */
#include <stddef.h>

/* "was killed by signal SEGV (core dumped)", "exited by itself with code 1". status: of waitpid();
 * killed_why: behind the signal, ", by the kernel for lack of memory"; "": nothing is known. */
void child_death_describe(int status, const char *killed_why, char *buffer, size_t size);
