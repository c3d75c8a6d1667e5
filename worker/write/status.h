/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The object's status: the handler's `status` and `conditions`, and, where the watch wants it, the condition
 * Ready, which shows the first cause of a row of failures until a success. One request for all of it, and
 * none where nothing would change.
 */
#include "worker/run/run.h"

#define STATUS_MESSAGE_MAX 4096 /* bytes of the message of the condition Ready */

bool status_is_failure(enum run_result result);
/* One word for machines: "ReconcileFailed". */
const char *status_failure_reason(const struct run *run, enum run_result result);
/* For people: the first cause stays in front through all retries; the last one follows where it differs. */
void status_describe_failure(const struct run *run, const char *text, char *message, size_t size);

/* Makes the merge patch of the status. 1: it would change something; 0: it would not; negative: the run was
 * ended. */
int status_prepare(struct run *run);
/* A step of write.c: sends the patch. 0, or why it cannot be started. */
int status_send(struct run *run);
/* The run has failed, and its condition Ready is to say so first. true: that is being written, and ends in
 * run_finish() with the same result, whatever becomes of the write. false: there is nothing to write. */
bool status_tell_failure(struct run *run, enum run_result result, const char *text);
