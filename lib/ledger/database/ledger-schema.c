/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the ledger's database: settings and tables. There is one format; a file of another one is refused.
 */
#include "ledger/database/ledger-schema.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ledger/database/result.h"
#include "ledger/database/sums.h"

/* The format is in two places of the file: if only one differs, the file is damaged, not of another format. */
#define APPLICATION_ID 1380142080 /* "RCL" and a zero; the format is added */

#define TYPE_NUMBER                                      " INTEGER NOT NULL DEFAULT 0"
#define TYPE_FLAG                                        " INTEGER NOT NULL DEFAULT 0"
#define TYPE_TEXT                                        " TEXT NOT NULL DEFAULT ''"
#define TYPE_LONG                                        " TEXT NOT NULL DEFAULT ''"
#define TYPE_REASON                                      " TEXT NOT NULL DEFAULT ''"
#define COLUMN_TYPED(kind, index, number, column, field) ", " #column TYPE_##kind
#define SUM_TYPED                                        ", checksum INTEGER NOT NULL"

#define HISTORY_TYPED(kind, number, column) COLUMN_TYPED(kind, , number, column, )

#define CREATE                                                                                                              \
        "BEGIN IMMEDIATE;"                                                                                                  \
        "CREATE TABLE ledger (watch TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL" LEDGER_STATE(                      \
                COLUMN_TYPED) LEDGER_RUN(COLUMN_TYPED) SUM_TYPED                                                            \
                ", PRIMARY KEY (watch, key, uid)) WITHOUT ROWID;"                                                           \
                "CREATE INDEX ledger_due ON ledger (next_realtime) WHERE next_realtime > 0;"                                \
                "CREATE INDEX ledger_crashed ON ledger (watch, key) WHERE crashed_realtime > 0;"                            \
                "CREATE INDEX ledger_failing ON ledger (watch, key, uid, permanent, throttled, attempts)"                   \
                " WHERE attempts > 0;"                                                                                      \
                "CREATE INDEX ledger_worst ON ledger"                                                                       \
                " (permanent DESC, throttled > 0 DESC, attempts DESC, watch, key, uid) WHERE attempts > 0;"                 \
                "CREATE TABLE scope (watch TEXT NOT NULL PRIMARY KEY, scope TEXT NOT NULL, cluster TEXT NOT NULL" SUM_TYPED \
                ") WITHOUT ROWID;"                                                                                          \
                "CREATE TABLE paused (watch TEXT NOT NULL PRIMARY KEY, since_realtime INTEGER NOT NULL,"                    \
                " user INTEGER NOT NULL, reason TEXT NOT NULL" SUM_TYPED ") WITHOUT ROWID;"                                 \
                "CREATE TABLE doubtful (watch TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL,"                         \
                " unread INTEGER NOT NULL, crashes INTEGER NOT NULL, crashed_realtime INTEGER NOT NULL,"                    \
                " until_realtime INTEGER NOT NULL, error TEXT NOT NULL" SUM_TYPED                                           \
                ", PRIMARY KEY (watch, key, uid)) WITHOUT ROWID;"                                                           \
                "CREATE TABLE history (number INTEGER PRIMARY KEY" LEDGER_HISTORY(HISTORY_TYPED) SUM_TYPED                  \
                ");"                                                                                                        \
                "CREATE INDEX history_of_key ON history (watch, key, number);"                                              \
                "CREATE TABLE sums (row_count INTEGER NOT NULL, row_total INTEGER NOT NULL,"                                \
                " scope_count INTEGER NOT NULL, scope_total INTEGER NOT NULL,"                                              \
                " pause_count INTEGER NOT NULL, pause_total INTEGER NOT NULL,"                                              \
                " doubt_count INTEGER NOT NULL, doubt_total INTEGER NOT NULL);"                                             \
                "INSERT INTO sums (" SUMS_COLUMNS ") VALUES (0, 0, 0, 0, 0, 0, 0, 0);"                                      \
                "PRAGMA application_id = %d;"                                                                               \
                "PRAGMA user_version = %d;"                                                                                 \
                "COMMIT"

static int execute(sqlite3 *database, const char *sql)
{
        return ledger_errno(database, sqlite3_exec(database, sql, NULL, NULL, NULL));
}

