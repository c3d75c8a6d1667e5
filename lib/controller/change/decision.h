/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The life of an object's row: its state by what the ledger has of it, the input by how a change compares to
 * that, and a decision for each pair. Pure: no effect, nothing is written.
 */
#include "controller/controller-watch.h"

enum row_state {
        ROW_NONE, /* never handed to a handler */
        ROW_NEW,  /* handed out, and no end of a run is known */
        ROW_AT_REST,
        ROW_FAILING,
        ROW_GIVEN_UP,
        ROW_RUNNING, /* a worker has it: the row says what was handled before */
        ROW_DELETING,
        ROW_DELETION_FAILING,
        ROW_UNSELECTED,
        ROW_UNSELECTED_FAILING,
        ROW_STATE_COUNT
};

enum row_input {
        INPUT_NEW,     /* content that differs from all that is known */
        INPUT_HANDLED, /* the content that was handled last */
        INPUT_FAILED,  /* the content of the last failed attempt */
        INPUT_OWN,     /* our own write, a moment ago */
        INPUT_CRASHED, /* first announced after a crash in a run that was for no change */
        INPUT_GONE,
        INPUT_UNSELECTED,
        ROW_INPUT_COUNT
};

enum row_decision {
        DECIDE_NOTHING,
        DECIDE_ADD,           /* runs for the first time */
        DECIDE_RUN,           /* runs: it has changed */
        DECIDE_REST,          /* stays at rest, unless `onStart: all` or doubt say otherwise */
        DECIDE_BACK_OFF,      /* the rest of its backoff is waited for */
        DECIDE_ADOPT_CRASH,   /* the content that it crashed over is known now; its backoff goes on */
        DECIDE_RESTORE,       /* there again before its deletion was handled */
        DECIDE_SELECT,        /* selected again before `unselected` was handled */
        DECIDE_FORGET,        /* gone, and nothing is owed */
        DECIDE_TELL_DELETION, /* its deletion is owed */
        DECIDE_LEAVE,         /* the watch does not select it any more */
        ROW_DECISION_COUNT
};

/* row: NULL if there is none. is_running: a worker has a run of its handler. */
enum row_state row_state(const struct ledger_row *row, bool is_running);
enum row_input row_input(const struct watch *watch, const struct record_change *change,
                         const struct ledger_row *row, enum row_state state);
enum row_decision row_decide(enum row_state state, enum row_input input);
