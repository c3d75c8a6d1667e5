/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker was given and has not begun, and what is found once more while it runs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/supervisor/queue-items.h"

static void test_unselected_is_told_once(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 0);
        struct queue_run run;

        (void)state;
        item.kind = CHANGE_UNSELECTED;
        queue_push(queue, 0, &item, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_int_equal(queue_push(queue, 0, &item, 2), QUEUE_MERGED);
        done(queue, run.id, 0, 3);
        assert_false(queue_next(queue, 3, &run));
        queue_push(queue, 0, &item, 4); /* but again when it comes again */
        assert_true(queue_next(queue, 4, &run));
        item = update("a", 7); /* and it may be selected meanwhile */
        queue_push(queue, 0, &item, 5);
        done(queue, run.id, 0, 6);
        assert_true(queue_next(queue, 6, &run));
        assert_int_equal(run.kind, CHANGE_UPDATED);
        queue_free(queue);
}

static void start(struct queue *queue, uint64_t now, const char *key, struct queue_run *ret)
{
        assert_true(queue_next(queue, now, ret));
        assert_string_equal(ret->key, key);
}

static void test_what_was_never_begun_comes_back_first(void **state)
{
        const char *const key[] = {"a", "b", "c", "d"};
        struct queue *queue = new_queue(1, 0);
        struct queue_run run[4];
        struct queue_item item;

        (void)state;
        for (size_t i = 0; i < 4; i++) {
                item = update(key[i], 1);
                assert_int_equal(queue_push(queue, 0, &item, i + 1), QUEUE_ADDED);
        }
        for (size_t i = 0; i < 3; i++)
                start(queue, 10, key[i], &run[i]);
        item = update("b", 2); /* it changes meanwhile */
        assert_int_equal(queue_push(queue, 0, &item, 11), QUEUE_MERGED);
        assert_int_equal(queue_return(queue, run[2].id, 20), 0);
        assert_int_equal(queue_return(queue, run[1].id, 20), 0);
        assert_int_equal(queue_return(queue, run[1].id, 20), -ENOENT);
        assert_int_equal(queue_count(queue, 0).running, 1);
        start(queue, 30, "b", &run[1]);
        assert_int_equal(run[1].fingerprint, 2);
        start(queue, 30, "c", &run[2]);
        assert_int_equal(run[2].waited_usec, 27); /* since it could run, not since it came back */
        assert_string_equal(run[2].reason, "changed");
        start(queue, 30, "d", &run[3]);
        assert_false(queue_next(queue, 30, &run[0]));
        queue_free(queue);
}

static void test_a_deletion_and_a_suspect_come_back(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1);
        struct queue_run run;

        (void)state;
        item.kind = CHANGE_DELETED;
        queue_push(queue, 0, &item, 1);
        start(queue, 1, "a", &run);
        item = update("a", 2);
        item.uid = "next";
        queue_push(queue, 0, &item, 2);
        assert_int_equal(queue_return(queue, run.id, 3), 0);
        start(queue, 3, "a", &run);
        assert_int_equal(run.kind, CHANGE_DELETED);
        done(queue, run.id, 0, 4);
        start(queue, 4, "a", &run);
        assert_string_equal(run.uid, "next");
        done(queue, run.id, 2, 5);

        item = update("s", 1);
        item.suspect = true;
        queue_push(queue, 0, &item, 6);
        start(queue, 6, "s", &run);
        assert_int_equal(queue_return(queue, run.id, 7), 0);
        item = update("b", 1);
        queue_push(queue, 0, &item, 8);
        start(queue, 9, "b", &run); /* it does not run alone any more, and last again */
        done(queue, run.id, 1, 10);
        start(queue, 11, "s", &run);
        queue_free(queue);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_unselected_is_told_once),
                cmocka_unit_test(test_what_was_never_begun_comes_back_first),
                cmocka_unit_test(test_a_deletion_and_a_suspect_come_back),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
