/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the ledger's database: settings, schema, migrations. Each entry of `migration` leads from the
 * schema of its index to the next one; what was released is never changed.
 */
#include "ledger/database/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/database/check.h"
#include "ledger/database/checksum.h"
#include "ledger/database/result.h"
#include "ledger/database/sql.h"

/* From schema 4 on the version stands in two places of the file: one that changed by itself is damage, not a
 * newer release. */
#define APPLICATION_ID       1380142080 /* "RCL" and a zero; the version is added */
#define APPLICATION_ID_SINCE 4

/* What rows are grows with the schema: their sums are those of the last one. */
#define COMPUTE_SUMS                                                                                        \
        "UPDATE ledger SET checksum = " ROW_SUM ";"                                                         \
        "UPDATE scope SET checksum = " SCOPE_SUM ";"                                                        \
        "UPDATE paused SET checksum = " PAUSE_SUM ";"                                                       \
        "UPDATE doubtful SET checksum = " DOUBT_SUM ";"                                                     \
        "DELETE FROM sums;"

/* What no row depends on, and a release that does not know of it keeps up all the same: it needs no schema
 * of its own. */
#define INDEXES                                                                                             \
        "CREATE INDEX IF NOT EXISTS ledger_worst ON ledger"                                                 \
        " (permanent DESC, throttled > 0 DESC, attempts DESC, watch, key, uid) WHERE attempts > 0"

static const char *const migration[LEDGER_SCHEMA] = {
        "CREATE TABLE ledger ("
        "  watch TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL,"
        "  fingerprint INTEGER NOT NULL DEFAULT 0, failed_fingerprint INTEGER NOT NULL DEFAULT 0,"
        "  attempts INTEGER NOT NULL DEFAULT 0,"
        "  next_realtime INTEGER NOT NULL DEFAULT 0, next_reason TEXT NOT NULL DEFAULT '',"
        "  last_error TEXT NOT NULL DEFAULT '', first_error TEXT NOT NULL DEFAULT '',"
        "  handled_realtime INTEGER NOT NULL DEFAULT 0,"
        "  permanent INTEGER NOT NULL DEFAULT 0, deleting INTEGER NOT NULL DEFAULT 0,"
        "  PRIMARY KEY (watch, key, uid)) WITHOUT ROWID;"
        "CREATE INDEX ledger_due ON ledger (next_realtime) WHERE next_realtime > 0;"
        "CREATE TABLE scope ("
        "  watch TEXT NOT NULL PRIMARY KEY, scope TEXT NOT NULL, cluster TEXT NOT NULL) WITHOUT ROWID;"
        "PRAGMA user_version = 1;",

        "ALTER TABLE ledger ADD COLUMN throttled INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN crashed_realtime INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN quarantined_until INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN settling TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE ledger ADD COLUMN written_realtime INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN written_version TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE ledger ADD COLUMN known_version INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN unselected INTEGER NOT NULL DEFAULT 0;"
        "CREATE INDEX ledger_quarantine ON ledger (watch, key) WHERE quarantined_until > 0;"
        "CREATE TABLE doubtful ("
        "  watch TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL, unread INTEGER NOT NULL,"
        "  crashes INTEGER NOT NULL, crashed_realtime INTEGER NOT NULL, until_realtime INTEGER NOT NULL,"
        "  error TEXT NOT NULL, PRIMARY KEY (watch, key, uid)) WITHOUT ROWID;"
        "PRAGMA user_version = 2;",

        "ALTER TABLE ledger ADD COLUMN ran_realtime INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN ran_usec INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN ran_action TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE ledger ADD COLUMN ran_reason TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE ledger ADD COLUMN ran_result TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE ledger ADD COLUMN ran_version TEXT NOT NULL DEFAULT '';"
        "CREATE INDEX ledger_failing ON ledger (watch, key, uid, permanent, throttled, attempts)"
        "  WHERE attempts > 0;"
        "ALTER TABLE ledger ADD COLUMN related INTEGER NOT NULL DEFAULT 0;"
        "CREATE TABLE paused ("
        "  watch TEXT NOT NULL PRIMARY KEY, since_realtime INTEGER NOT NULL, user INTEGER NOT NULL,"
        "  reason TEXT NOT NULL) WITHOUT ROWID;"
        "PRAGMA user_version = 3;",

        "ALTER TABLE ledger ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;" /* computed at the end */
        "ALTER TABLE scope ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
        "PRAGMA application_id = 1380142084;"
        "PRAGMA user_version = 4;",

        "CREATE TABLE sums ("
        "  row_count INTEGER NOT NULL, row_total INTEGER NOT NULL,"
        "  scope_count INTEGER NOT NULL, scope_total INTEGER NOT NULL,"
        "  pause_count INTEGER NOT NULL, pause_total INTEGER NOT NULL,"
        "  doubt_count INTEGER NOT NULL, doubt_total INTEGER NOT NULL);"
        "ALTER TABLE paused ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE doubtful ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
        "PRAGMA application_id = 1380142085;"
        "PRAGMA user_version = 5;",

        "CREATE TABLE erased (what TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;" /* lib/ledger/former.c */
        "ALTER TABLE ledger ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE ledger ADD COLUMN kinds TEXT NOT NULL DEFAULT '';"
        "PRAGMA application_id = 1380142086;"
        "PRAGMA user_version = 6;",
};

