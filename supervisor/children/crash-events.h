/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Events on objects that the operator has died over. A process that dies has no time to tell the API server,
 * and one that has just started has no credential yet: so they are told once a worker can, and the state
 * folder knows until when that was done.
 */

struct supervisor;
struct worker;

/* All that are new, to this worker; once in a life. Negative errno. */
int crash_events_send(struct supervisor *supervisor, struct worker *worker);
