/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Questions to programs of ours. libjq, GnuTLS and readers of credentials are nothing for a process that
 * must stay small and must not fall: reconciled-jq, reconciled-gateway and reconciled-credential are
 * asked, which takes some milliseconds. Before the start and before a reload: what is wrong is a mistake
 * like any other.
 */
#include <stddef.h>

#include "ipc/spawner/spawner-program.h"

/* argument: ends with NULL, at most 4. Returns the exit status of the program, with the first line of
 * what it said in `complaint`, or a negative errno (-ETIMEDOUT: it said nothing for 10 seconds, or was
 * killed). */
int program_ask(enum spawner_program program, const char *const *argument, char *complaint, size_t size);
