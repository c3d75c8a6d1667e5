/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why a run is due. The handler reads the name in its request, people in `reconciledctl explain`, the ledger
 * keeps it with what is due. Decisions go by the number.
 */
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
        RUN_HANDLER_CHANGED,
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
        RUN_REQUESTED, /* by hand */
        RUN_RELEASE,   /* from here on no handler runs */
        RUN_UNINSTALL,
        RUN_FINALIZER,
        RUN_FINALIZER_LOST,
        RUN_REASON_COUNT
};

const char *run_reason_name(enum run_reason reason); /* "" for RUN_REASON_NONE */
/* RUN_REASON_NONE for "" and for a name that is unknown. */
enum run_reason run_reason_parse(const char *name);
