/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a process ended, in words. */
#include <stddef.h>

/* "was killed by signal KILL (core dumped), by the kernel for lack of memory", "exited by itself with code 1".
 * status: of waitpid(); killed_why: behind the signal; "" if nothing is known. */
void child_death_describe(int status, const char *killed_why, char *buffer, size_t size);
