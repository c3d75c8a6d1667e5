/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process of a `serve` handler, or the host of a plugin: one for each worker and watch, started with the
 * first run. It reads a request a line on stdin, and writes an answer a line on stdout; with `parallel` it has several
 * requests at a time, and answers in any order. It is ended and
 * started again when a run exceeds its timeout, and after a number of runs or so much memory (recycle); when it
 * dies by itself, the next run starts another one.
 */
#include "worker/run/together/asked.h"

struct coprocess;

/* Sends the run's request and waits until it has ended: however the run is cut off, no other one may work on the object
 * before that. 0: *asked is over; -ENOMEM; -ECANCELED: the worker ends. */
_warn_unused_ int coprocess_ask(struct run *run, struct asked *asked) _suspends_;
/* The run's request waits for a process that a batch has to itself. 0, or -ENOMEM. */
int coprocess_join(struct run *run, struct asked *asked);
void coprocess_leave(struct run *run, const struct asked *asked);
size_t coprocess_count_waiting(const struct coprocess *coprocess);
void coprocess_wake_waiting(const struct coprocess *coprocess);
/* Starts the process with the requests that wait, that of this run first: as many as can be together. What cannot be sent is
 * over. */
void coprocess_start_batch(struct run *leader);
/* Ends the run together with the process that works on it; false: none does. */
bool coprocess_cancel(struct run *run, uint64_t grace_usec);
/* Ends an idle process: TERM now, KILL after the grace; NULL is allowed. */
void coprocess_stop(struct coprocess *coprocess, uint64_t grace_usec);
bool coprocess_is_running(const struct coprocess *coprocess);
/* Whether the process takes no more requests, and another one will follow it. Runs that wait for their turn
 * are woken when it is gone. NULL: no. */
bool coprocess_is_leaving(const struct coprocess *coprocess);
void coprocess_free(struct coprocess *coprocess);
