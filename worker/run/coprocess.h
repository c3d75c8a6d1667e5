/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A `serve` handler, or the host of a plugin: one process for each worker and watch, started with the first
 * run, a request a line on its stdin, an answer a line on its stdout. It is ended and started anew when a
 * run exceeds its timeout, after so many runs or so much memory (recycle), and with a pause that grows when
 * it dies by itself.
 */
#include "worker/worker.h"

struct coprocess;

/* Sends the run's request; the end comes through coprocess_answered() or coprocess_failed(). 0, or negative
 * when it cannot be started. */
int coprocess_run(struct run *run);
/* Ends the run together with the process that works on it; false: none does. */
bool coprocess_cancel(struct run *run, uint64_t grace_usec);
/* Ends an idle process in order; NULL is allowed. */
void coprocess_stop(struct coprocess *coprocess, uint64_t grace_usec);
bool coprocess_is_running(const struct coprocess *coprocess);
void coprocess_free(struct coprocess *coprocess);

/* run.c: what came of it. `line` without the "id" is the handler's answer. */
void coprocess_answered(struct run *run, const char *line, size_t size);
void coprocess_answered_too_much(struct run *run); /* more than PROCESS_ANSWER_MAX */
void coprocess_failed(struct run *run, const char *why);
void coprocess_not_started(struct run *run, const char *why); /* there is no process, whatever it asks */
