/* SPDX-License-Identifier: Apache-2.0 */
/* Series of Events and the spam guard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/duration.h"
#include "object/keyed-hash.h"
#include "worker/write/series.h"

#define START (1000 * USEC_PER_SEC)

static enum series_verdict note(struct series_table *table, const char *uid, const char *reason,
                                uint64_t now, struct series **ret)
{
        return series_note(table, series_place("n/o"), series_object(uid),
                           series_identity(uid, "Warning", reason, "Reconcile", ""), 1, now, ret);
}

static void test_a_repeat_is_a_series(void **state)
{
        _cleanup_(series_table_free_pointer) struct series_table *table = NULL;
        struct series *series;
        unsigned writes = 0;

        (void)state;
        assert_int_equal(series_table_new(&table), 0);
        assert_int_equal(note(table, "u", "A", START, &series), SERIES_CREATE);
        series_written(series, START);
        for (uint64_t i = 2; i <= 20; i++) {
                enum series_verdict verdict = note(table, "u", "A", START + i, &series);

                assert_int_equal(series->count, i);
                if (verdict == SERIES_WRITE) {
                        series_written(series, START + i);
                        writes++;
                } else {
                        assert_int_equal(verdict, SERIES_COUNTED);
                }
        }
        assert_int_equal(writes, 4); /* 2, 4, 8, 16 */
        assert_null(series_due(table, START + 20));
        series = series_due(table, START + 20 + SERIES_REFRESH_USEC);
        assert_non_null(series);
        assert_int_equal(series->count, 20);
        series_written(series, START + 20 + SERIES_REFRESH_USEC);
        assert_null(series_due(table, START + 3 * SERIES_REFRESH_USEC));
}

static void test_others_and_silence_begin_anew(void **state)
{
        _cleanup_(series_table_free_pointer) struct series_table *table = NULL;
        struct series *series;

        (void)state;
        assert_int_equal(series_table_new(&table), 0);
        assert_int_equal(note(table, "u", "A", START, &series), SERIES_CREATE);
        series_written(series, START);
        snprintf(series->name, sizeof(series->name), "name");
        assert_int_equal(note(table, "u", "B", START, &series), SERIES_CREATE);
        assert_int_equal(note(table, "v", "A", START, &series), SERIES_CREATE);
        assert_int_equal(note(table, "u", "A", START + 1, &series), SERIES_WRITE);
        series_forget(table, "", "name");
        assert_int_equal(note(table, "u", "A", START + 2, &series), SERIES_CREATE);
        series_written(series, START + 2);
        assert_int_equal(note(table, "u", "A", START + 3 + SERIES_FINISH_USEC, &series), SERIES_CREATE);
}

static void test_the_spam_guard_is_of_one_object(void **state)
{
        _cleanup_(series_table_free_pointer) struct series_table *table = NULL;
        struct series *series;
        char reason[16];

        (void)state;
        assert_int_equal(series_table_new(&table), 0);
        for (int i = 0; i < SERIES_BURST; i++) {
                snprintf(reason, sizeof(reason), "R%d", i);
                assert_int_equal(note(table, "u", reason, START, &series), SERIES_CREATE);
        }
        assert_int_equal(note(table, "u", "one more", START, &series), SERIES_DROPPED);
        assert_null(series);
        assert_int_equal(note(table, "v", "A", START, &series), SERIES_CREATE);
        assert_int_equal(note(table, "u", "later", START + SERIES_REFILL_USEC, &series), SERIES_CREATE);
        assert_int_equal(note(table, "u", "again", START + SERIES_REFILL_USEC, &series), SERIES_DROPPED);
        /* a clock that was set back locks nobody out for longer than a refill */
        assert_int_equal(note(table, "u", "back", START / 2, &series), SERIES_DROPPED);
        assert_int_equal(note(table, "u", "back", START / 2 + SERIES_REFILL_USEC, &series), SERIES_CREATE);
}

/* What other workers have counted comes as a sum, and may be the first that is heard of it. */
static void test_many_at_once(void **state)
{
        _cleanup_(series_table_free_pointer) struct series_table *table = NULL;
        uint64_t object = series_object("u"),
                 identity = series_identity("u", "Warning", "A", "Reconcile", "");
        struct series *series;

        (void)state;
        assert_int_equal(series_table_new(&table), 0);
        assert_null(series_find(table, identity, START));
        assert_int_equal(series_note(table, 1, object, identity, 3, START, &series), SERIES_CREATE);
        series_written(series, START);
        assert_ptr_equal(series_find(table, identity, START), series);
        assert_int_equal(series_note(table, 1, object, identity, 2, START, &series), SERIES_COUNTED);
        assert_int_equal(series_note(table, 1, object, identity, 1, START, &series), SERIES_WRITE);
        assert_int_equal(series->count, 6);
        assert_null(series_find(table, identity, START + SERIES_FINISH_USEC + 1));
}

static void test_memory_is_bounded(void **state)
{
        _cleanup_(series_table_free_pointer) struct series_table *table = NULL;
        struct series *series;
        char uid[32];

        (void)state;
        assert_int_equal(series_table_new(&table), 0);
        for (uint64_t i = 0; i < 10 * SERIES_MAX; i++) {
                snprintf(uid, sizeof(uid), "u%llu", (unsigned long long)i);
                assert_int_equal(series_note(table, i + 1, series_object(uid), i + 1, 1, START + i, &series),
                                 SERIES_CREATE);
        }
}

/* More objects than the table knows: each Event finds that its object has used up nothing. */
static void test_a_crowd_of_one_namespace_is_bounded(void **state)
{
        _cleanup_(series_table_free_pointer) struct series_table *table = NULL;
        struct series *series;
        size_t created = 0;
        char uid[16];

        (void)state;
        assert_int_equal(series_table_new(&table), 0);
        for (size_t i = 0; i < 20 * SERIES_MAX; i++) {
                snprintf(uid, sizeof(uid), "%zu", i % (SERIES_MAX + 1));
                created += note(table, uid, "A", START + i, &series) == SERIES_CREATE;
        }
        assert_int_equal(created, SERIES_NAMESPACE_BURST);
        assert_int_equal(
                series_note(table, series_place("other/o"), series_object("x"), 7, 1, START, &series),
                SERIES_CREATE);
        assert_int_equal(note(table, "y", "A", START + SERIES_NAMESPACE_REFILL_USEC, &series),
                         SERIES_CREATE);
        assert_int_equal(note(table, "z", "A", START + SERIES_NAMESPACE_REFILL_USEC, &series),
                         SERIES_DROPPED);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_a_repeat_is_a_series),
                cmocka_unit_test(test_others_and_silence_begin_anew),
                cmocka_unit_test(test_the_spam_guard_is_of_one_object),
                cmocka_unit_test(test_a_crowd_of_one_namespace_is_bounded),
                cmocka_unit_test(test_many_at_once),
                cmocka_unit_test(test_memory_is_bounded),
        };

        if (keyed_hash_begin("0123456789abcdef", SIPHASH_KEY_SIZE) < 0)
                return 1;
        return cmocka_run_group_tests(test, NULL, NULL);
}
