/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/database/result.h"

#include <errno.h>

int ledger_errno(sqlite3 *database, int code)
{
        switch (code & 0xff) {
        case SQLITE_OK:
        case SQLITE_ROW:
        case SQLITE_DONE:
                return 0;
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_READONLY:
                return -EROFS;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_CONSTRAINT: /* a row that was not there a moment ago */
        case SQLITE_ERROR:      /* our statements are right, so the tables are not ours */
                return -EBADMSG;
        case SQLITE_CANTOPEN:
                return database && sqlite3_system_errno(database) > 0 ? -sqlite3_system_errno(database)
                                                                      : -EIO;
        case SQLITE_IOERR:
                return database && sqlite3_system_errno(database) == ENOSPC ? -ENOSPC : -EIO;
        default:
                return -EIO;
        }
}

const char *ledger_column(sqlite3_stmt *statement, int column)
{
        const unsigned char *text = sqlite3_column_text(statement, column);

        return text ? (const char *)text : "";
}

int ledger_all_was_read(sqlite3_stmt *statement)
{
        return sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM ? -ENOMEM : 0;
}
