/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The object's status: the handler's `status` and `conditions`, and, if the watch has readyCondition, that
 * condition, which shows the first cause of a row of failures until a success. One request for all of it, and
 * none where nothing would change.
 */
#include "worker/run-state.h"

#define STATUS_MESSAGE_MAX 4096 /* bytes of the message of the condition Ready */

bool status_is_failure(enum run_result result);
/* One word for machines: "ReconcileFailed". */
const char *status_failure_reason(const struct run *run, enum run_result result);
/* For people: the first cause stays in front through all retries; the last one follows where it differs. */
void status_describe_failure(const struct run *run, const char *text, char *message, size_t size);

/* A step of write.c: writes it if that would change something. */
_warn_unused_ int status_send(struct run *run) _suspends_;
/* The run has ended: if that is a failure, its condition Ready says so, whatever becomes of the write. */
void status_tell_failure(struct run *run) _suspends_;
