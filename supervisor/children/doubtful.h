/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects that a watcher has died or hung over: its slot says which. From the first death on, the next watcher
 * gets past it: a jq program that never ends or crashes is not run on it for the time of the quarantine (it
 * counts as selected, and its content without status stands in for the yield of the trigger), so that it is
 * served as all others are; where our own code died, nothing of it is read. With each further death that time is
 * doubled (lib/controller/due/doubt.h).
 */
struct watch;

int doubtful_tell(struct watch *watch); /* its watcher; negative errno: of the ledger, or of the channel */

/* Ends the doubt about objects of this key, by hand. -ENOENT: no object of this key is doubtful. */
int doubtful_release(struct watch *watch, const char *key);

/*
 * Events on objects that the operator has died over. A process that dies has no time to tell the API server, and
 * one that has just started has no credential yet: so they are written as soon as there is a worker, and the
 * state folder records until when that was done.
 */
struct supervisor;
struct worker;

/* Sends all new Events to this worker; once in a life. Negative errno. */
int crash_events_send(struct supervisor *supervisor, struct worker *worker);
