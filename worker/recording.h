/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a run was asked and what it answered, kept for people: as one file a run in a folder (`record:`), or,
 * when a handler is run by hand, as one file that also has what went to the API server. Each line is a JSON
 * object with a `type`: run, request, answer, exchange, end. Mode 0600. Of a Secret there is its name and no
 * more; a watch of Secrets leaves requests and answers out.
 *
 * Nothing here ever fails a run: what cannot be kept is said once.
 */
#include "worker/worker.h"

#define RECORDING_FILES_MAX 1000
#define RECORDING_BYTES_MAX ((uint64_t)100 * 1024 * 1024)

struct recording;

/* Where the configuration wants nothing kept, *ret becomes NULL, which all functions take. */
int recording_new(struct worker *worker, struct recording **ret);
void recording_free(struct recording *recording);
/* All that goes to the API server is kept as well, and a handler's output is shown at once. */
bool recording_is_by_hand(const struct recording *recording);

void recording_request(struct run *run, const struct text *request);
void recording_answer(struct run *run, const char *answer, size_t size);
void recording_end(struct run *run, enum run_result result, const char *text);
