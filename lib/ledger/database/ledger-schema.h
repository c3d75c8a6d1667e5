/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The database file of the ledger: its settings and its tables. */
#include <sqlite3.h>

#include "base/error.h"
#include "ledger/database/sql.h"

#define LEDGER_BUSY_MSEC 1000 /* a person may inspect the ledger with a tool, which locks it for a moment */
#define LEDGER_LOG_MAX   "16777216" /* bytes of the log that stay allocated when it begins again */

/* An empty commit: the first commit of a log writes and syncs the log's head. */
#define LEDGER_TOUCH "PRAGMA user_version = " TO_STRING(LEDGER_SCHEMA)

/* Opens the file; creates it (0600) if there is none. *ret is owned by the
 * caller (sqlite3_close). Statements are prepared by lib/ledger/handle/statement.c. Errors, with a text
 * in *error: -EBADMSG (damaged), -EPROTONOSUPPORT (another format), and those of ledger_errno(). */
int ledger_database_open(const char *path, sqlite3 **ret, struct error *error);
