/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases up to schema 5 kept in the ledger what a Secret was before a run that is being rolled back. Each
 * such text leaves its row; then the file is written anew, so that no free page has it, and its log is cut.
 * The table `erased` says that this was done: what is interrupted is done once more.
 */
#include "ledger/former.h"

#include <errno.h>
#include <string.h>

#include "ledger/commit.h"
#include "ledger/database/result.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/statement.h"
#include "ledger/rows.h"

/* The first former Secret of a row: what stood where in its plan (worker/dependents/parked/plan.c), and
 * the plan without it. */
#define FIND                                                                                                \
        "SELECT l.watch, l.key, l.uid, json_extract(c.value, '$.restore'),"                                 \
        " json_set(json_remove(l.settling, c.fullkey || '.restore'), c.fullkey || '.kept', ?1)"             \
        " FROM ledger AS l, json_each(CASE WHEN json_valid(l.settling) THEN l.settling ELSE '{}' END,"      \
        " '$.undo') AS c WHERE l.settling <> '' AND json_extract(c.value, '$.kind') = 'Secret'"             \
        " AND json_extract(c.value, '$.apiVersion') = 'v1'"                                                 \
        " AND json_type(c.value, '$.restore') IS NOT NULL LIMIT 1"
#define PLACEHOLDER "00000000000000000000000000000000"
#define NAMED       "SELECT 1 FROM ledger WHERE settling <> '' AND instr(settling, ?1) > 0 LIMIT 1"
#define DONE        "SELECT 1 FROM erased WHERE what = 'secrets'"
#define NOTE        "INSERT INTO erased (what) VALUES ('secrets')"

static int execute(struct ledger *ledger, const char *sql)
{
        return ledger_errno(ledger->database, sqlite3_exec(ledger->database, sql, NULL, NULL, NULL));
}

/* 1: there is a row. */
static int has_row(struct ledger *ledger, const char *question, const char *text)
{
        sqlite3_stmt *statement;
        int code, r = ledger_prepare(ledger, question, text, NULL, NULL, &statement);

        if (r < 0)
                return r;
        code = sqlite3_step(statement);
        r = code == SQLITE_ROW ? 1 : ledger_errno(ledger->database, code);
        sqlite3_finalize(statement);
        return r;
}

static int put_plan(struct ledger *ledger, sqlite3_stmt *found, const char *id)
{
        const char *watch = ledger_column(found, 0), *plan = ledger_column(found, 4);
        struct ledger_row row;
        char *place;
        int r = ledger_get(ledger, watch, ledger_column(found, 1), ledger_column(found, 2), &row);

        if (r < 0)
                return r;
        r = text_replace(&row.settling, plan);
        place = r >= 0 ? strstr(row.settling, PLACEHOLDER) : NULL;
        if (place)
                memcpy(place, id, KEPT_ID_SIZE - 1);
        if (r >= 0)
                r = ledger_put(ledger, watch, &row);
        ledger_row_done(&row);
        return r;
}

/* 1: one was there. A text that cannot be kept is lost, and its rollback says so. */
static int move_one(struct ledger *ledger, ledger_keep_t keep, void *userdata)
{
        char id[KEPT_ID_SIZE];
        sqlite3_stmt *statement;
        const char *text;
        int code, r = ledger_prepare(ledger, FIND, PLACEHOLDER, NULL, NULL, &statement);

        if (r < 0)
                return r;
        code = sqlite3_step(statement);
        r = ledger_errno(ledger->database, code);
        if (code == SQLITE_ROW) {
                text = ledger_column(statement, 3);
                if (keep(text, strlen(text), id, userdata) < 0)
                        memcpy(id, PLACEHOLDER, sizeof(id));
                r = put_plan(ledger, statement, id);
        }
        sqlite3_finalize(statement);
        if (r >= 0 && code == SQLITE_ROW)
                r = ledger_commit(ledger);
        return r < 0 ? r : code == SQLITE_ROW;
}

static int write_anew(struct ledger *ledger)
{
        int frames = 0, r = execute(ledger, "PRAGMA secure_delete = ON; VACUUM; PRAGMA secure_delete = OFF");

        if (r >= 0)
                r = ledger_errno(ledger->database,
                                 sqlite3_wal_checkpoint_v2(ledger->database, NULL,
                                                           SQLITE_CHECKPOINT_TRUNCATE, &frames, NULL));
        return r < 0 ? r : frames > 0 ? -EBUSY : execute(ledger, NOTE);
}

int ledger_erase_former(struct ledger *ledger, ledger_keep_t keep, void *userdata)
{
        int r = ledger_commit(ledger);

        if (r >= 0)
                r = has_row(ledger, DONE, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        while ((r = move_one(ledger, keep, userdata)) > 0)
                ;
        if (r >= 0)
                r = write_anew(ledger);
        return r < 0 ? r : 1;
}

int ledger_settling_names(struct ledger *ledger, const char *id)
{
        int r = ledger_commit(ledger);

        return r < 0 ? r : has_row(ledger, NAMED, id);
}
