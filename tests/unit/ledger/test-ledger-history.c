/* SPDX-License-Identifier: Apache-2.0 */
/* The history of runs: its bounds, what counts as the same, and what is left of it after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "ledger/ledger.h"
#include "tests/unit/ledger/ledger-folder.h"

static int set_up(void **state)
{
        (void)state;
        return folder_make("history");
}

static int tear_down(void **state)
{
        (void)state;
        return folder_remove();
}

static struct ledger *open_ledger(void)
{
        struct ledger *ledger = NULL;
        struct error error = ERROR_NONE;
        char *aside = NULL;

        assert_int_equal(ledger_open(path, &ledger, &aside, &error), 0);
        assert_null(aside);
        return ledger;
}

static void add(struct ledger *ledger, const char *key, uint64_t ended, const char *error,
                const char *writes)
{
        const struct ledger_history entry = {
                .watch = "w",
                .key = key,
                .uid = "u",
                .ended_realtime = ended,
                .duration_usec = 2,
                .attempt = 3,
                .times = 1,
                .action = "reconcile",
                .reason = "changed",
                .result = error[0] ? "retry" : "success",
                .version = "7",
                .error = error,
                .writes = writes,
                .writes_left_out = writes[0] ? 4 : 0,
        };

        assert_int_equal(ledger_history_add(ledger, &entry), 0);
}

struct seen {
        size_t count;
        uint64_t first, last, times; /* times: of the last one */
};

static int see(const struct ledger_history *entry, void *userdata)
{
        struct seen *seen = userdata;

        assert_string_equal(entry->watch, "w");
        assert_string_equal(entry->result, entry->error[0] ? "retry" : "success");
        assert_int_equal(entry->writes_left_out, entry->writes[0] ? 4 : 0);
        assert_true(entry->duration_usec == 2 && entry->attempt == 3);
        if (seen->count++ == 0)
                seen->first = entry->ended_realtime;
        seen->last = entry->ended_realtime;
        seen->times = entry->times;
        return 0;
}

static struct seen look(struct ledger *ledger, const char *key)
{
        struct seen seen = {0};

        assert_int_equal(ledger_visit_history(ledger, "w", key, HISTORY_IN_ALL * 2, see, &seen), 0);
        return seen;
}

static void test_the_last_of_a_key_and_the_last_of_all(void **state)
{
        struct ledger *ledger = open_ledger();
        struct seen seen;
        char key[16];

        (void)state;
        for (uint64_t i = 1; i <= HISTORY_OF_KEY + 5; i++)
                add(ledger, "d/often", i, "", "[]");
        seen = look(ledger, "d/often");
        assert_true(seen.count == HISTORY_OF_KEY && seen.first == 6 && seen.last == HISTORY_OF_KEY + 5);
        for (unsigned i = 0; i < HISTORY_IN_ALL; i++) {
                snprintf(key, sizeof(key), "d/%u", i);
                add(ledger, key, 100 + i, "", "[]");
                if (i % 1000 == 0)
                        assert_int_equal(ledger_commit(ledger), 0);
        }
        assert_int_equal(look(ledger, "").count, HISTORY_IN_ALL);
        assert_int_equal(look(ledger, "d/often").count, 0);
        ledger_free(ledger);
        ledger = open_ledger(); /* it is counted anew */
        add(ledger, "d/late", 1000000, "", "[]");
        assert_int_equal(look(ledger, "").count, HISTORY_IN_ALL);
        assert_true(look(ledger, "d/0").count == 0 && look(ledger, "d/1").count == 1 &&
                    look(ledger, "d/late").count == 1);
        ledger_free(ledger);
        folder_empty();
}

static void test_what_ends_alike_is_one_entry(void **state)
{
        struct ledger *ledger = open_ledger();
        struct seen seen;

        (void)state;
        add(ledger, "d/a", 1, "the disk is full", "");
        add(ledger, "d/a", 2, "the disk is full", "");
        assert_int_equal(ledger_commit(ledger), 0);
        add(ledger, "d/b", 3, "the disk is full", "");
        add(ledger, "d/a", 4, "the disk is full", "");
        ledger_free(ledger);
        ledger = open_ledger();
        seen = look(ledger, "d/a");
        assert_true(seen.count == 1 && seen.last == 4 && seen.times == 3);
        add(ledger, "d/a", 5, "the disk is full", "[1]"); /* it has written something */
        add(ledger, "d/a", 6, "the disk is full", "");
        add(ledger, "d/a", 7, "something else", "");
        add(ledger, "d/a", 8, "the disk is full", "");
        seen = look(ledger, "d/a");
        assert_true(seen.count == 5 && seen.first == 4 && seen.last == 8 && seen.times == 1);
        assert_int_equal(look(ledger, "").count, 6);
        ledger_free(ledger);
        folder_empty();
}

static void test_a_damaged_entry_is_left_out(void **state)
{
        struct ledger *ledger = open_ledger();
        sqlite3 *database;

        (void)state;
        add(ledger, "d/a", 1, "", "[1]");
        add(ledger, "d/a", 2, "", "[2]");
        ledger_free(ledger);
        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        assert_int_equal(sqlite3_exec(database,
                                      "UPDATE history SET writes = 'no JSON' WHERE ended_realtime = 1", NULL,
                                      NULL, NULL),
                         SQLITE_OK);
        sqlite3_close(database);
        ledger = open_ledger();
        assert_true(look(ledger, "d/a").count == 1 && look(ledger, "d/a").last == 2);
        ledger_free(ledger);
        folder_empty();
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_the_last_of_a_key_and_the_last_of_all),
                cmocka_unit_test(test_what_ends_alike_is_one_entry),
                cmocka_unit_test(test_a_damaged_entry_is_left_out),
        };

        return cmocka_run_group_tests(test, set_up, tear_down);
}
