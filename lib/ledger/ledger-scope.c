/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/ledger-scope.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ledger/database/result.h"
#include "ledger/database/sql.h"
#include "ledger/handle/statement.h"
#include "ledger/handle/transaction.h"

int ledger_scope_get(struct ledger *ledger, const char *watch, char **ret_scope, char **ret_cluster)
{
        _cleanup_free_ char *scope = NULL, *cluster = NULL;
        sqlite3_stmt *statement;
        bool intact;
        int code, r = ledger_statement(ledger, STATEMENT_SCOPE_GET, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_text(statement, 1, watch, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
        r = ledger_errno(ledger->database, code);
        intact = code != SQLITE_ROW || sqlite3_column_int(statement, 2) == 1;
        scope = strdup(code == SQLITE_ROW ? ledger_column(statement, 0) : "");
        cluster = strdup(code == SQLITE_ROW ? ledger_column(statement, 1) : "");
        if (r >= 0)
                r = ledger_all_was_read(statement);
        ledger_reset(statement);
        if (!scope || !cluster)
                return -ENOMEM;
        if (r < 0)
                return r;
        if (!intact)
                return -EBADMSG;
        *ret_scope = TAKE_PTR(scope);
        *ret_cluster = TAKE_PTR(cluster);
        return 0;
}

/* 1: there is one. */
static int scope_checksum(struct ledger *ledger, const char *watch, uint64_t *ret)
{
        sqlite3_stmt *statement;
        int code, r = ledger_statement(ledger, STATEMENT_SCOPE_GET, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_text(statement, 1, watch, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                *ret = (uint64_t)sqlite3_column_int64(statement, 3);
        ledger_reset(statement);
        return code == SQLITE_ROW ? 1 : ledger_errno(ledger->database, code);
}

int ledger_scope_set(struct ledger *ledger, const char *watch, const char *scope, const char *cluster)
{
        sqlite3_stmt *statement;
        uint64_t before = 0;
        int existed, r = ledger_begin(ledger);

        if (r < 0)
                return r;
        existed = scope_checksum(ledger, watch, &before);
        if (existed < 0)
                return existed;
        r = ledger_bind(ledger, STATEMENT_SCOPE_SET, watch, scope, cluster, &statement);
        if (r >= 0)
                r = ledger_write_entry(ledger, STATEMENT_SCOPE_SET);
        if (r >= 0)
                ledger_sums_note(ledger, SUM_SCOPES, existed ? &before : NULL, &ledger->last_sum);
        return r;
}

/* Used rarely: nothing is prepared. */
int ledger_pause_put(struct ledger *ledger, const char *watch, const struct ledger_pause *pause)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare_change(ledger,
                                      "INSERT OR REPLACE INTO paused (" PAUSE_COLUMNS ", checksum)"
                                      " VALUES (?1, ?2, ?3, ?4, row_sum(?1, ?2, ?3, ?4))",
                                      watch, NULL, NULL, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)pause->since_realtime);
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)pause->user);
        sqlite3_bind_text(statement, 4, pause->reason, -1, SQLITE_STATIC);
        return ledger_finish(ledger, statement);
}

int ledger_pause_remove(struct ledger *ledger, const char *watch)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare_change(ledger, "DELETE FROM paused WHERE watch = ?1", watch, NULL, NULL,
                                      &statement);

        return r < 0 ? r : ledger_finish(ledger, statement);
}

int ledger_pause_see(struct ledger *ledger, const char *watch, ledger_see_pause_t see, void *userdata)
{
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        struct ledger_pause pause;
        int code, r = ledger_prepare(ledger,
                                     "SELECT since_realtime, user, reason, " PAUSE_INTACT
                                     " FROM paused WHERE watch = ?1",
                                     watch, NULL, NULL, &statement);

        if (r < 0)
                return r;
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return ledger_errno(ledger->database, code);
        pause = (struct ledger_pause){
                .since_realtime = (uint64_t)sqlite3_column_int64(statement, 0),
                .user = (uint64_t)sqlite3_column_int64(statement, 1),
                .reason = ledger_column(statement, 2),
        };
        return sqlite3_column_int(statement, 3) == 1 ? see(&pause, userdata) : -EBADMSG;
}

