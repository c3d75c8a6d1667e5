/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Events (events.k8s.io/v1) about the objects that are handled. They never hold up a run: a bounded queue,
 * one request at a time beside everything else; what does not fit is dropped and counted.
 *
 * Series and the spam guard (series.h) hold for the operator as a whole: one worker counts all Events of an
 * object. The others tell the supervisor of theirs (MESSAGE_REPORT), by the same rule by which Events are
 * written: the first of its kind, then when the count has doubled or some minutes have passed. So as little
 * passes through the supervisor as the API server gets. A worker that is about to end writes by itself what
 * was not told to others.
 */
#include "worker/run-state.h"

int recorder_new(struct worker *worker, struct recorder **ret); /* 0, -ENOMEM */
void recorder_free(struct recorder *recorder);
/* Records the Events of the run's answer, after a success; the failure, after a failure. */
void recorder_run_ended(struct recorder *recorder, const struct run *run, enum run_result result,
                        const char *text);
/* Counts an Event for another worker or the supervisor. 0; -EPROTO: its watch is unknown. */
int recorder_report(struct recorder *recorder, const struct message_report *report);
/* The supervisor has passed on a report of ours. */
void recorder_reported(struct recorder *recorder);
/* Whether something waits to be written, or to be passed on. */
bool recorder_is_busy(const struct recorder *recorder);
/* Returns how many counters it has filled in. */
size_t recorder_count(const struct recorder *recorder, struct record_counter *counter, size_t max);
