/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reading the row on which a statement stands that selects ROW_SELECTED. Texts are borrowed from the
 * statement until its next step. 0; -EBADMSG: the checksum is wrong; -ENOMEM.
 */
#include <sqlite3.h>

#include "ledger/row/row.h"

int ledger_borrow_row(sqlite3_stmt *statement, struct ledger_row *ret);
/* The same without key and UID, and with the stored checksum. */
int ledger_borrow_state(sqlite3_stmt *statement, struct ledger_row *ret, uint64_t *ret_checksum);
