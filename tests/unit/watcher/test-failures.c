/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of attempts: grows, is capped, and is not reset by a success that proves nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watcher/watcher.h"

#define FIRST UINT64_C(800000)
#define MAX   UINT64_C(30000000)

static const struct message_config_watcher config = {.reconnect_first_usec = FIRST,
                                                     .reconnect_max_usec = MAX};

static void test_delays_double_to_the_cap(void **state _unused_)
{
        struct watcher watcher = {.config = &config};
        struct failures failures = {0};
        uint64_t base = FIRST;

        for (int i = 0; i < 1000; i++) {
                uint64_t delay = failures_delay(&watcher, &failures);

                assert_true(delay >= base && delay < 2 * base);
                base = base * 2 < MAX ? base * 2 : MAX;
        }
}

static void test_a_short_success_keeps_the_pace(void **state _unused_)
{
        struct watcher watcher = {.config = &config};
        struct failures failures = {.count = 3};

        failures_delay(&watcher, &failures);
        failures_delay(&watcher, &failures);
        failures_clear(&watcher, &failures);
        assert_int_equal(failures.count, 0);
        assert_true(failures_delay(&watcher, &failures) >= 4 * FIRST);
        failures.count = 1;
        failures_forget(&watcher, &failures);
        assert_int_equal(failures.count, 0);
        assert_true(failures_delay(&watcher, &failures) < 2 * FIRST);
}

static void test_quiet_ends_the_pace(void **state _unused_)
{
        struct watcher watcher = {.config = &config};
        struct failures failures = {.delay_usec = MAX, .retry_boottime = 1, .relisted = true};

        /* retry_boottime is long ago, unless the machine has just been started */
        if (failures_pace(&watcher, &failures) == 0)
                assert_true(failures.relisted);
        failures.retry_boottime = UINT64_MAX / 2; /* never quiet */
        assert_true(failures_pace(&watcher, &failures) >= MAX);
}

static void test_a_list_at_once_is_granted_once(void **state _unused_)
{
        struct watcher watcher = {.config = &config};
        struct failures failures = {0};

        assert_int_equal(failures_pace(&watcher, &failures), 0);
        failures_clear(&watcher, &failures);
        assert_true(failures_pace(&watcher, &failures) >= FIRST);
        assert_true(failures_pace(&watcher, &failures) >= 2 * FIRST);
        failures_forget(&watcher, &failures);
        assert_int_equal(failures_pace(&watcher, &failures), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_delays_double_to_the_cap),
                cmocka_unit_test(test_a_short_success_keeps_the_pace),
                cmocka_unit_test(test_quiet_ends_the_pace),
                cmocka_unit_test(test_a_list_at_once_is_granted_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
