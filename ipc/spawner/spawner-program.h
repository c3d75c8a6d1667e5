/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Known to the supervisor and its spawner: the programs by number, and the packets of an order. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum spawner_program {
        SPAWNER_CREDENTIAL,
        SPAWNER_WATCHER,
        SPAWNER_WORKER,
        SPAWNER_GATEWAY,
        SPAWNER_LEASE,
        SPAWNER_JQ, /* says whether a jq program compiles */
        SPAWNER_PROGRAM_COUNT,
};

#define SPAWNER_ARGUMENTS_MAX 4

struct spawner_program_info {
        const char *folder, *binary;
        bool keeps_user_rights; /* may start programs as other users, if we may */
        bool needs_environment; /* also if it only answers a question, since it looks for a kubeconfig */
};

/* NULL: there is no such program. */
const struct spawner_program_info *spawner_program(enum spawner_program program);

enum spawner_order { SPAWNER_PING, SPAWNER_START, SPAWNER_ASK, SPAWNER_CAN_READ };

#define SPAWNER_TEXT_MAX ((size_t)160 * 1024)

/* In front of the arguments, each with its NUL. A descriptor comes with it where one is needed. */
struct spawner_request {
        uint32_t serial, order, program, uid, gid;
};

struct spawner_answer {
        uint32_t serial;
        int32_t result; /* a pid, 1 or 0 as an answer, or a negative errno */
};