static int read_pragma(sqlite3 *database, const char *pragma, int *ret)
{
        sqlite3_stmt *statement = NULL;
        int r;

        r = ledger_errno(database, sqlite3_prepare_v2(database, pragma, -1, &statement, NULL));
        if (r < 0)
                return r;
        r = sqlite3_step(statement);
        if (r == SQLITE_ROW)
                *ret = sqlite3_column_int(statement, 0);
        sqlite3_finalize(statement);
        return r == SQLITE_ROW ? 0 : ledger_errno(database, r == SQLITE_DONE ? SQLITE_CORRUPT : r);
}

/* 0 for a file that was just created. */
static int read_format(sqlite3 *database, int *ret)
{
        int format = 0, application = 0, r = read_pragma(database, "PRAGMA user_version", &format);

        if (r >= 0)
                r = read_pragma(database, "PRAGMA application_id", &application);
        if (r < 0)
                return r;
        if (format < 0 || application != (format == 0 ? 0 : APPLICATION_ID + format))
                return -EBADMSG;
        *ret = format;
        return 0;
}

/* What fails in between is rolled back when the database is closed. */
static int create_tables(sqlite3 *database)
{
        char *sql = sqlite3_mprintf(CREATE, APPLICATION_ID + LEDGER_SCHEMA, LEDGER_SCHEMA);
        int r = sql ? execute(database, sql) : -ENOMEM;

        sqlite3_free(sql);
        return r;
}

/* Closing such a file would write the log of a release that was killed into it. */
static int refuse_format(sqlite3 *database, int format, struct error *error)
{
        (void)sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        return error_set(
                error, -EPROTONOSUPPORT,
                "the state folder has format %d, this release reads and writes format %d only, and has changed nothing; start the release that wrote it, or start without that state, once, with --discard-state (reconciled(1) says what is lost)",
                format, LEDGER_SCHEMA);
}

/* SQLite would create the file with the umask's mode; it may hold names and error texts, so: 0600. */
static int create_file(const char *path)
{
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
                return -errno;
        close(fd);
        return 0;
}

static int set_pragmas(sqlite3 *database)
{
        return execute(database, "PRAGMA journal_mode = WAL;"
                                 "PRAGMA synchronous = NORMAL;"
                                 "PRAGMA wal_autocheckpoint = 0;"
                                 "PRAGMA cell_size_check = ON;"
                                 "PRAGMA cache_size = -16384;" /* given back when idle */
                                 "PRAGMA temp_store = MEMORY;"
                                 "PRAGMA journal_size_limit = " LEDGER_LOG_MAX ";"
                                 "PRAGMA trusted_schema = OFF");
}

/* The format is read before anything is set: some settings write to the file. */
static int prepare_database(sqlite3 *database, struct error *error)
{
        int format = 0, r;

        sqlite3_busy_timeout(database, LEDGER_BUSY_MSEC);
        r = read_format(database, &format);
        if (r < 0)
                return r;
        if (format != 0 && format != LEDGER_SCHEMA)
                return refuse_format(database, format, error);
        r = set_pragmas(database);
        return r < 0 || format != 0 ? r : create_tables(database);
}

/* For an input or output error, SQLite's own words do not distinguish a full disk from a broken one. */
static void describe_failure(struct error *error, int r, sqlite3 *database)
{
        bool is_plain = !database || (sqlite3_errcode(database) & 0xff) != SQLITE_IOERR ||
                        sqlite3_system_errno(database) == 0;

        error_set(error, r, "%s%s%s", database ? sqlite3_errmsg(database) : strerror(-r),
                  is_plain ? "" : ": ", is_plain ? "" : strerror(sqlite3_system_errno(database)));
}

int ledger_database_open(const char *path, sqlite3 **ret, struct error *error)
{
        sqlite3 *database = NULL;
        int r;

        r = create_file(path);
        if (r < 0)
                return error_set(error, r, "%s", strerror(-r));
        /* Turns off SQLite's memory statistics, for which each allocation takes a lock. That fails if SQLite is
         * in use already, which does no harm. */
        (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        r = ledger_errno(
                NULL, sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
        if (r >= 0)
                r = ledger_add_functions(database, NULL);
        if (r >= 0)
                r = prepare_database(database, error);
        /* The file may be written, but its header does not allow that. */
        if (r == -EROFS && access(path, W_OK) == 0)
                r = -EBADMSG;
        if (r < 0) {
                describe_failure(error, r, database);
                sqlite3_close(database);
                return r;
        }
        *ret = database;
        return 0;
}
