/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledgers of every schema (schema-N.sql: what a program of that schema has left) are taken over with all
 * that is in them, once and for good.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/text.h"
#include "ledger/ledger.h"
#include "tests/unit/ledger/ledger-folder.h"

static sqlite3 *open_database(void)
{
        sqlite3 *database;

        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        return database;
}

static void execute(const char *sql, int (*take)(void *userdata, int columns, char **value, char **name),
                    void *userdata)
{
        sqlite3 *database = open_database();

        if (sqlite3_exec(database, sql, take, userdata, NULL) != SQLITE_OK)
                fail_msg("%s", sqlite3_errmsg(database));
        sqlite3_close(database);
}

static void make_ledger(unsigned schema)
{
        char name[256], sql[16384];
        ssize_t size;
        int fd;

        snprintf(name, sizeof(name), "%s/schema-%u.sql", SCHEMA_FOLDER, schema);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                fail_msg("%s: each schema has one", name);
        size = read(fd, sql, sizeof(sql) - 1);
        assert_true(size > 0 && (size_t)size < sizeof(sql) - 1);
        close(fd);
        sql[size] = '\0';
        (void)unlink(path);
        execute(sql, NULL, NULL);
}

/* ---- all that is in a file: of each table the rows, but for their sums */

#define QUESTIONS                                                                                           \
        "SELECT 'SELECT json_array(''' || m.name || ''', ' || group_concat(c.name) || ') FROM ' || m.name"  \
        " FROM sqlite_master m, pragma_table_info(m.name) c"                                                \
        " WHERE m.type = 'table' AND m.name != 'sums' AND c.name != 'checksum'"                             \
        " GROUP BY m.name"

static int add_question(void *userdata, int columns _unused_, char **value, char **name _unused_)
{
        struct text *question = userdata;

        if (question->size > 0)
                text_append_string(question, " UNION ALL ");
        text_append_string(question, value[0]);
        return 0;
}

static int add_row(void *userdata, int columns _unused_, char **value, char **name _unused_)
{
        text_append_string(userdata, value[0]);
        text_append_string(userdata, "\n");
        return 0;
}

/* ---- taken over */

static int see_run(const struct ledger_run *run, void *userdata)
{
        assert_string_equal(run->result, *(unsigned *)userdata < 3 ? "" : "ran_result of a, it's");
        return 1;
}

static int see_pause(const struct ledger_pause *pause, void *userdata _unused_)
{
        assert_string_equal(pause->reason, "reason of a, it's");
        return 1;
}

static int see_doubt(const struct ledger_doubt *doubt _unused_, void *userdata _unused_)
{
        return 0;
}

static void ask(unsigned schema)
{
        struct ledger *ledger = NULL;
        struct error error = ERROR_NONE;
        const struct ledger_row *row;
        char *aside = NULL, *scope, *cluster;
        int r = ledger_open(path, &ledger, &aside, &error);

        if (r < 0 || aside)
                fail_msg("schema %u: %s", schema, error_message(&error));
        assert_int_equal(ledger_look(ledger, "w", "d/a", "uid-a", &row), 0);
        assert_true(row->fingerprint == UINT64_MAX);
        assert_string_equal(row->first_error, "first_error of a, it's");
        assert_int_equal(row->next_reason, RUN_RETRY); /* "next_reason of a, it's" is a name of no release */
        assert_int_equal(row->quarantined_until, schema < 2 ? 0 : 116);
        assert_int_equal(ledger_count(ledger, "w"), 2);
        assert_int_equal(ledger_count_quarantined(ledger, "w"), schema < 2 ? 0 : 2);
        assert_int_equal(ledger_run_see(ledger, "w", "d/a", "uid-a", see_run, &schema), 1);
        assert_int_equal(ledger_pause_see(ledger, "w", see_pause, NULL), schema < 3 ? 0 : 1);
        assert_int_equal(ledger_visit_doubts(ledger, NULL, 1, 10, see_doubt, NULL), schema < 2 ? 0 : 2);
        assert_int_equal(ledger_scope_get(ledger, "w", &scope, &cluster), 0);
        assert_string_equal(cluster, "cluster of a, it's");
        free(scope);
        free(cluster);
        ledger_free(ledger);
}

static void test_every_schema(void **state)
{
        (void)state;
        for (unsigned schema = 1; schema <= LEDGER_SCHEMA; schema++) {
                _cleanup_text_ struct text question = TEXT_EMPTY, before = TEXT_EMPTY, after = TEXT_EMPTY;

                make_ledger(schema);
                execute(QUESTIONS, add_question, &question);
                execute(question.data, add_row, &before);
                assert_non_null(strstr(before.data, "last_error of b, it's"));
                ask(schema);
                ask(schema); /* what was made of it is taken for what was written */
                execute(question.data, add_row, &after);
                assert_string_equal(before.data, after.data);
        }
}

/* ---- */

static int set_up(void **state)
{
        (void)state;
        return folder_make("schema");
}

static int tear_down(void **state)
{
        (void)state;
        return folder_remove();
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_every_schema),
        };

        return cmocka_run_group_tests(test, set_up, tear_down);
}
