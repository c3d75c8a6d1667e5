/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who starts the supervisor's programs. What a process may not do (seccomp, Landlock) what it starts may not
 * do either, for ever; workers run handlers, which must be free; so a supervisor that can start no program
 * needs somebody who can: a process of a few hundred lines that does nothing else, knows our own programs by
 * number, and starts no others. The kernel makes its children the supervisor's own (CLONE_PARENT): the
 * supervisor reaps and signals them, is their parent when it dies, and has their channels.
 *
 * This is the supervisor's side, and what both have in common. A process has one spawner.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum spawner_program {
        SPAWNER_CREDENTIAL,
        SPAWNER_WATCHER,
        SPAWNER_WORKER,
        SPAWNER_GATEWAY,
        SPAWNER_JQ, /* says whether a jq program compiles */
        SPAWNER_PROGRAM_COUNT,
};

#define SPAWNER_ARGUMENTS_MAX 4

struct spawner_program_info {
        const char *folder, *binary;
        bool keeps_user_rights; /* may start programs as other users, if we may */
        bool needs_environment; /* also when it is only asked something: it looks for a kubeconfig */
};

const struct spawner_program_info *spawner_program(enum spawner_program program);

/* 0, also when it runs already; or negative errno. */
int spawner_start(const char *log_target);
pid_t spawner_pid(void);  /* 0: there is none */
void spawner_ended(void); /* it has been reaped */
/* Waits a little until it can be reaped: its channel is closed before. */
void spawner_await_end(void);
void spawner_stop(void); /* kills and reaps it */
bool spawner_is(pid_t pid);

/* Starts the program with these arguments behind its name. fd becomes its channel, or its standard error
 * where it is only asked something; the caller keeps its own. -ECONNRESET, -ETIMEDOUT: the spawner has
 * failed, and is of no more use. */
int spawner_run(enum spawner_program program, bool asked, const char *const *argument, int fd,
                pid_t *ret_pid);
/* Whether this user could read the path: 1, 0 or negative errno. */
int spawner_can_read(const char *user, uid_t uid, gid_t gid, const char *path);

/* Asks whether it is there, without waiting; how long it has owed the answer. */
uint64_t spawner_silence(uint64_t now_usec);

/* ---- what both sides know */

enum spawner_order { SPAWNER_PING, SPAWNER_START, SPAWNER_ASK, SPAWNER_CAN_READ };

#define SPAWNER_TEXT_MAX ((size_t)160 * 1024)

/* In front of the arguments, each with its NUL. A descriptor comes with it where one is needed. */
struct spawner_request {
        uint32_t serial, order, program, uid, gid;
};

struct spawner_answer {
        uint32_t serial;
        int32_t result; /* a pid, what is true (1) or not, or a negative errno */
};
