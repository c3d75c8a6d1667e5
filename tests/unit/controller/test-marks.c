/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of objects: as many as there are, taken off in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "controller/controller-watch.h"

#define OBJECTS 20000

static const char *uid_of(unsigned i)
{
        static char uid[16];

        snprintf(uid, sizeof(uid), "u%u", i);
        return uid;
}

static void test_all_are_found_until_they_are_dropped(void **state)
{
        void *marks = NULL;

        (void)state;
        for (unsigned i = 0; i < OBJECTS; i++) {
                struct mark *mark;

                assert_null(mark_find(&marks, "n/a", uid_of(i)));
                mark = mark_add(&marks, "n/a", uid_of(i));
                assert_non_null(mark);
                assert_int_equal(mark->count, 0);
                mark->count = i;
                assert_ptr_equal(mark_add(&marks, "n/a", uid_of(i)), mark);
        }
        assert_null(mark_find(&marks, "n/b", "u1"));
        /* Every third first, then the rest: nobody is lost with another one. */
        for (unsigned step = 0; step < 3; step++) {
                for (unsigned i = step; i < OBJECTS; i += 3) {
                        mark_drop(&marks, "n/a", uid_of(i));
                        mark_drop(&marks, "n/a", uid_of(i));
                        assert_null(mark_find(&marks, "n/a", uid_of(i)));
                }
                for (unsigned i = step + 1; i < OBJECTS && step < 2; i += 3) {
                        const struct mark *mark = mark_find(&marks, "n/a", uid_of(i));

                        assert_non_null(mark);
                        assert_int_equal(mark->count, i);
                }
        }
        assert_null(marks);
}

static void test_all_are_forgotten(void **state)
{
        void *marks = NULL;

        (void)state;
        mark_drop(&marks, "n/a", "u1");
        assert_non_null(mark_add(&marks, "n/a", "u1"));
        marks_forget(&marks);
        assert_null(mark_find(&marks, "n/a", "u1"));
        marks_forget(&marks);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_all_are_found_until_they_are_dropped),
                cmocka_unit_test(test_all_are_forgotten),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
