/* SPDX-License-Identifier: Apache-2.0 */
/* Which request a line answers, and which runs share a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "worker/run/together/asked.h"

static const struct asked *find(struct asked *first, const char *line, bool cut)
{
        return asked_find(first, line, strlen(line), cut, false);
}

static void test_a_line_answers_the_request_with_its_id(void **state)
{
        struct asked asked[] = {{.id = 7}, {.id = 0}, {.id = 17}, {.id = 9}}, *first = NULL;
        static const char *const none[] = {"{}",
                                           "{\"id\":8}",
                                           "{\"id\":0}",
                                           "{\"id\":\"7\"}",
                                           "{\"id\":7.0}",
                                           "{\"id\":07}",
                                           "{\"id\":-7}",
                                           "{\"id\":7",
                                           "[7]",
                                           "id: 7",
                                           "{\"ID\":7}",
                                           "{\"a\":{\"id\":7}}",
                                           "{\"id\":null}",
                                           "{\"id\":18446744073709551623}"};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(asked); i++)
                asked_add(&first, &asked[i]);
        assert_int_equal(asked_count_sent(first), 3);
        assert_int_equal(asked_count_unsent(first), 1);
        assert_ptr_equal(find(first, "{\"id\":7}", false), &asked[0]);
        assert_ptr_equal(find(first, "{\"status\":{\"id\":7}, \"id\" : 17 }", false), &asked[2]);
        assert_ptr_equal(find(first, "{\"id\":7,\"id\":9}", false), &asked[3]);
        for (size_t i = 0; i < ELEMENTS(none); i++)
                assert_null(find(first, none[i], false));
        asked_remove(&first, &asked[0]);
        asked_remove(&first, &asked[0]);
        assert_null(find(first, "{\"id\":7}", false));
        assert_int_equal(asked_count_sent(first), 2);
}

/* It is cut, and so no JSON: the id must stand at its beginning, but of the only request that a process ever had. */
static void test_a_line_that_is_too_long(void **state)
{
        struct asked asked[] = {{.id = 7}, {.id = 17}}, *first = NULL;

        (void)state;
        asked_add(&first, &asked[0]);
        asked_add(&first, &asked[1]);
        assert_ptr_equal(find(first, "{\"id\": 17, \"status\": \"xxx", true), &asked[1]);
        assert_null(find(first, "{\"status\": \"xxx", true));
        assert_null(find(first, "xxx", true));
        asked_remove(&first, &asked[0]);
        assert_null(find(first, "{\"status\": \"xxx", true));
        assert_ptr_equal(asked_find(first, "{\"status\": \"xxx", 14, true, true), &asked[1]);
        assert_null(asked_find(first, "xxx", 3, true, true));
}

static void test_a_line_with_more_than_an_answer(void **state)
{
        static const char behind[] = "{\"id\":7}\0", glued[] = "{\"id\":7}{\"id\":8}",
                          whole[] = "{\"id\":7} \r";

        (void)state;
        assert_false(asked_is_whole(behind, sizeof(behind) - 1));
        assert_false(asked_is_whole(glued, sizeof(glued) - 1));
        assert_false(asked_is_whole("{\"id\":7", 7));
        assert_true(asked_is_whole(whole, sizeof(whole) - 1));
}

static void test_who_shares_a_process(void **state)
{
        struct record_watch config = {.parallel = 4};
        struct message_config_worker settings = {.window = 32};
        struct worker worker = {.config = &settings};
        struct worker_watch watch = {.config = &config};
        struct message_run order = {.uid = "1"}, other = {.uid = "2"};
        struct run run = {.worker = &worker, .watch = &watch, .order = &order},
                   another = {.worker = &worker, .watch = &watch, .order = &other};

        (void)state;
        assert_int_equal(asked_together(&run), 4);
        watch.apart = 2; /* two were lost together */
        assert_int_equal(asked_together(&run), 1);
        asked_note_answer(&another);
        assert_int_equal(asked_together(&another), 1);
        asked_note_answer(&run);
        assert_int_equal(asked_together(&run), 4);
        settings.window = 1;
        assert_int_equal(asked_together(&run), 1);
        settings.window = 32;
        config.batch_max = 10;
        assert_int_equal(asked_together(&run), 10);
        assert_int_equal(asked_at_once(&run), 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_line_answers_the_request_with_its_id),
                cmocka_unit_test(test_a_line_that_is_too_long),
                cmocka_unit_test(test_a_line_with_more_than_an_answer),
                cmocka_unit_test(test_who_shares_a_process),
        };

        return cmocka_run_group_tests_name("asked", tests, NULL, NULL);
}
