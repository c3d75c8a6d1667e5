/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recordings of runs, for people: request, answer and result of each, as one file a run in a folder
 * (`record:`); or, when a handler is run by hand, as one file that also has each exchange with the API
 * server. Each line is a JSON object with a `type`: run, request, answer, exchange, end. Mode 0600. Of a
 * Secret there are its name and its keys, and no value; a watch of Secrets leaves requests and answers out.
 *
 * Recording never fails a run: a failure is logged once.
 */
#include "base/text.h"
#include "worker/run-state.h"
#include "worker/worker.h"

#define RECORDING_FILES_MAX 1000
#define RECORDING_BYTES_MAX ((uint64_t)100 * 1024 * 1024)

/* If the configuration has no `record`, *ret becomes NULL, which all functions accept. */
int recording_new(struct worker *worker, struct recording **ret);
void recording_free(struct recording *recording);
/* A handler is run by hand: exchanges with the API server are recorded as well, and its output is shown. */
bool recording_is_by_hand(const struct recording *recording);

void recording_request(struct run *run, const struct text *request);
void recording_answer(struct run *run, const char *answer, size_t size);
void recording_end(struct run *run, enum run_result result, const char *text);
