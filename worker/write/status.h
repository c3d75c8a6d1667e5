/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The object's status: the handler's `status` and `conditions`, and, where the watch wants it, the
 * condition Ready, which shows the first cause of a row of failures until a success. One request for all of
 * it; none where nothing would change.
 */
#include "worker/worker.h"

#define STATUS_MESSAGE_MAX 4096 /* of the condition Ready */

bool status_is_failure(enum run_result result);
/* One word for machines: "ReconcileFailed". */
const char *status_failure_reason(const struct run *run, enum run_result result);
/* For people: the first cause stays in front through all retries; the last one follows when it differs. */
void status_describe_failure(const struct run *run, const char *text, char *message, size_t size);

/* Makes the merge patch of the status. 1: it would change something; 0: not so, or the run was ended. */
int status_prepare(struct run *run);
int status_send(struct run *run); /* a step of write.c */

/* The run has failed: Ready shall say so first. true: that is under way, and ends in run_finish(). Its own
 * failure changes nothing about how the run ends. */
/* What the answer itself says of the condition Ready; NULL: nothing. */
const cJSON *status_answered_ready(const struct run *run);
bool status_tell_failure(struct run *run, enum run_result result, const char *text);
void status_send_failure(struct run *run); /* its second half, once the resource is discovered */
