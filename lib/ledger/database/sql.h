/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tables' columns as SQL text, and the places of a row's values in what a statement selects. */
#include "ledger/database/columns.h"

/* Lists of columns and of parameters. Lists of an X-macro follow others: each entry begins with a comma. */
#define COLUMN_NAME(kind, index, number, column, field)      ", " #column
#define COLUMN_PARAMETER(kind, index, number, column, field) ", ?" #number

#define NAME_COLUMNS  "watch, key, uid"
#define STATE_COLUMNS LEDGER_STATE(COLUMN_NAME)
#define RUN_COLUMNS   LEDGER_RUN(COLUMN_NAME)
#define ROW_COLUMNS   NAME_COLUMNS STATE_COLUMNS RUN_COLUMNS
#define PAUSE_COLUMNS "watch, since_realtime, user, reason"
#define DOUBT_COLUMNS "watch, key, uid, unread, crashes, crashed_realtime, until_realtime, error"

#define HISTORY_NAME(kind, number, column) ", " #column
#define HISTORY_COLUMNS                    LEDGER_HISTORY(HISTORY_NAME)

/* The columns of the table `sums`, in the order of ledger_sums_bind(), and their parameters. */
#define SUMS_COLUMNS                                                                                        \
        "row_count, row_total, scope_count, scope_total, pause_count, pause_total, doubt_count, "           \
        "doubt_total"
#define SUMS_VALUES "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8"

/* An entry's checksum as it should be, and whether the stored one equals it
 * (lib/ledger/database/sums.h). */
#define ROW_SUM        "row_sum(" ROW_COLUMNS ")"
#define SCOPE_SUM      "row_sum(watch, scope, cluster)"
#define PAUSE_SUM      "row_sum(" PAUSE_COLUMNS ")"
#define DOUBT_SUM      "row_sum(" DOUBT_COLUMNS ")"
#define ROW_INTACT     "checksum IS " ROW_SUM
#define SCOPE_INTACT   "checksum IS " SCOPE_SUM
#define PAUSE_INTACT   "checksum IS " PAUSE_SUM
#define DOUBT_INTACT   "checksum IS " DOUBT_SUM
#define HISTORY_INTACT "checksum IS row_sum(0" HISTORY_COLUMNS ")"

/* Statements that read rows select every column that the checksum covers: ledger_read_values() compares it,
 * because SQLite would read each column once more for that. */
#define ROW_SELECTED ROW_COLUMNS ", checksum"

/* The place of each value in ROW_SELECTED. */
#define COLUMN_VALUE(kind, index, number, column, field) VALUE_##column,
enum row_value {
        VALUE_watch,
        VALUE_key,
        VALUE_uid,
        LEDGER_STATE(COLUMN_VALUE) LEDGER_RUN(COLUMN_VALUE) ROW_VALUES
};
#define CHECKSUM_PARAMETER 36

#define COLUMN_CHECK(kind, index, number, column, field)                                                    \
        _Static_assert(VALUE_##column + 1 == (number), #column);
LEDGER_STATE(COLUMN_CHECK)
LEDGER_RUN(COLUMN_CHECK)
_Static_assert(ROW_VALUES + 1 == CHECKSUM_PARAMETER, "checksum");

#define TO_STRING_(x) #x
#define TO_STRING(x)  TO_STRING_(x)
