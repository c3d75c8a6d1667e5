/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/history-entries.h"

#include <errno.h>
#include <string.h>

#include "ledger/handle/statement.h"

#define ENTRY_WEIGHT 12 /* pages written, compared with a row that keeps its place */

struct waiting_entry {
        struct waiting_entry *next;
        struct ledger_history entry; /* its texts follow it */
        char texts[];
};

#define SIZE(kind, number, column) IF_TEXT_##kind(size += strlen(entry->column) + 1;)
#define COPY(kind, number, column)                                                                          \
        IF_TEXT_##kind(waiting->entry.column = end; end = stpcpy(end, entry->column) + 1;)

int ledger_history_keep(struct ledger *ledger, const struct ledger_history *entry)
{
        struct waiting_entry *waiting;
        size_t size = sizeof(*waiting);
        char *end;

        if (ledger->history.waiting == HISTORY_IN_ALL) /* the ledger cannot be written, for long */
                return 0;
        LEDGER_HISTORY(SIZE)
        waiting = malloc(size);
        if (!waiting)
                return -ENOMEM;
        waiting->next = NULL;
        waiting->entry = *entry;
        end = waiting->texts;
        LEDGER_HISTORY(COPY)
        *(ledger->history.last ? &ledger->history.last->next : &ledger->history.first) = waiting;
        ledger->history.last = waiting;
        ledger->history.waiting++;
        return 0;
}

static void drop_oldest_entry(struct ledger *ledger)
{
        struct waiting_entry *first = ledger->history.first;

        ledger->history.first = first->next;
        if (!first->next)
                ledger->history.last = NULL;
        ledger->history.waiting--;
        free(first);
}

#define BIND_NUMBER(number, column) sqlite3_bind_int64(statement, number, (sqlite3_int64)entry->column);
#define BIND_TEXT(number, column)   sqlite3_bind_text(statement, number, entry->column, -1, SQLITE_STATIC);
#define BIND(kind, number, column)  BIND_##kind(number, column)

/* How many entries it has changed, or a negative errno. */
static int run_with(struct ledger *ledger, enum ledger_statement which, const struct ledger_history *entry)
{
        sqlite3_stmt *statement;
        int r = ledger_statement(ledger, which, &statement);

        if (r < 0)
                return r;
        if (entry) {
                LEDGER_HISTORY(BIND)
        }
        r = ledger_run_once(ledger, which);
        return r < 0 ? r : sqlite3_changes(ledger->database);
}

static int count_entries(struct ledger *ledger)
{
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        int r;

        if (ledger->history.count >= 0)
                return 0;
        r = ledger_prepare(ledger, "SELECT count(*) FROM history", NULL, NULL, NULL, &statement);
        if (r >= 0 && sqlite3_step(statement) == SQLITE_ROW)
                ledger->history.count = sqlite3_column_int64(statement, 0);
        else if (r >= 0)
                r = -EIO;
        return r;
}

static int store_entry(struct ledger *ledger, const struct ledger_history *entry)
{
        int r = entry->writes[0] ? 0 : run_with(ledger, STATEMENT_HISTORY_REPEAT, entry);
        sqlite3_stmt *trim;

        if (r != 0)
                return r;
        r = run_with(ledger, STATEMENT_HISTORY_INSERT, entry);
        if (r >= 0) {
                ledger->history.count += r;
                r = ledger_bind(ledger, STATEMENT_HISTORY_TRIM, entry->watch, entry->key, NULL, &trim);
        }
        if (r >= 0)
                r = run_with(ledger, STATEMENT_HISTORY_TRIM, NULL);
        if (r >= 0) {
                ledger->history.count -= r;
                r = ledger->history.count > HISTORY_IN_ALL ? run_with(ledger, STATEMENT_HISTORY_OLDEST, NULL)
                                                           : 0;
        }
        if (r >= 0)
                ledger->history.count -= r;
        ledger->weight += ENTRY_WEIGHT;
        return r;
}

int ledger_history_flush(struct ledger *ledger)
{
        int r = ledger->history.first ? count_entries(ledger) : 0;

        while (r >= 0 && ledger->history.first) {
                r = store_entry(ledger, &ledger->history.first->entry);
                if (r >= 0)
                        drop_oldest_entry(ledger);
        }
        return r < 0 ? r : 0;
}

void ledger_history_forget(struct ledger *ledger)
{
        while (ledger->history.first)
                drop_oldest_entry(ledger);
        ledger->history.count = -1;
}