/* Used rarely: nothing is prepared. */
#define FORGET_USEC (30 * 24 * UINT64_C(3600000000)) /* after they are over */

int64_t ledger_doubt_crashes(struct ledger *ledger, const char *watch, const char *key, const char *uid)
{
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        int code, r = ledger_prepare(ledger,
                                     "SELECT crashes, " DOUBT_INTACT
                                     " FROM doubtful WHERE watch = ?1 AND key = ?2 AND uid = ?3",
                                     watch, key, uid, &statement);

        if (r < 0)
                return r;
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return ledger_errno(ledger->database, code);
        return sqlite3_column_int(statement, 1) == 1 ? sqlite3_column_int64(statement, 0) : -EBADMSG;
}

static int forget_old(struct ledger *ledger, uint64_t now)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare_change(ledger, "DELETE FROM doubtful WHERE until_realtime < ?4", NULL, NULL,
                                      NULL, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 4, now > FORGET_USEC ? (sqlite3_int64)(now - FORGET_USEC) : 0);
        return ledger_finish(ledger, statement);
}

int ledger_doubt_put(struct ledger *ledger, const struct ledger_doubt *doubt)
{
        sqlite3_stmt *statement;
        int r;

        assert(doubt->watch[0] && doubt->key[0] && doubt->crashes > 0);
        r = forget_old(ledger, doubt->crashed_realtime);
        if (r >= 0)
                r = ledger_prepare_change(
                        ledger,
                        "INSERT OR REPLACE INTO doubtful (" DOUBT_COLUMNS ", checksum)"
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, row_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8))",
                        doubt->watch, doubt->key, doubt->uid, &statement);
        if (r < 0)
                return r;
        sqlite3_bind_int(statement, 4, doubt->unread);
        sqlite3_bind_int64(statement, 5, (sqlite3_int64)doubt->crashes);
        sqlite3_bind_int64(statement, 6, (sqlite3_int64)doubt->crashed_realtime);
        sqlite3_bind_int64(statement, 7, (sqlite3_int64)doubt->until_realtime);
        sqlite3_bind_text(statement, 8, doubt->error, -1, SQLITE_STATIC);
        return ledger_finish(ledger, statement);
}

int ledger_doubt_remove(struct ledger *ledger, const char *watch, const char *key)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare_change(ledger, "DELETE FROM doubtful WHERE watch = ?1 AND key = ?2", watch,
                                      key, NULL, &statement);

        if (r >= 0)
                r = ledger_finish(ledger, statement);
        return r < 0 ? r : sqlite3_changes(ledger->database);
}

int ledger_visit_doubts(struct ledger *ledger, const char *watch, uint64_t now, size_t limit,
                        ledger_visit_doubt_t visit, void *userdata)
{
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        int code = SQLITE_DONE, count = 0,
            r = ledger_prepare(ledger,
                               "SELECT " DOUBT_COLUMNS ", " DOUBT_INTACT
                               " FROM doubtful WHERE (?1 IS NULL OR watch = ?1) AND until_realtime > ?2"
                               " ORDER BY watch, key, uid LIMIT ?3",
                               watch, NULL, NULL, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)now);
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)limit);
        while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct ledger_doubt doubt = {
                        .watch = ledger_column(statement, 0),
                        .key = ledger_column(statement, 1),
                        .uid = ledger_column(statement, 2),
                        .unread = sqlite3_column_int(statement, 3) != 0,
                        .crashes = (uint64_t)sqlite3_column_int64(statement, 4),
                        .crashed_realtime = (uint64_t)sqlite3_column_int64(statement, 5),
                        .until_realtime = (uint64_t)sqlite3_column_int64(statement, 6),
                        .error = ledger_column(statement, 7),
                };

                r = sqlite3_column_int(statement, 8) == 1 ? visit(&doubt, userdata) : -EBADMSG;
                count++;
        }
        if (r >= 0)
                r = ledger_errno(ledger->database, code);
        return r < 0 ? r : count;
}
