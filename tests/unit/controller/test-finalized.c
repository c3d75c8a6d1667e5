/* SPDX-License-Identifier: Apache-2.0 */
/* The set of finalized objects: as many as there are, taken out in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "controller/change/finalized.h"

#define OBJECTS 20000

static void name_of(unsigned i, char uid[16])
{
        snprintf(uid, 16, "u%u", i);
}

static bool is(const struct watch *watch, unsigned i)
{
        char uid[16];

        name_of(i, uid);
        return finalized_is(watch, "n/a", uid);
}

static void test_all_are_found_until_they_are_dropped(void **state)
{
        struct watch watch = {.finalized_count = 0};
        char uid[16];

        (void)state;
        for (unsigned i = 0; i < OBJECTS; i++) {
                assert_false(is(&watch, i));
                name_of(i, uid);
                assert_int_equal(finalized_note(&watch, "n/a", uid), 0);
                assert_int_equal(finalized_note(&watch, "n/a", uid), 0);
        }
        assert_int_equal(watch.finalized_count, OBJECTS);
        assert_false(finalized_is(&watch, "n/b", "u1"));
        /* Every third first, then the rest: nobody is lost with another one. */
        for (unsigned step = 0; step < 3; step++) {
                for (unsigned i = step; i < OBJECTS; i += 3) {
                        assert_true(is(&watch, i));
                        name_of(i, uid);
                        finalized_drop(&watch, "n/a", uid);
                        finalized_drop(&watch, "n/a", uid);
                        assert_false(is(&watch, i));
                }
                for (unsigned i = step + 1; i < OBJECTS && step < 2; i += 3)
                        assert_true(is(&watch, i));
        }
        assert_int_equal(watch.finalized_count, 0);
        assert_null(watch.finalized);
}

static void test_all_are_forgotten(void **state)
{
        struct watch watch = {.finalized_count = 0};

        (void)state;
        finalized_drop(&watch, "n/a", "u1");
        assert_int_equal(finalized_note(&watch, "n/a", "u1"), 0);
        finalized_forget(&watch);
        assert_false(is(&watch, 1));
        finalized_forget(&watch);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_all_are_found_until_they_are_dropped),
                cmocka_unit_test(test_all_are_forgotten),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