static int execute(sqlite3 *database, const char *sql)
{
        return ledger_errno(database, sqlite3_exec(database, sql, NULL, NULL, NULL));
}

static int read_number(sqlite3 *database, const char *pragma, int *ret)
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

static int schema_version(sqlite3 *database, int *ret)
{
        int version = 0, application = 0, r = read_number(database, "PRAGMA user_version", &version);

        if (r >= 0)
                r = read_number(database, "PRAGMA application_id", &application);
        if (r < 0)
                return r;
        if (version < 0 || application != (version < APPLICATION_ID_SINCE ? 0 : APPLICATION_ID + version))
                return -EBADMSG;
        *ret = version;
        return 0;
}

static int compute_sums(sqlite3 *database)
{
        struct ledger_sums sums;
        sqlite3_stmt *statement;
        int r = execute(database, COMPUTE_SUMS);

        if (r >= 0)
                r = ledger_sums_compute(database, &sums);
        if (r >= 0)
                r = ledger_errno(database, sqlite3_prepare_v2(database,
                                                              "INSERT INTO sums (" SUMS_COLUMNS
                                                              ") VALUES (" SUMS_VALUES ")",
                                                              -1, &statement, NULL));
        if (r < 0)
                return r;
        ledger_sums_bind(statement, &sums);
        r = ledger_errno(database, sqlite3_step(statement));
        sqlite3_finalize(statement);
        return r;
}

static int migrate(sqlite3 *database, struct error *error)
{
        int version = 0, r;

        r = schema_version(database, &version);
        if (r < 0)
                return r;
        if (version > LEDGER_SCHEMA)
                return error_set(
                        error, -EPROTONOSUPPORT,
                        "its schema is version %d, this program knows up to %d: it was written by a "
                        "newer release; install that one again",
                        version, LEDGER_SCHEMA);
        for (; version < LEDGER_SCHEMA; version++) {
                r = execute(database, "BEGIN IMMEDIATE");
                if (r >= 0)
                        r = execute(database, migration[version]);
                if (r >= 0 && version + 1 == LEDGER_SCHEMA)
                        r = compute_sums(database);
                if (r >= 0)
                        r = execute(database, "COMMIT");
                if (r < 0)
                        return r;
        }
        return 0;
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

static int configure(sqlite3 *database)
{
        sqlite3_busy_timeout(database, LEDGER_BUSY_MSEC);
        return execute(database, "PRAGMA journal_mode = WAL;"
                                 "PRAGMA synchronous = NORMAL;"
                                 "PRAGMA wal_autocheckpoint = 0;"
                                 "PRAGMA cell_size_check = ON;"
                                 "PRAGMA cache_size = -16384;" /* given back when idle */
                                 "PRAGMA temp_store = MEMORY;"
                                 "PRAGMA journal_size_limit = " LEDGER_LOG_MAX ";"
                                 "PRAGMA trusted_schema = OFF");
}

/* Of an input or output error SQLite's own words do not tell a full disk from a broken one. */
static void describe(struct error *error, int r, sqlite3 *database)
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
        /* Nobody asks for them, and each allocation takes a lock for them. Too late when it is in use
         * already, and no harm then. */
        (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        r = ledger_errno(
                NULL, sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
        if (r >= 0)
                r = ledger_add_functions(database, NULL);
        if (r >= 0)
                r = configure(database);
        if (r >= 0)
                r = migrate(database, error);
        if (r >= 0)
                r = execute(database, INDEXES);
        /* A file that may be written, and says of itself that it may not. */
        if (r == -EROFS && access(path, W_OK) == 0)
                r = -EBADMSG;
        if (r < 0) {
                describe(error, r, database);
                sqlite3_close(database);
                return r;
        }
        *ret = database;
        return 0;
}
