/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The spawner (ipc/spawner/spawner-client.h): its start, and its end, which is fatal as long as it is needed. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct supervisor;

/* Starts the spawner, and gives up for good the right to start anything else. Negative errno. */
int supervisor_close_in(const struct supervisor *supervisor);
/* Describes how a process ended that was reaped: "was killed by signal KILL, by the kernel ...". */
void describe_exit(struct supervisor *supervisor, int status, char *buffer, size_t size);
void spawner_died(struct supervisor *supervisor, int status); /* it was reaped, with this status */
/* A request to the spawner has failed with this status, which is fatal. The cause of the spawner's death
 * says more than the missing answer. */
void spawner_failed(struct supervisor *supervisor, int status);
/* false: it hangs, and that was fatal. *longest: raised to how long it has been silent. */
bool spawner_check(struct supervisor *supervisor, uint64_t now, uint64_t *longest);
