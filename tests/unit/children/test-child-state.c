/* SPDX-License-Identifier: Apache-2.0 */
/* The lifecycle of a child is total: every cell is meant, and a child that lives can be the cause of the
 * end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "children/child-process.h"

static const enum child_state alive[] = {CHILD_STARTING, CHILD_CONFIGURED, CHILD_RUNNING, CHILD_STOPPING};

static void test_no_cell_is_forgotten(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(alive) / sizeof(alive[0]); i++)
                for (int event = 0; event < CHILD_EVENT_COUNT; event++)
                        assert_int_not_equal(child_reaction(alive[i], (enum child_event)event), ACT_BUG);
        assert_int_equal(child_reaction((enum child_state)99, EVENT_HELLO), ACT_BUG);
        assert_int_equal(child_reaction(CHILD_RUNNING, CHILD_EVENT_COUNT), ACT_BUG);
}

static void test_death_is_fatal_unless_it_was_told_to(void **state)
{
        static const enum child_event fatal[] = {EVENT_FATAL, EVENT_VIOLATION, EVENT_EXIT, EVENT_SILENCE};

        (void)state;
        for (size_t i = 0; i < 3; i++)
                for (size_t j = 0; j < sizeof(fatal) / sizeof(fatal[0]); j++)
                        assert_int_equal(child_reaction(alive[i], fatal[j]), ACT_DIE);
        assert_int_equal(child_reaction(CHILD_STOPPING, EVENT_EXIT), ACT_BURY);
        for (size_t j = 0; j < sizeof(fatal) / sizeof(fatal[0]); j++)
                assert_int_not_equal(child_reaction(CHILD_STOPPING, fatal[j]), ACT_DIE);
}

static void test_the_order_of_first_words(void **state)
{
        (void)state;
        assert_int_equal(child_reaction(CHILD_STARTING, EVENT_HELLO), ACT_CONFIGURE);
        assert_int_equal(child_reaction(CHILD_STARTING, EVENT_READY), ACT_DIE);
        assert_int_equal(child_reaction(CHILD_STARTING, EVENT_MESSAGE), ACT_DIE);
        assert_int_equal(child_reaction(CHILD_CONFIGURED, EVENT_READY), ACT_START);
        assert_int_equal(child_reaction(CHILD_CONFIGURED, EVENT_HELLO), ACT_DIE);
        assert_int_equal(child_reaction(CHILD_RUNNING, EVENT_READY), ACT_DIE);
        assert_int_equal(child_reaction(CHILD_RUNNING, EVENT_MESSAGE), ACT_DELIVER);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_no_cell_is_forgotten),
                cmocka_unit_test(test_death_is_fatal_unless_it_was_told_to),
                cmocka_unit_test(test_the_order_of_first_words),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
