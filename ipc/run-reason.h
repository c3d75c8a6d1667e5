/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why a run is due. Decisions and messages go by the number, which may change with each release, as a
 * worker is always of its supervisor's release (PROTOCOL_VERSION). People and files read the name: the
 * handler in its request and environment, a recording, `reconciledctl explain`, the ledger's file. Names
 * are never changed.
 */
#include <stdbool.h>

enum run_reason {
        RUN_REASON_NONE, /* no run is due */
        RUN_ADDED,
        RUN_CHANGED,
        RUN_DELETED,
        RUN_UNSELECTED,
        RUN_SELECTED, /* selected again before the watch was told that it was not */
        RUN_RESTORED, /* there again before its deletion was handled: its database went back in time */
        RUN_START,    /* `onStart: all` */
        RUN_TAKEN_OVER,
        RUN_CHILD_CHANGED,
        RUN_RELATED_CHANGED,
        RUN_HANDLER_CHANGED, /* it was given up, and there was a reload or another handler since */
        RUN_RETRY,
        RUN_THROTTLED,
        RUN_UNAVAILABLE,
        RUN_HELD,        /* until the API server's Retry-After is over */
        RUN_NOT_STARTED, /* waits for its handler's program */
        RUN_RECOVERED,   /* the API server is well again */
        RUN_CONFLICT,
        RUN_CANCELLED,
        RUN_SETTLING,
        RUN_REQUEUE_AFTER,
        RUN_RESYNC,
        RUN_SCHEDULED, /* its time has come (`schedules`) */
        RUN_REQUESTED, /* by hand */
        RUN_TRIED,     /* by hand as well, of a worker that reconciledctl has started for it */
        RUN_RELEASE,   /* from here on no handler runs */
        RUN_UNINSTALL,
        RUN_FINALIZER,
        RUN_FINALIZER_LOST,
        RUN_REASON_COUNT
};

const char *run_reason_name(enum run_reason reason); /* "" for RUN_REASON_NONE */

/* Returns false for an unknown name, and leaves *ret as it is; "" is RUN_REASON_NONE. */
bool run_reason_parse(const char *name, enum run_reason *ret);

/* The kinds of runs, by their reasons. */
bool run_is_without_handler(enum run_reason reason); /* only our finalizer is put on or taken off */
bool finalizer_is_reason(enum run_reason reason);    /* ... where it is not as its watch wants it */
