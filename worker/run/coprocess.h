/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process of a `serve` handler, or the host of a plugin: one for each worker and watch, started with the
 * first run. It reads a request a line on stdin, and writes an answer a line on stdout. It is ended and
 * started anew when a run exceeds its timeout, and after so many runs or so much memory (recycle); when it
 * dies by itself, the next start waits, longer each time.
 */
#include "worker/run/run.h"

struct coprocess;

/* How a run's request ended: exactly one of these is called. */
struct coprocess_callbacks {
        /* `line` is the handler's answer; it may have an "id". Borrowed. */
        void (*answered)(struct run *run, const char *line, size_t size);
        void (*answered_too_much)(struct run *run); /* more than PROCESS_ANSWER_MAX */
        void (*failed)(struct run *run, const char *why);
        void (*not_started)(struct run *run, const char *why); /* there is no process, whatever it asks */
};

/* Sends the run's request; one that is too large ends the run. 0, -ENOMEM. */
int coprocess_run(struct run *run, const struct coprocess_callbacks *callbacks);
/* Ends the run together with the process that works on it; false: none does. */
bool coprocess_cancel(struct run *run, uint64_t grace_usec);
/* Ends an idle process: TERM now, KILL after the grace; NULL is allowed. */
void coprocess_stop(struct coprocess *coprocess, uint64_t grace_usec);
bool coprocess_is_running(const struct coprocess *coprocess);
void coprocess_free(struct coprocess *coprocess);
