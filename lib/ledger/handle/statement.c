/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/statement.h"

#include <errno.h>
#include <string.h>

#include "ledger/database/result.h"
#include "ledger/database/sql.h"
#include "ledger/row/row.h"

#define NAME_PARAMETERS  "?1, ?2, ?3"
#define STATE_PARAMETERS LEDGER_STATE(COLUMN_PARAMETER)
#define RUN_PARAMETERS   LEDGER_RUN(COLUMN_PARAMETER)
#define SUM_PARAMETER    "?" TO_STRING(CHECKSUM_PARAMETER) /* of a row with its run, summed here */

/* The columns that no index has. */
#define IF_PLAIN_PLAIN(text)                                text
#define IF_PLAIN_INDEXED(text)                              ""
#define PLAIN_NAME(kind, index, number, column, field)      IF_PLAIN_##index(", " #column)
#define PLAIN_PARAMETER(kind, index, number, column, field) IF_PLAIN_##index(", ?" #number)
#define PLAIN_COLUMNS                                       LEDGER_STATE(PLAIN_NAME)
#define PLAIN_PARAMETERS                                    LEDGER_STATE(PLAIN_PARAMETER)

/* The checksums of a row of which nothing is known yet, and of a row that keeps the run that it has. */
#define BLANK(kind, index, number, column, field) ", " BLANK_##kind
#define BLANK_NUMBER                              "0"
#define BLANK_FLAG                                "0"
#define BLANK_TEXT                                "''"
#define BLANK_LONG                                "''"
#define BLANK_REASON                              "''"

#define SUM_OF_BLANK    "row_sum(" NAME_PARAMETERS LEDGER_STATE(BLANK) LEDGER_RUN(BLANK) ")"
#define SUM_KEEPING_RUN "row_sum(" NAME_PARAMETERS STATE_PARAMETERS RUN_COLUMNS ")"

#define HISTORY_PARAMETER(kind, number, column) ", ?" #number
#define HISTORY_PARAMETERS                      LEDGER_HISTORY(HISTORY_PARAMETER)

#define OF_ONE_ROW " WHERE watch = ?1 AND key = ?2 AND uid = ?3"

