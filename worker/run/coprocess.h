/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process of a `serve` handler, or the host of a plugin: one for each worker and watch, started with the
 * first run. It reads a request a line on stdin, and writes an answer a line on stdout. It is ended and
 * started anew when a run exceeds its timeout, and after so many runs or so much memory (recycle); when it
 * dies by itself, the next run starts another one.
 */
#include "worker/run-state.h"

struct coprocess;

/* How a run's request ended. */
enum coprocess_end {
        COPROCESS_ANSWERED,          /* with `text`, which may have an "id"; NULL: no memory for it */
        COPROCESS_ANSWERED_TOO_MUCH, /* more than PROCESS_ANSWER_MAX */
        COPROCESS_FAILED,            /* `text` says why; likewise: */
        COPROCESS_NOT_STARTED,       /* there is no process, whatever it asks */
        COPROCESS_TOO_LARGE,         /* the request is, as run->excess says */
};

struct coprocess_answer {
        enum coprocess_end end;
        char *text;
        size_t size;
};

/* Sends the run's request and waits until it has ended: however the run is cut off, no other one may work on the object
 * before that. 0: *ret, which is the caller's also then; -ENOMEM; -ECANCELED: the worker ends. */
_warn_unused_ int coprocess_ask(struct run *run, struct coprocess_answer *ret) _suspends_;
void coprocess_answer_done(struct coprocess_answer *answer);
/* Ends the run together with the process that works on it; false: none does. */
bool coprocess_cancel(struct run *run, uint64_t grace_usec);
/* Ends an idle process: TERM now, KILL after the grace; NULL is allowed. */
void coprocess_stop(struct coprocess *coprocess, uint64_t grace_usec);
bool coprocess_is_running(const struct coprocess *coprocess);
void coprocess_free(struct coprocess *coprocess);
