/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/change/decision.h"

#include <assert.h>

#include "base/duration.h"
#include "controller/effects.h"
#include "object/identity.h"

#define CATCH_UP_USEC (5 * USEC_PER_SEC) /* the store shows our own write within this time */

#define ALIVE(new, handled, failed, own, crashed)                                                           \
        [INPUT_NEW] = (new), [INPUT_HANDLED] = (handled), [INPUT_FAILED] = (failed), [INPUT_OWN] = (own),   \
        [INPUT_CRASHED] = (crashed)
#define ALIVE_ALWAYS(decision) ALIVE(decision, decision, decision, decision, decision)
#define END(gone, unselected)  [INPUT_GONE] = (gone), [INPUT_UNSELECTED] = (unselected)

static const enum row_decision table[ROW_STATE_COUNT][ROW_INPUT_COUNT] = {
        [ROW_NONE] = {ALIVE_ALWAYS(DECIDE_ADD), END(DECIDE_FORGET, DECIDE_LEAVE)},
        [ROW_NEW] = {ALIVE(DECIDE_ADD, DECIDE_REST, DECIDE_ADD, DECIDE_NOTHING, DECIDE_ADD),
                     END(DECIDE_TELL_DELETION, DECIDE_LEAVE)},
        [ROW_AT_REST] = {ALIVE(DECIDE_RUN, DECIDE_REST, DECIDE_RUN, DECIDE_NOTHING, DECIDE_RUN),
                         END(DECIDE_TELL_DELETION, DECIDE_LEAVE)},
        /* Back to the content that was handled before it failed: the handler has seen other content since. */
        [ROW_FAILING] = {ALIVE(DECIDE_RUN, DECIDE_RUN, DECIDE_BACK_OFF, DECIDE_NOTHING, DECIDE_ADOPT_CRASH),
                         END(DECIDE_TELL_DELETION, DECIDE_LEAVE)},
        [ROW_GIVEN_UP] = {ALIVE(DECIDE_RUN, DECIDE_RUN, DECIDE_REST, DECIDE_NOTHING, DECIDE_ADOPT_CRASH),
                          END(DECIDE_TELL_DELETION, DECIDE_LEAVE)},
        /* No news is too old for it: the queue compares it with what the run has read, when that is over. */
        [ROW_RUNNING] = {ALIVE_ALWAYS(DECIDE_RUN), END(DECIDE_TELL_DELETION, DECIDE_LEAVE)},
        [ROW_DELETING] = {ALIVE_ALWAYS(DECIDE_RESTORE), END(DECIDE_TELL_DELETION, DECIDE_LEAVE)},
        [ROW_DELETION_FAILING] = {ALIVE_ALWAYS(DECIDE_RESTORE), END(DECIDE_BACK_OFF, DECIDE_LEAVE)},
        [ROW_UNSELECTED] = {ALIVE_ALWAYS(DECIDE_SELECT), END(DECIDE_TELL_DELETION, DECIDE_LEAVE)},
        [ROW_UNSELECTED_FAILING] = {ALIVE_ALWAYS(DECIDE_SELECT), END(DECIDE_TELL_DELETION, DECIDE_LEAVE)},
};

enum row_decision row_decide(enum row_state state, enum row_input input)
{
        assert(state < ROW_STATE_COUNT && input < ROW_INPUT_COUNT);
        return table[state][input];
}

enum row_state row_state(const struct ledger_row *row, bool is_running)
{
        if (!row)
                return ROW_NONE;
        if (row->deleting)
                return row->attempts > 0 ? ROW_DELETION_FAILING : ROW_DELETING;
        if (row->unselected)
                return row->attempts > 0 ? ROW_UNSELECTED_FAILING : ROW_UNSELECTED;
        if (is_running)
                return ROW_RUNNING;
        if (row->permanent)
                return ROW_GIVEN_UP;
        if (row->attempts > 0)
                return ROW_FAILING;
        return row->handled_realtime == 0 ? ROW_NEW : ROW_AT_REST;
}

/* Our own write to it was a moment ago, and in the epoch of its watch. */
static bool was_written_lately(const struct watch *watch, const struct ledger_row *row)
{
        uint64_t now = ledger_time(watch->controller);

        return row->written_realtime > watch->epoch_since && row->written_realtime <= now &&
               now - row->written_realtime < CATCH_UP_USEC;
}

/* One of several changes that a run has made, announced after its end. If it is unknown what has been handled,
 * any change makes the object run. */
static bool is_own_write(const struct watch *watch, const struct record_change *change,
                         const struct ledger_row *row)
{
        uint64_t version = resource_version_number(change->resource_version);
        bool is_cared_for = row->fingerprint != 0 || row->attempts > 0 || row->settling[0];

        return is_cared_for && version != 0 && version <= row->known_version &&
               was_written_lately(watch, row);
}

static enum row_input input_of_update(const struct watch *watch, const struct record_change *change,
                                      const struct ledger_row *row, enum row_state state)
{
        bool has_failed = state == ROW_FAILING || state == ROW_GIVEN_UP;

        if (has_failed && row->failed_fingerprint == change->fingerprint)
                return INPUT_FAILED;
        if (change->first && row->crashes > 0 && row->attempts > 0 && row->failed_fingerprint == 0)
                return INPUT_CRASHED;
        if (row->fingerprint == change->fingerprint && !has_failed)
                return INPUT_HANDLED;
        return is_own_write(watch, change, row) ? INPUT_OWN : INPUT_NEW;
}

enum row_input row_input(const struct watch *watch, const struct record_change *change,
                         const struct ledger_row *row, enum row_state state)
{
        switch (change->kind) {
        case CHANGE_DELETED:
                return INPUT_GONE;
        case CHANGE_UNSELECTED:
                return INPUT_UNSELECTED;
        default:
                return state == ROW_NONE ? INPUT_NEW : input_of_update(watch, change, row, state);
        }
}