static const char *const sql[STATEMENT_TOTAL] = {
        [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
        [STATEMENT_COMMIT] = "COMMIT",
        [STATEMENT_ROLLBACK] = "ROLLBACK",
        [STATEMENT_GET] = "SELECT " ROW_SELECTED " FROM ledger WHERE watch = ?1 AND (key, uid) >= (?2, ?3)"
                          " ORDER BY key, uid LIMIT ?4",
        [STATEMENT_RUN] = "SELECT " ROW_INTACT RUN_COLUMNS " FROM ledger" OF_ONE_ROW,
        [STATEMENT_OWE] = "INSERT INTO ledger (" NAME_COLUMNS ", checksum) VALUES (" NAME_PARAMETERS
                          ", " SUM_OF_BLANK ")",
        [STATEMENT_INSERT] =
                "INSERT INTO ledger (" ROW_COLUMNS ", checksum)"
                " VALUES (" NAME_PARAMETERS STATE_PARAMETERS RUN_PARAMETERS ", " SUM_PARAMETER ")",
        [STATEMENT_MOVE] = "UPDATE ledger SET (checksum" STATE_COLUMNS
                           ") = (" SUM_KEEPING_RUN STATE_PARAMETERS ")" OF_ONE_ROW,
        [STATEMENT_MOVE_RUN] = "UPDATE ledger SET (checksum" STATE_COLUMNS RUN_COLUMNS ")"
                               " = (" SUM_PARAMETER STATE_PARAMETERS RUN_PARAMETERS ")" OF_ONE_ROW,
        [STATEMENT_UPDATE] = "UPDATE ledger SET (checksum" PLAIN_COLUMNS
                             ") = (" SUM_KEEPING_RUN PLAIN_PARAMETERS ")" OF_ONE_ROW,
        [STATEMENT_UPDATE_RUN] = "UPDATE ledger SET (checksum" PLAIN_COLUMNS RUN_COLUMNS ")"
                                 " = (" SUM_PARAMETER PLAIN_PARAMETERS RUN_PARAMETERS ")" OF_ONE_ROW,
        [STATEMENT_REMOVE] = "DELETE FROM ledger" OF_ONE_ROW,
        [STATEMENT_PAGE] = "SELECT " ROW_SELECTED " FROM ledger WHERE watch = ?1 AND (key, uid) > (?2, ?3)"
                           " ORDER BY key, uid LIMIT ?4",
        [STATEMENT_DUE] = "SELECT " ROW_SELECTED " FROM ledger WHERE next_realtime > 0"
                          " AND (next_realtime, watch, key, uid) > (?1, ?2, ?3, ?4) AND next_realtime <= ?5"
                          " ORDER BY next_realtime, watch, key, uid LIMIT ?6",
        [STATEMENT_NEXT_DUE] = "SELECT next_realtime FROM ledger WHERE next_realtime > 0"
                               " AND (next_realtime, watch, key, uid) > (?1, ?2, ?3, ?4)"
                               " ORDER BY next_realtime, watch, key, uid LIMIT 1",
        [STATEMENT_SCOPE_GET] = "SELECT scope, cluster, " SCOPE_INTACT ", checksum"
                                " FROM scope WHERE watch = ?1",
        [STATEMENT_SCOPE_SET] = "INSERT OR REPLACE INTO scope (watch, scope, cluster, checksum)"
                                " VALUES (?1, ?2, ?3, row_sum(?1, ?2, ?3))",
        /* The newest entry of the key, if it was the same; its place in the table stays. */
        [STATEMENT_HISTORY_REPEAT] =
                "UPDATE history SET (checksum, ended_realtime, duration_usec, attempt, times, reason, version)"
                " = (row_sum(0, watch, key, uid, ?4, ?5, ?6, times + ?7, action, ?9, result, ?11, error, writes,"
                " writes_left_out), ?4, ?5, ?6, times + ?7, ?9, ?11)"
                " WHERE number = (SELECT max(number) FROM history WHERE watch = ?1 AND key = ?2)"
                " AND (uid, action, result, error, writes, writes_left_out) = (?3, ?8, ?10, ?12, ?13, ?14)",
        [STATEMENT_HISTORY_INSERT] = "INSERT INTO history (checksum" HISTORY_COLUMNS
                                     ") VALUES (row_sum(0" HISTORY_PARAMETERS ")" HISTORY_PARAMETERS ")",
        [STATEMENT_HISTORY_TRIM] = "DELETE FROM history WHERE number IN (SELECT number FROM history"
                                   " WHERE watch = ?1 AND key = ?2 ORDER BY number DESC"
                                   " LIMIT -1 OFFSET " TO_STRING(HISTORY_OF_KEY) ")",
        [STATEMENT_HISTORY_OLDEST] = "DELETE FROM history WHERE number = (SELECT min(number) FROM history)",
        [STATEMENT_SUMS] = "UPDATE sums SET (" SUMS_COLUMNS ") = (" SUMS_VALUES ")",
};

/* Preparing all statements at once took half of the time to open, and most lives need only half of them. */
int ledger_statement(struct ledger *ledger, enum ledger_statement which, sqlite3_stmt **ret)
{
        sqlite3_stmt **statement = &ledger->statement[which];
        int r = 0;

        if (!*statement)
                r = ledger_errno(ledger->database,
                                 sqlite3_prepare_v3(ledger->database, sql[which], -1,
                                                    SQLITE_PREPARE_PERSISTENT, statement, NULL));
        *ret = *statement;
        return r;
}

int ledger_prepare_first(struct ledger *ledger)
{
        static const enum ledger_statement first[] = {STATEMENT_BEGIN, STATEMENT_COMMIT, STATEMENT_ROLLBACK,
                                                      STATEMENT_HISTORY_INSERT};
        sqlite3_stmt *statement;
        int r = 0;

        for (size_t i = 0; i < ELEMENTS(first) && r >= 0; i++)
                r = ledger_statement(ledger, first[i], &statement);
        return r;
}

void ledger_reset(sqlite3_stmt *statement)
{
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
}

int ledger_run_once(struct ledger *ledger, enum ledger_statement which)
{
        sqlite3_stmt *statement;
        int r = ledger_statement(ledger, which, &statement);

        if (r < 0)
                return r;
        r = ledger_errno(ledger->database, sqlite3_step(statement));
        ledger_reset(statement);
        return r;
}

int ledger_write_entry(struct ledger *ledger, enum ledger_statement which)
{
        int r = ledger_run_once(ledger, which);

        /* Another number: what was there is there no more. */
        return r >= 0 && sqlite3_changes(ledger->database) != 1 ? -EBADMSG : r;
}

int ledger_bind(struct ledger *ledger, enum ledger_statement which, const char *watch, const char *key,
                const char *uid, sqlite3_stmt **ret)
{
        int r = ledger_statement(ledger, which, ret);

        if (r < 0)
                return r;
        sqlite3_bind_text(*ret, 1, watch, -1, SQLITE_STATIC);
        sqlite3_bind_text(*ret, 2, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(*ret, 3, uid, -1, SQLITE_STATIC);
        return 0;
}

int ledger_prepare(struct ledger *ledger, const char *question, const char *watch, const char *key,
                   const char *uid, sqlite3_stmt **ret)
{
        int r = ledger_errno(ledger->database,
                             sqlite3_prepare_v2(ledger->database, question, -1, ret, NULL));

        if (r < 0)
                return r;
        if (watch)
                sqlite3_bind_text(*ret, 1, watch, -1, SQLITE_STATIC);
        if (key)
                sqlite3_bind_text(*ret, 2, key, -1, SQLITE_STATIC);
        if (uid)
                sqlite3_bind_text(*ret, 3, uid, -1, SQLITE_STATIC);
        return 0;
}

int ledger_finish(struct ledger *ledger, sqlite3_stmt *statement)
{
        int r = ledger_errno(ledger->database, sqlite3_step(statement));

        sqlite3_finalize(statement);
        return r;
}

int ledger_visit_page(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata)
{
        struct page {
                char *watch;
                struct ledger_row row;
        } *page = calloc(limit, sizeof(*page));
        size_t count = 0;
        int code = SQLITE_DONE, r = 0;

        if (!page)
                return -ENOMEM;
        while (r >= 0 && count < limit && (code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct ledger_row row;

                r = ledger_borrow_row(statement, &row);
                if (r >= 0)
                        r = ledger_row_copy(&row, &page[count].row);
                if (r < 0)
                        break;
                page[count].watch = strdup(ledger_column(statement, 0));
                count++;
        }
        if (r >= 0)
                r = ledger_errno(ledger->database, code);
        ledger_reset(statement);
        for (size_t i = 0; i < count; i++) {
                if (r >= 0)
                        r = page[i].watch ? visit(page[i].watch, &page[i].row, userdata) : -ENOMEM;
                free(page[i].watch);
                ledger_row_done(&page[i].row);
        }
        free(page);
        return r < 0 ? r : (int)count;
}
