/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: rows there and back, across reopening; a corrupt file set aside, a newer one refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "ledger/ledger.h"
#include "tests/unit/ledger/ledger-folder.h"
#include "tests/unit/valgrind.h"

static int set_up(void **state)
{
        (void)state;
        return folder_make("ledger");
}

static int tear_down(void **state)
{
        (void)state;
        return folder_remove();
}

static struct ledger *open_ledger(char **ret_aside)
{
        struct ledger *ledger = NULL;
        struct error error = ERROR_NONE;

        *ret_aside = NULL;
        assert_int_equal(ledger_open(path, &ledger, ret_aside, &error), 0);
        return ledger;
}

static void test_rows_survive(void **state)
{
        struct ledger_row row = {.key = (char[]){"d/a"},
                                 .uid = (char[]){"u"},
                                 .fingerprint = UINT64_MAX,
                                 .failed_fingerprint = 3,
                                 .attempts = 4,
                                 .next_realtime = 500,
                                 .next_reason = RUN_RETRY,
                                 .last_error = (char[]){"last"},
                                 .first_error = (char[]){"first"},
                                 .deleting = true,
                                 .throttled = 5,
                                 .crashes = 6,
                                 .crashed_realtime = 7,
                                 .quarantined_until = 8,
                                 .settling = (char[]){"{}"},
                                 .kinds = (char[]){"v1/ConfigMap,apps/v1/Deployment"}};
        struct ledger_row back;
        struct ledger *ledger;
        char *aside, *scope, *cluster;

        (void)state;
        ledger = open_ledger(&aside);
        assert_null(aside);
        assert_int_equal(ledger_get(ledger, "w", "d/a", "u", &back), -ENOENT);
        assert_int_equal(ledger_put(ledger, "w", &row), 0);
        assert_int_equal(ledger_owe(ledger, "w", "d/a", "u"), 0); /* leaves it as it is */
        assert_int_equal(ledger_owe(ledger, "w", "d/b", "v"), 1);
        assert_int_equal(ledger_scope_set(ledger, "w", "s", "c"), 0);
        assert_int_equal(ledger_commit(ledger), 0);
        ledger_free(ledger);

        ledger = open_ledger(&aside);
        assert_int_equal(ledger_get(ledger, "w", "d/a", "u", &back), 0);
        assert_true(back.fingerprint == UINT64_MAX && back.attempts == 4 && back.deleting &&
                    !back.permanent);
        assert_string_equal(back.first_error, "first");
        assert_true(back.throttled == 5 && back.crashes == 6 && back.crashed_realtime == 7 &&
                    back.quarantined_until == 8);
        assert_string_equal(back.settling, "{}");
        assert_string_equal(back.kinds, "v1/ConfigMap,apps/v1/Deployment");
        ledger_row_done(&back);
        assert_int_equal(ledger_count(ledger, "w"), 2);
        assert_int_equal(ledger_scope_get(ledger, "w", &scope, &cluster), 0);
        assert_string_equal(scope, "s");
        assert_string_equal(cluster, "c");
        free(scope);
        free(cluster);
        assert_int_equal(ledger_remove(ledger, "w", "d/a", "u"), 0);
        assert_int_equal(ledger_get(ledger, "w", "d/a", "u", &back), -ENOENT);
        ledger_free(ledger);
}

static int see_run(const struct ledger_run *run, void *userdata)
{
        assert_int_equal(run->ended_realtime, *(uint64_t *)userdata);
        assert_string_equal(run->result, run->ended_realtime > 0 ? "retry" : "");
        assert_string_equal(run->version, run->ended_realtime > 0 ? "12" : "");
        return 1;
}

static void test_how_the_last_run_ended_stays_with_its_row(void **state)
{
        struct ledger_row row = {.key = (char[]){"r/a"}, .uid = (char[]){"u"}, .attempts = 1};
        struct ledger_run run = {.ended_realtime = 9,
                                 .duration_usec = 8,
                                 .action = "reconcile",
                                 .reason = "changed",
                                 .result = "retry",
                                 .version = "12"};
        uint64_t ended = 0;
        struct ledger *ledger;
        char *aside;

        (void)state;
        ledger = open_ledger(&aside);
        assert_int_equal(ledger_run_put(ledger, "w", "r/a", "u", &run), 0); /* no row: nothing */
        assert_int_equal(ledger_run_see(ledger, "w", "r/a", "u", see_run, &ended), 1);
        assert_int_equal(ledger_put(ledger, "w", &row), 0);
        assert_int_equal(ledger_run_put(ledger, "w", "r/a", "u", &run), 0);
        row.attempts = 2;
        assert_int_equal(ledger_put(ledger, "w", &row), 0);
        ended = 9;
        assert_int_equal(ledger_run_see(ledger, "w", "r/a", "u", see_run, &ended), 1);
        assert_int_equal(ledger_remove(ledger, "w", "r/a", "u"), 0);
        ended = 0;
        assert_int_equal(ledger_run_see(ledger, "w", "r/a", "u", see_run, &ended), 1);
        ledger_free(ledger);
}

