/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers of SQLite: its result codes as errnos, and the texts of a selected row. */
#include <sqlite3.h>

/* A negative errno for a result code; 0 for OK, ROW and DONE. `database` tells what the system said of an
 * input or output error; NULL if there is none yet. -EBADMSG: the file is damaged. */
int ledger_errno(sqlite3 *database, int code);

/* The text of a column, borrowed until the next step of the statement; NULL reads as "". Without memory the
 * text is "" as well: ledger_all_was_read() then returns -ENOMEM, until the next step. */
const char *ledger_column(sqlite3_stmt *statement, int column);
int ledger_all_was_read(sqlite3_stmt *statement);
