/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Refused and failed requests: what each means for its run, for the other processes, and for people. */
#include "kube/client.h"
#include "worker/run-state.h"

/* The credential of this answer was refused (401): asks the supervisor for a newer one, once for each. */
void refusal_ask_refresh(struct worker *worker, const struct kube_response *response);
/* Keeps for the end of the run what the answer says, and passes it on: 401, Retry-After. */
void refusal_note(struct run *run, const struct kube_response *response);
/* The result of a run whose request was not about the object's own content: UNAVAILABLE where the server
 * is to blame, FORBIDDEN where our rights are, else RETRY. */
enum run_result refusal_result(const struct kube_error *error);
/* The result of a run whose request could not be started; status: why, a negative errno. */
enum run_result refusal_result_not_started(int status);
/* Advice for the reader of a refusal: "; ...", or "". */
const char *refusal_advice(const struct kube_error *error);
/* Ends the run: `what` ("handler's patch", "operator's finalizer" ...) was refused. */
int refusal_finish(struct run *run, const char *what, const struct kube_error *error);
