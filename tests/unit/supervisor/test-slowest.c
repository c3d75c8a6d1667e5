/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest runs: in order, one for each key, few, and none that is old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/control/slowest.h"

static void note(struct slowest *slowest, const char *key, uint64_t took, uint64_t now)
{
        assert_int_equal(slowest_note(slowest, 0, key, "success", took, now), 0);
}

static void test_in_order_and_one_for_each_key(void **state)
{
        struct slowest slowest = {0};

        (void)state;
        note(&slowest, "a", 10, 1);
        note(&slowest, "b", 30, 2);
        note(&slowest, "c", 20, 3);
        note(&slowest, "a", 5, 4);
        assert_int_equal(slowest.count, 3);
        assert_string_equal(slowest.run[2].key, "a");
        assert_int_equal(slowest.run[2].took_usec, 10);
        note(&slowest, "a", 40, 5);
        assert_int_equal(slowest.count, 3);
        assert_string_equal(slowest.run[0].key, "a");
        assert_int_equal(slowest_note(&slowest, 1, "a", "retry", 25, 6), 0);
        assert_int_equal(slowest.count, 4);
        assert_int_equal(slowest.run[2].watch, 1);
        slowest_done(&slowest);
}

static void test_few_and_none_that_is_old(void **state)
{
        struct slowest slowest = {0};
        char key[16];

        (void)state;
        for (unsigned i = 0; i < 3 * SLOWEST_MAX; i++) {
                snprintf(key, sizeof(key), "k%u", i);
                note(&slowest, key, (i * 7) % 61 + 1, i);
        }
        assert_int_equal(slowest.count, SLOWEST_MAX);
        for (size_t i = 1; i < slowest.count; i++)
                assert_true(slowest.run[i - 1].took_usec >= slowest.run[i].took_usec);
        assert_int_equal(slowest.run[0].took_usec, 61);
        note(&slowest, "late", 1, SLOWEST_WINDOW_USEC + 3 * SLOWEST_MAX);
        assert_int_equal(slowest.count, 1);
        assert_string_equal(slowest.run[0].key, "late");
        slowest_done(&slowest);
        assert_int_equal(slowest.count, 0);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_in_order_and_one_for_each_key),
                cmocka_unit_test(test_few_and_none_that_is_old),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
