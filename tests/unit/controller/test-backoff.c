/* SPDX-License-Identifier: Apache-2.0 */
/* How long a failure waits: by attempts, and by what the API server has refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "controller/due/next-attempt.h"

#define FIRST UINT64_C(1000000)
#define MAX   (600 * UINT64_C(1000000))

static uint64_t make_random(void *userdata)
{
        (void)userdata;
        return (uint64_t)random();
}

static const struct controller_effects effects = {.random = make_random};
static struct controller controller = {.effects = &effects};

static void test_doubles_up_to_the_limit(void **state)
{
        const struct config_watch config = {.retry_first_usec = FIRST, .retry_max_usec = MAX};
        uint64_t expected = FIRST;

        (void)state;
        for (uint64_t attempt = 1; attempt <= 20; attempt++) {
                for (int i = 0; i < 100; i++)
                        assert_in_range(retry_delay(&controller, &config, attempt), expected,
                                        expected + expected / 10);
                expected = expected * 2 < MAX ? expected * 2 : MAX;
        }
        assert_int_equal(expected, MAX);
        assert_in_range(retry_delay(&controller, &config, UINT64_MAX), MAX, MAX + MAX / 10);
        assert_in_range(retry_delay(&controller, &config, 0), FIRST, FIRST + FIRST / 10);
}

/* What failed together does not come back together. */
static void test_is_spread(void **state)
{
        const struct config_watch config = {.retry_first_usec = FIRST, .retry_max_usec = MAX};
        uint64_t least = UINT64_MAX, most = 0;

        (void)state;
        for (int i = 0; i < 1000; i++) {
                uint64_t delay = retry_delay(&controller, &config, 1);

                least = delay < least ? delay : least;
                most = delay > most ? delay : most;
        }
        assert_true(most - least > FIRST / 20);
}

static void test_limits_without_room(void **state)
{
        struct config_watch config = {.retry_first_usec = 5, .retry_max_usec = 5};

        (void)state;
        for (uint64_t attempt = 0; attempt < 100; attempt++)
                assert_int_equal(retry_delay(&controller, &config, attempt), 5);
        config.retry_max_usec = UINT64_MAX / 2;
        config.retry_first_usec = UINT64_MAX / 4;
        assert_true(retry_delay(&controller, &config, 50) >= UINT64_MAX / 2);
}

static void test_throttling_is_fibonacci(void **state)
{
        static const uint64_t expected[] = {1,  1,  2,   3,   5,   8,   13,  21, 34,
                                            55, 89, 144, 233, 377, 610, 610, 610};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(expected); i++)
                assert_int_equal(throttle_units(i + 1), expected[i]);
        assert_int_equal(throttle_units(UINT64_MAX), 610);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_doubles_up_to_the_limit),
                cmocka_unit_test(test_is_spread),
                cmocka_unit_test(test_limits_without_room),
                cmocka_unit_test(test_throttling_is_fibonacci),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
