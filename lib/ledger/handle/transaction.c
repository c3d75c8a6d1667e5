/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/transaction.h"

#include <assert.h>
#include <errno.h>

#include "ledger/database/ledger-schema.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/history-entries.h"
#include "ledger/handle/statement.h"
#include "ledger/handle/tally.h"

static int begin_transaction(struct ledger *ledger, bool wait)
{
        int r;

        if (ledger->in_transaction)
                return 0;
        if (!checkpointer_enter(ledger->checkpointer, wait))
                return -EBUSY;
        sqlite3_busy_timeout(ledger->database, wait ? LEDGER_BUSY_MSEC : 0);
        r = ledger_run_once(ledger, STATEMENT_BEGIN);
        sqlite3_busy_timeout(ledger->database, LEDGER_BUSY_MSEC);
        ledger->in_transaction = r >= 0;
        ledger->weight = 0;
        if (r < 0)
                (void)checkpointer_leave(ledger->checkpointer, false);
        assert(ledger->in_transaction == (sqlite3_get_autocommit(ledger->database) == 0));
        return r;
}

int ledger_begin(struct ledger *ledger)
{
        return begin_transaction(ledger, true);
}

int ledger_try_begin(struct ledger *ledger)
{
        return begin_transaction(ledger, false);
}

static int write_sums(struct ledger *ledger)
{
        sqlite3_stmt *statement;
        int r = 0;

        if (!ledger->sums_changed && !ledger->small_changed)
                return 0;
        if (!ledger->sums_known)
                r = ledger_sums_compute(ledger->database, &ledger->sums);
        else if (ledger->small_changed)
                r = ledger_sums_compute_small(ledger->database, &ledger->sums);
        if (r >= 0)
                r = ledger_statement(ledger, STATEMENT_SUMS, &statement);
        if (r < 0)
                return r;
        ledger_sums_bind(statement, &ledger->sums);
        r = ledger_write_entry(ledger, STATEMENT_SUMS);
        ledger->sums_known = r >= 0;
        ledger->sums_changed = ledger->small_changed = false;
        return r;
}

/* What was not written is not what the cache says: then it knows nothing any more. */
int ledger_end(struct ledger *ledger, int r)
{
        bool entered = ledger->in_transaction;
        int lost;

        if (r >= 0)
                r = write_sums(ledger);
        if (r >= 0 && ledger->in_transaction)
                r = ledger_run_once(ledger, STATEMENT_COMMIT);
        if (r < 0) {
                if (sqlite3_get_autocommit(ledger->database) == 0)
                        (void)ledger_run_once(
                                ledger, STATEMENT_ROLLBACK); /* the first error is the one that counts */
                cache_clear(&ledger->cache, true);
                ledger_history_forget(ledger);
                ledger_tallies_forget(ledger);
                ledger->sums_known = ledger->sums_changed = ledger->small_changed = false;
        }
        assert(r < 0 || sqlite3_get_autocommit(ledger->database) != 0);
        ledger->in_transaction = false;
        ledger->weight = 0;
        lost = entered ? checkpointer_leave(ledger->checkpointer, r >= 0) : 0;
        return r < 0 ? r : lost;
}

void ledger_sums_note(struct ledger *ledger, enum summed_table table, const uint64_t *before,
                      const uint64_t *after)
{
        struct table_sum *sum = &ledger->sums.table[table];

        if (before) {
                sum->count--;
                sum->total -= *before;
        }
        if (after) {
                sum->count++;
                sum->total += *after;
        }
        ledger->sums_changed = true;
}

int ledger_prepare_change(struct ledger *ledger, const char *change, const char *watch, const char *key,
                          const char *uid, sqlite3_stmt **ret)
{
        int r = ledger_begin(ledger);

        /* What is summed again must not take along what has happened to its table meanwhile. */
        if (r >= 0 && ledger->sums_known && !ledger->small_changed)
                r = ledger_sums_check_small(ledger->database, &ledger->sums);
        if (r >= 0)
                r = ledger_prepare(ledger, change, watch, key, uid, ret);
        ledger->small_changed = ledger->small_changed || r >= 0;
        return r;
}
