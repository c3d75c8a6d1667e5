/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The supervisor's side of its spawner. What a process may not do (seccomp, Landlock), none that it starts
 * may ever do. But workers run handlers, which must be free. So a supervisor that can start no program needs
 * another process that can: one of a few hundred lines, which does nothing else, knows our own programs by
 * number, and starts no others. The kernel makes its children the supervisor's own (CLONE_PARENT): the
 * supervisor reaps and signals them, is their parent when it dies, and has their channels.
 *
 * A process has one spawner.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/spawner/spawner-program.h"

/* 0, also when it runs already; or negative errno. */
int spawner_start(const char *log_target);
pid_t spawner_pid(void);  /* 0 if there is none */
void spawner_ended(void); /* the spawner has been reaped */
/* Closes its channel, and waits a little until it can be reaped. */
void spawner_await_end(void);
void spawner_stop(void); /* kills and reaps it */
bool spawner_is(pid_t pid);

/* Starts the program with these arguments after its name. fd becomes its channel, or its standard error for a
 * program that only answers a question; the caller keeps its own descriptor. -ECONNRESET, -ETIMEDOUT: the
 * spawner has failed and cannot be used any more. */
int spawner_run(enum spawner_program program, bool asked, const char *const *argument, int fd,
                pid_t *ret_pid);
/* Whether this user could read the path: 1, 0 or negative errno. */
int spawner_can_read(const char *user, uid_t uid, gid_t gid, const char *path);

/* Asks whether the spawner is there, without waiting. Returns how long it has owed the answer. */
uint64_t spawner_silence(uint64_t now_usec);
