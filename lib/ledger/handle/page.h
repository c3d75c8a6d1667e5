/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Visits the rows that a statement finds, which selects ROW_SELECTED; at most `limit`. The page is copied
 * before the first call, so the visitor may write rows. Resets the statement. Returns how many rows were
 * found, or a negative errno: of the database, or the visitor's. */
#include <sqlite3.h>

#include "ledger/row/row.h"

struct ledger;

int ledger_visit_page(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata);
