/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One run of a torture: an API server in memory and an operator on it, both our children, in a folder of their own. The
 * operator is the real one. When it ends by itself, it is started again, as a service manager would.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "ctl/session/try-server.h"
#include "ctl/torture/trial.h"

struct rig {
        const struct trial *trial;
        char *folder, *config, *state, *runtime, *log, *request_log, *gate;
        struct try_server server;
        pid_t operator_pid;  /* 0: none runs */
        unsigned ends;       /* how often the operator ended by itself */
        cJSON *status;       /* of the operator, when it was last quiet */
        cJSON *objects;      /* of the server: a list of {path, object}, at the same time */
        uint64_t version;    /* the server's resourceVersion then */
        struct error *error; /* borrowed: why a function failed */
};

/* From now on a signal to end makes rig_wait() fail, so that all is cleaned up. */
void rig_catch_interrupts(void);
bool rig_was_interrupted(void);

/* Starts the server. record: a folder for the handler's requests and answers; NULL. gated: the handler dies when rig->gate is there.
 * rig_close() in any case. */
int rig_open(struct rig *rig, const struct trial *trial, const char *record, bool gated,
             struct error *error);
void rig_close(struct rig *rig);

int rig_start(struct rig *rig);  /* the operator */
void rig_kill(struct rig *rig);  /* the operator and all that it has started, at once */
int rig_forget(struct rig *rig); /* removes the state folder; no operator runs */

/* Asks the server. body: NULL: none. Returns the HTTP status, with the answer in *ret (owned by the caller; may be NULL), or a
 * negative errno. */
int rig_request(struct rig *rig, const char *method, const char *path, const cJSON *body, cJSON **ret);
/* Asks the operator; argument as of ctl_query(). */
int rig_order(const struct rig *rig, const char *command, const char *const *argument, struct error *error);

/* The objects that wait for a time. *ret is owned by the caller. A negative errno: the operator does not answer. */
int rig_list_waiting(const struct rig *rig, cJSON **ret);

/* Waits until the operator has nothing to do but to wait for a time that a handler has named; deployments and the like become
 * ready meanwhile. 1: the fault with this id (0: none) has hit before that. -ETIMEDOUT: nothing has moved for the trial's
 * timeout; the error says what it waits for. */
int rig_wait(struct rig *rig, uint64_t fault);