static void test_a_row_that_comes_again_knows_no_run(void **state)
{
        struct ledger_run run = {.ended_realtime = 9, .result = "retry", .version = "12"};
        uint64_t ended = 0;
        struct ledger *ledger;
        char *aside;

        (void)state;
        ledger = open_ledger(&aside);
        for (int committed = 0; committed < 2; committed++) {
                assert_int_equal(ledger_owe(ledger, "w", "again", "u"), 1);
                assert_int_equal(ledger_run_put(ledger, "w", "again", "u", &run), 0);
                assert_int_equal(committed ? ledger_commit(ledger) : 0, 0);
                assert_int_equal(ledger_remove(ledger, "w", "again", "u"), 0);
                assert_int_equal(ledger_owe(ledger, "w", "again", "u"), 1);
                assert_int_equal(ledger_run_see(ledger, "w", "again", "u", see_run, &ended), 1);
                assert_int_equal(ledger_remove(ledger, "w", "again", "u"), 0);
        }
        ledger_free(ledger);
}

static int64_t rows_on_disk(const char *condition)
{
        sqlite3_stmt *statement;
        sqlite3 *other;
        char sql[128];
        int64_t count;

        snprintf(sql, sizeof(sql), "SELECT count(*) FROM ledger WHERE watch = 'many' AND %s", condition);
        assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(other, sql, -1, &statement, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        count = sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
        sqlite3_close(other);
        return count;
}

/* More than are kept in memory, and than are written at once. */
#define MANY 6000

static void change_many(struct ledger *ledger, uint64_t fingerprint, uint64_t attempts)
{
        for (unsigned i = 0; i < MANY; i++) {
                struct ledger_row row = {.uid = (char[]){"u"},
                                         .fingerprint = fingerprint,
                                         .attempts = attempts,
                                         .last_error = (char[]){"why"}};
                char key[16];

                snprintf(key, sizeof(key), "m%05u", i);
                row.key = key;
                assert_int_equal(ledger_put(ledger, "many", &row), 0);
        }
}

static void test_only_a_commit_shows_them_and_all_of_them(void **state)
{
        struct ledger_row back;
        struct ledger *ledger;
        char *aside;

        (void)state;
        if (under_valgrind()) /* half a minute */
                skip();
        ledger = open_ledger(&aside);
        change_many(ledger, 1, 0);
        assert_int_equal(rows_on_disk("1"), 0);
        assert_true(ledger_dirty(ledger));
        assert_int_equal(ledger_commit(ledger), 0);
        assert_false(ledger_dirty(ledger));
        assert_int_equal(rows_on_disk("fingerprint = 1 AND last_error = 'why'"), MANY);
        change_many(ledger, 2, 0);
        assert_int_equal(ledger_get(ledger, "many", "m00000", "u", &back), 0);
        assert_int_equal(back.fingerprint, 2);
        ledger_row_done(&back);
        change_many(ledger, 2, 3);
        assert_int_equal(ledger_commit(ledger), 0);
        assert_int_equal(rows_on_disk("fingerprint = 2 AND attempts = 3"), MANY);
        ledger_rest(ledger);
        assert_int_equal(ledger_remove(ledger, "many", "m00007", "u"), 0);
        assert_int_equal(ledger_count(ledger, "many"), MANY - 1);
        ledger_free(ledger);
        assert_int_equal(rows_on_disk("1"), MANY - 1);
}

/* Thirteen rows: four fail, two of them are given up and one is throttled; six crashed, of which five are in
 * quarantine. */
static void put_mixed(struct ledger *ledger, const char *watch)
{
        char key[] = "a";
        struct ledger_row row = {.key = key, .uid = (char[]){"u"}};

        for (; key[0] < 'n'; key[0]++) {
                row.attempts = key[0] >= 'e' && key[0] < 'i';
                row.permanent = key[0] == 'e' || key[0] == 'f';
                row.throttled = key[0] == 'g' || key[0] == 'a'; /* no failing row: not counted */
                row.crashed_realtime = key[0] >= 'h';
                row.quarantined_until = key[0] >= 'i';
                assert_int_equal(ledger_put(ledger, watch, &row), 0);
        }
}

static void see_mixed(struct ledger *ledger, const char *watch)
{
        struct ledger_failing failing;

        assert_int_equal(ledger_count(ledger, watch), 13);
        assert_int_equal(ledger_count_quarantined(ledger, watch), 5);
        assert_int_equal(ledger_count_crashed(ledger, watch), 6);
        assert_int_equal(ledger_count_failing(ledger, watch, &failing), 0);
        assert_int_equal(failing.failing, 4);
        assert_int_equal(failing.permanent, 2);
        assert_int_equal(failing.throttled, 1);
}

static void test_what_is_counted_on_is_what_a_start_counts(void **state)
{
        struct ledger *ledger;
        char *aside;

        (void)state;
        ledger = open_ledger(&aside);
        put_mixed(ledger, "mixed");
        put_mixed(ledger, "other");
        see_mixed(ledger, "mixed");
        assert_string_equal(ledger_next_watch(ledger, "mixed"), "other");
        ledger_free(ledger);
        ledger = open_ledger(&aside);
        see_mixed(ledger, "other");
        see_mixed(ledger, "mixed");
        assert_int_equal(ledger_remove(ledger, "mixed", "e", "u"), 0);
        assert_int_equal(ledger_count(ledger, "mixed"), 12);
        see_mixed(ledger, "other");
        assert_int_equal(ledger_count(ledger, "unheard-of"), 0);
        ledger_free(ledger);
}

static int count_rows(const char *watch, const struct ledger_row *row, void *userdata)
{
        size_t *count = userdata;

        assert_string_equal(watch, "p");
        assert_non_null(row->key);
        (*count)++;
        return 0;
}

static void test_pages_and_due(void **state)
{
        struct ledger *ledger;
        size_t count = 0;
        uint64_t due;
        char *aside;

        (void)state;
        ledger = open_ledger(&aside);
        for (unsigned i = 0; i < 25; i++) {
                char key[16];
                struct ledger_row row = {.key = key, .uid = (char[]){"u"}, .next_realtime = 100 + i};

                snprintf(key, sizeof(key), "k%02u", i);
                assert_int_equal(ledger_put(ledger, "p", &row), 0);
        }
        assert_int_equal(ledger_visit(ledger, "p", "", "", 10, count_rows, &count), 10);
        assert_int_equal(ledger_visit(ledger, "p", "k09", "u", 100, count_rows, &count), 15);
        assert_int_equal(count, 25);
        assert_int_equal(ledger_next_due(ledger, 100, &due), 0);
        assert_int_equal(due, 100);
        assert_int_equal(ledger_visit_due(ledger, 104, 100, count_rows, &count), 5);
        ledger_free(ledger);
}

static void put_due(struct ledger *ledger, const char *key, uint64_t when)
{
        struct ledger_row row = {.key = (char *)(uintptr_t)key, .uid = (char[]){"u"}, .next_realtime = when};

        assert_int_equal(ledger_put(ledger, "p", &row), 0);
}

static void test_due_once_and_again_after_a_restart(void **state)
{
        struct ledger *ledger;
        size_t count = 0;
        uint64_t due;
        char *aside;

        (void)state;
        assert_int_equal(unlink(path), 0);
        ledger = open_ledger(&aside);
        put_due(ledger, "b", 100);
        put_due(ledger, "a", 100);
        put_due(ledger, "c", 100);
        put_due(ledger, "d", 200);
        assert_int_equal(ledger_visit_due(ledger, 150, 2, count_rows, &count), 2);
        assert_int_equal(ledger_visit_due(ledger, 150, 2, count_rows, &count), 1);
        assert_int_equal(ledger_visit_due(ledger, 150, 2, count_rows, &count), 0);
        assert_int_equal(ledger_next_due(ledger, 150, &due), 0);
        assert_int_equal(due, 200);
        put_due(ledger, "a", 160); /* its time was set anew */
        assert_int_equal(ledger_next_due(ledger, 150, &due), 0);
        assert_int_equal(due, 160);
        assert_int_equal(ledger_visit_due(ledger, 170, 9, count_rows, &count), 1);
        assert_int_equal(ledger_next_due(ledger, 90, &due), 0);
        assert_int_equal(due, 100); /* the clock was set back */
        assert_int_equal(ledger_visit_due(ledger, 150, 9, count_rows, &count), 2);
        ledger_due_again(ledger);
        assert_int_equal(ledger_visit_due(ledger, 300, 9, count_rows, &count), 4);
        ledger_free(ledger);
        ledger = open_ledger(&aside);
        assert_int_equal(ledger_visit_due(ledger, 300, 9, count_rows, &count), 4);
        ledger_free(ledger);
}

static void test_a_corrupt_file_is_set_aside(void **state)
{
        struct ledger *ledger;
        char *aside;
        FILE *file = fopen(path, "r+");

        (void)state;
        assert_non_null(file);
        for (int i = 0; i < 4096; i++)
                fputc('x', file);
        fclose(file);
        ledger = open_ledger(&aside);
        assert_non_null(aside);
        assert_int_equal(access(aside, F_OK), 0);
        assert_int_equal(ledger_count(ledger, "w"), 0);
        free(aside);
        ledger_free(ledger);
}

/* ---- what no page of the file shows: that something is not what was written */

static int see_any_run(const struct ledger_run *run _unused_, void *userdata _unused_)
{
        return 1;
}

static int see_pause(const struct ledger_pause *pause, void *userdata _unused_)
{
        assert_string_equal(pause->reason, "why");
        return 1;
}

static int see_doubt(const struct ledger_doubt *doubt, void *userdata _unused_)
{
        assert_string_equal(doubt->error, "SIGSEGV");
        return 0;
}

/* Something in each table. */
static void fill(void)
{
        struct ledger_row row = {.key = (char[]){"l/a"}, .uid = (char[]){"u"}, .attempts = 1};
        struct ledger_run run = {.ended_realtime = 9, .action = "reconcile", .result = "retry"};
        struct ledger_pause pause = {5, 0, "why"};
        struct ledger_doubt doubt = {.watch = "w",
                                     .key = "l/a",
                                     .uid = "u",
                                     .crashes = 2,
                                     .until_realtime = 99,
                                     .error = "SIGSEGV"};
        struct ledger *ledger;
        char *aside;

        ledger = open_ledger(&aside);
        free(aside);
        assert_int_equal(ledger_put(ledger, "w", &row), 0);
        assert_int_equal(ledger_run_put(ledger, "w", "l/a", "u", &run), 0);
        assert_int_equal(ledger_scope_set(ledger, "w", "s", "c"), 0);
        assert_int_equal(ledger_pause_put(ledger, "w", &pause), 0);
        assert_int_equal(ledger_doubt_put(ledger, &doubt), 0);
        assert_int_equal(ledger_commit(ledger), 0);
        ledger_free(ledger);
}

static void lie(const char *statement)
{
        sqlite3 *database;

        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        assert_int_equal(sqlite3_exec(database, statement, NULL, NULL, NULL), SQLITE_OK);
        assert_true(sqlite3_changes(database) > 0);
        sqlite3_close(database);
}

static const char another_doubt[] =
        "INSERT INTO doubtful SELECT watch, key, 'v', unread, crashes, crashed_realtime, until_realtime, "
        "error, checksum FROM doubtful";

static void test_a_lie_in_any_table_sets_it_aside(void **state)
{
        static const char *const lies[] = {
                "UPDATE ledger SET attempts = 0",
                "UPDATE ledger SET ran_result = 'success'",
                "UPDATE ledger SET ran_usec = 1",
                "DELETE FROM ledger",
                "UPDATE scope SET cluster = 'd'",
                "DELETE FROM scope",
                "UPDATE paused SET since_realtime = 1",
                "UPDATE paused SET user = 7",
                "UPDATE paused SET reason = ''",
                "UPDATE paused SET watch = 'v'",
                "DELETE FROM paused",
                "UPDATE doubtful SET key = 'l/b'",
                "UPDATE doubtful SET unread = 1",
                "UPDATE doubtful SET until_realtime = 1",
                "UPDATE doubtful SET error = ''",
                "DELETE FROM doubtful",
                another_doubt,
                "UPDATE sums SET pause_count = 0",
                "UPDATE sums SET doubt_total = 0",
                "DELETE FROM sums",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(lies); i++) {
                struct ledger *ledger;
                char *aside;

                fill();
                lie(lies[i]);
                ledger = open_ledger(&aside);
                if (!aside)
                        fail_msg("believed: %s", lies[i]);
                assert_int_equal(ledger_count(ledger, "w"), 0);
                assert_int_equal(ledger_pause_see(ledger, "w", see_pause, NULL), 0);
                assert_int_equal(aside ? unlink(aside) : -1, 0);
                free(aside);
                ledger_free(ledger);
        }
}

static int ask_for_run(struct ledger *ledger)
{
        return ledger_run_see(ledger, "w", "l/a", "u", see_any_run, NULL);
}

static int ask_for_pause(struct ledger *ledger)
{
        return ledger_pause_see(ledger, "w", see_pause, NULL);
}

static int ask_for_doubts(struct ledger *ledger)
{
        return ledger_visit_doubts(ledger, NULL, 1, 9, see_doubt, NULL);
}

static int ask_how_often(struct ledger *ledger)
{
        return (int)ledger_doubt_crashes(ledger, "w", "l/a", "u");
}

/* A change of the others of its kind must not make good what is gone. */
static int pause_another(struct ledger *ledger)
{
        return ledger_pause_put(ledger, "v", &(struct ledger_pause){5, 0, "why"});
}

static void test_a_lie_while_it_is_open_is_refused(void **state)
{
        static const struct {
                const char *statement;
                int (*ask)(struct ledger *ledger);
        } row[] = {
                {"UPDATE ledger SET ran_result = 'success'", ask_for_run},
                {"UPDATE paused SET user = 7", ask_for_pause},
                {"UPDATE doubtful SET unread = 1", ask_for_doubts},
                {"UPDATE doubtful SET crashes = 1", ask_how_often},
                {"DELETE FROM paused", pause_another},
                {"DELETE FROM doubtful", pause_another},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                struct ledger *ledger;
                char *aside;

                fill();
                ledger = open_ledger(&aside);
                assert_null(aside);
                assert_true(row[i].ask(ledger) >= 0);
                assert_int_equal(ledger_commit(ledger), 0);
                lie(row[i].statement);
                assert_int_equal(row[i].ask(ledger), -EBADMSG);
                ledger_free(ledger);
                ledger = open_ledger(&aside); /* and the next start begins anew */
                assert_non_null(aside);
                assert_int_equal(unlink(aside), 0);
                free(aside);
                ledger_free(ledger);
        }
}

static void test_another_format_is_refused_and_left_as_it_is(void **state)
{
        static const int format[] = {LEDGER_SCHEMA - 1, LEDGER_SCHEMA + 1};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(format); i++) {
                struct ledger *ledger = NULL;
                struct error error = ERROR_NONE;
                char *aside = NULL, sql[128], named[64];
                sqlite3 *database;

                (void)unlink(path);
                ledger_free(open_ledger(&aside));
                snprintf(sql, sizeof(sql), "PRAGMA user_version = %d; PRAGMA application_id = %d", format[i],
                         1380142080 + format[i]);
                snprintf(named, sizeof(named), "has format %d", format[i]);
                assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
                assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
                sqlite3_close(database);
                for (unsigned again = 0; again < 2; again++) {
                        assert_int_equal(ledger_open(path, &ledger, &aside, &error), -EPROTONOSUPPORT);
                        assert_null(aside);
                        assert_non_null(strstr(error_message(&error), named));
                        error_done(&error);
                }
                assert_int_equal(ledger_set_aside(path, "discarded", &aside), 0);
                assert_int_equal(access(aside, F_OK), 0);
                assert_int_equal(unlink(aside), 0);
                free(aside);
                ledger_free(open_ledger(&aside));
                assert_null(aside);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_rows_survive),
                cmocka_unit_test(test_how_the_last_run_ended_stays_with_its_row),
                cmocka_unit_test(test_a_row_that_comes_again_knows_no_run),
                cmocka_unit_test(test_only_a_commit_shows_them_and_all_of_them),
                cmocka_unit_test(test_what_is_counted_on_is_what_a_start_counts),
                cmocka_unit_test(test_pages_and_due),
                cmocka_unit_test(test_due_once_and_again_after_a_restart),
                cmocka_unit_test(test_a_corrupt_file_is_set_aside),
                cmocka_unit_test(test_a_lie_in_any_table_sets_it_aside),
                cmocka_unit_test(test_a_lie_while_it_is_open_is_refused),
                cmocka_unit_test(test_another_format_is_refused_and_left_as_it_is),
        };

        return cmocka_run_group_tests(test, set_up, tear_down);
}
