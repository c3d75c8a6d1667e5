/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/ledger-history.h"

#include <assert.h>
#include <errno.h>

#include "ledger/database/result.h"
#include "ledger/database/sql.h"
#include "ledger/handle/flush.h"
#include "ledger/handle/history-entries.h"
#include "ledger/handle/statement.h"

int ledger_history_add(struct ledger *ledger, const struct ledger_history *entry)
{
        assert(entry->watch[0] && entry->key[0] && entry->times > 0);
        return ledger_history_keep(ledger, entry);
}

/* These columns come after the answer whether the entry is intact. */
#define READ_NUMBER(number, column) .column = (uint64_t)sqlite3_column_int64(statement, number),
#define READ_TEXT(number, column)   .column = ledger_column(statement, number),
#define READ(kind, number, column)  READ_##kind(number, column)

static int visit_entry(sqlite3_stmt *statement, ledger_visit_history_t visit, void *userdata)
{
        const struct ledger_history entry = {LEDGER_HISTORY(READ)};
        int r = ledger_all_was_read(statement);

        return r < 0 || sqlite3_column_int(statement, 0) != 1 ? r : visit(&entry, userdata);
}

/* The entries of a watch are sorted by their numbers alone: that needs the index, not the entries. */
#define NEWEST(of_key)                                                                                      \
        "SELECT " HISTORY_INTACT HISTORY_COLUMNS                                                            \
        " FROM history WHERE number IN (SELECT number FROM history"                                         \
        " WHERE watch = ?1" of_key " ORDER BY number DESC LIMIT ?3) ORDER BY ended_realtime, number"

int ledger_visit_history(struct ledger *ledger, const char *watch, const char *key, size_t limit,
                         ledger_visit_history_t visit, void *userdata)
{
        const char *question = key[0] ? NEWEST(" AND key = ?2") : NEWEST("");
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        int code = SQLITE_DONE, r = ledger_try_flush(ledger);

        if (r >= 0 || r == -EBUSY)
                r = ledger_prepare(ledger, question, watch, key, NULL, &statement);
        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)limit);
        while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW)
                r = visit_entry(statement, visit, userdata);
        return r < 0 ? r : ledger_errno(ledger->database, code);
}
