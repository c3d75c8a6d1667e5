/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Statements: those in constant use are prepared once, when they are first used, the others each time.
 * Parameters ?1, ?2, ?3 are watch, key and UID; bound texts are borrowed until the statement is reset. 0 or a
 * negative errno.
 */
#include "base/cleanup.h"
#include "ledger/handle/handle.h"

static inline void cleanup_statement(sqlite3_stmt **statement)
{
        sqlite3_finalize(*statement);
}
#define _cleanup_statement_ _cleanup_(cleanup_statement)

/* Called at the opening: prepares the statements that must not fail later, and one that needs each column of
 * the history, of which ledger_check() reads nothing. */
int ledger_prepare_first(struct ledger *ledger);
/* *ret is the ledger's. */
int ledger_statement(struct ledger *ledger, enum ledger_statement which, sqlite3_stmt **ret);
/* Likewise, with the first three parameters bound. */
int ledger_bind(struct ledger *ledger, enum ledger_statement which, const char *watch, const char *key,
                const char *uid, sqlite3_stmt **ret);
void ledger_reset(sqlite3_stmt *statement); /* with its parameters */
/* Runs a statement that returns no rows, and resets it. */
int ledger_run_once(struct ledger *ledger, enum ledger_statement which);
/* Likewise, for one that writes one entry; -EBADMSG: another number of them was changed. */
int ledger_write_entry(struct ledger *ledger, enum ledger_statement which);

/* Prepares a statement that is used rarely. NULL: that parameter is not bound. *ret is owned by the
 * caller. */
int ledger_prepare(struct ledger *ledger, const char *question, const char *watch, const char *key,
                   const char *uid, sqlite3_stmt **ret);
int ledger_finish(struct ledger *ledger, sqlite3_stmt *statement); /* runs it once, and frees it */

/* Visits the rows that a statement finds, at most `limit`. It must select ROW_SELECTED. The page is copied
 * before the first call, so the visitor may write rows. Resets the statement. Returns how many rows were
 * found, or a negative errno: of the database, or the visitor's. */
int ledger_visit_page(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata);
