/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Events (events.k8s.io/v1) about the objects that are handled. They never hold up a run: a bounded queue,
 * one request at a time beside everything else; what does not fit is dropped and counted.
 *
 * Series and the spam guard (series.h) are of the operator, not of a worker: one worker counts all Events of
 * an object. The others tell the supervisor of theirs (MESSAGE_REPORT), by the same rule by which Events are
 * written: the first of its kind, then when the count has doubled or some minutes have passed. So what
 * passes through the supervisor is as little as what the API server gets. A worker that is about to end
 * writes by itself what it has told nobody of.
 */
#include "worker/worker.h"

struct recorder;

int recorder_new(struct worker *worker, struct recorder **ret);
void recorder_free(struct recorder *recorder);
/* What the run's answer says, after a success; that it failed, after a failure. */
void recorder_run_ended(struct recorder *recorder, const struct run *run, enum run_result result,
                        const char *text);
/* As the supervisor or another worker wants it. -EPROTO: of a watch that is not known. */
int recorder_report(struct recorder *recorder, const struct message_report *report);
void recorder_reported(struct recorder *recorder);
bool recorder_is_busy(
        const struct recorder *recorder); /* something waits to be written, or to be passed on */
size_t recorder_count(const struct recorder *recorder, struct record_counter *counter, size_t max);

/* The answer's `events`: 0, or -EINVAL with the place of what is wrong. */
int events_check(const cJSON *list, struct error *error);
