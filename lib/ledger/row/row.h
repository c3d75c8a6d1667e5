/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One row: what is known about one object of a watch, by key and UID. The columns and their units are in
 * lib/ledger/database/columns.h. Texts are never NULL in a row that the ledger gives; NULL reads as "" in a
 * row that it takes. A row that is owned ends with ledger_row_done().
 */
#include <sqlite3.h>

#include "ipc/message.h"
#include "ledger/database/columns.h"

struct ledger_row {
        char *key, *uid;
        LEDGER_STATE(LEDGER_WIDE)
        LEDGER_STATE(LEDGER_SMALL)
};

/* In failed_fingerprint: another replica has told of the object (run/last-life.h), and nothing else has yet. */
#define FINGERPRINT_HEARSAY UINT64_MAX

/* How a row's last run ended, for people. The texts are borrowed; "" and 0 where nothing is known. */
struct ledger_run {
        LEDGER_RUN(LEDGER_LENT)
};

/* An entry of the history. The texts are borrowed, and never NULL. */
struct ledger_history {
        LEDGER_HISTORY(LEDGER_LENT_ENTRY)
};

/* The columns of a row that an index of the database has. A row in which none of them has changed is written
 * at half the cost. */
#define INDEX_WIDE(kind, index, number, column, field)  IF_INDEXED_##index(LEDGER_WIDE_##kind(field))
#define INDEX_SMALL(kind, index, number, column, field) IF_INDEXED_##index(LEDGER_SMALL_##kind(field))
struct row_index {
        LEDGER_STATE(INDEX_WIDE)
        LEDGER_STATE(INDEX_SMALL)
};

/* A row of which nothing is known, not in the ledger; owned by the caller. 0, -ENOMEM. */
int ledger_row_new(const char *key, const char *uid, struct ledger_row *ret);
int ledger_row_copy(const struct ledger_row *from, struct ledger_row *ret); /* likewise */
void ledger_row_done(struct ledger_row *row);

enum change_kind ledger_row_kind(const struct ledger_row *row); /* the kind of the run that is owed */
bool ledger_row_is_suspect(const struct ledger_row *row);       /* its object runs alone and last */
bool ledger_row_is_hearsay(const struct ledger_row *row);

/* Clears the knowledge of what was handled, so that the object runs as soon as it is announced. */
void ledger_row_unknown(struct ledger_row *row);

/* Called with each row of a page: both are borrowed for the call. A negative return ends the page and is
 * returned. */
typedef int (*ledger_visit_t)(const char *watch, const struct ledger_row *row, void *userdata);

struct row_index row_index(const struct ledger_row *row);
bool row_index_is_same(const struct row_index *a, const struct row_index *b);

/*
 * Reads the present row of a statement that selects ROW_SELECTED. Texts are borrowed from the statement
 * until its next step. 0; -EBADMSG: the checksum is wrong; -ENOMEM.
 */
int ledger_borrow_row(sqlite3_stmt *statement, struct ledger_row *ret);
/* The same without key and UID, and with the stored checksum. */
int ledger_borrow_state(sqlite3_stmt *statement, struct ledger_row *ret, uint64_t *ret_checksum);
