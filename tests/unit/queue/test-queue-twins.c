/* SPDX-License-Identifier: Apache-2.0 */
/* The same object in two watches of one kind: one run at a time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "queue/queue-watch.h"
#include "tests/unit/queue/queue-items.h"

static struct queue *new_twins(void)
{
        struct queue *queue = new_queue(3, 0);

        queue_set_kind(queue, 0, 7);
        queue_set_kind(queue, 1, 7);
        return queue; /* the third one is of another kind */
}

static void test_one_waits_for_the_other(void **state)
{
        struct queue *queue = new_twins();
        struct queue_item item = update("a", 1), other = update("b", 1);
        struct queue_run first, run;

        (void)state;
        queue_push(queue, 0, &item, 1);
        queue_push(queue, 1, &item, 1);
        queue_push(queue, 2, &item, 1);
        assert_true(queue_next(queue, 2, &first));
        assert_int_equal(first.watch, 0);
        assert_true(queue_next(queue, 2, &run));
        assert_int_equal(run.watch, 2); /* of another kind: another object */
        assert_false(queue_next(queue, 3, &run));
        assert_int_equal(queue_look(queue, 1, "a").state, QUEUE_QUEUED);
        assert_int_equal(queue_count(queue, 1).queued, 1);
        queue_push(queue, 1, &other, 3);
        assert_true(queue_next(queue, 4, &run)); /* another object is not held up */
        assert_string_equal(run.key, "b");
        done(queue, first.id, 1, 5);
        assert_true(queue_next(queue, 5, &run));
        assert_int_equal(run.watch, 1);
        assert_int_equal(queue_count(queue, 1).queued, 0);
        queue_free(queue);
}

/* Only what waits for its twin is hurried: no backoff, no other object, no other kind. */
static void test_news_of_one_hurries_what_waits_to_leave(void **state)
{
        struct queue *queue = new_twins();
        struct queue_item left = update("a", 0), failed = update("b", 0), other = update("a", 0);
        struct queue_run run;

        (void)state;
        left.kind = failed.kind = CHANGE_UNSELECTED;
        left.not_before = failed.not_before = other.not_before = 100;
        left.reason = RUN_UNSELECTED;
        failed.reason = RUN_RETRY;
        queue_push(queue, 0, &left, 1);
        queue_push(queue, 0, &failed, 1);
        queue_push(queue, 2, &other, 1);
        queue_hurry_twins(queue, 1, "a", "another", 2);
        queue_hurry_twins(queue, 0, "a", left.uid, 2);
        assert_false(queue_next(queue, 2, &run));
        queue_hurry_twins(queue, 1, "b", failed.uid, 3);
        queue_hurry_twins(queue, 1, "a", left.uid, 3);
        assert_true(queue_next(queue, 3, &run));
        assert_int_equal(run.watch, 0);
        assert_string_equal(run.key, "a");
        assert_false(queue_next(queue, 3, &run));
        queue_free(queue);
}

static void test_what_comes_while_the_other_runs_waits_too(void **state)
{
        struct queue *queue = new_twins();
        struct queue_item item = update("a", 1), later = update("a", 2);
        struct queue_run first, run;

        (void)state;
        queue_push(queue, 1, &item, 1);
        assert_true(queue_next(queue, 1, &first));
        later.not_before = 10; /* it is delayed, and due while the other one runs */
        queue_push(queue, 0, &later, 2);
        assert_false(queue_next(queue, 20, &run));
        assert_int_equal(queue_next_time(queue), UINT64_MAX); /* nothing to wake up for */
        item.kind = CHANGE_DELETED;
        queue_push(queue, 0, &item, 21);
        assert_false(queue_next(queue, 22, &run));
        assert_int_equal(queue_return(queue, first.id, 23), 0); /* it never began */
        assert_true(queue_next(queue, 24, &first));
        assert_false(queue_next(queue, 24, &run)); /* whichever was first */
        done(queue, first.id, 1, 25);
        assert_true(queue_next(queue, 25, &run));
        assert_int_not_equal(run.watch, first.watch);
        queue_free(queue);
}

static void test_what_is_held_is_forgotten_in_order(void **state)
{
        struct queue *queue = new_twins();
        struct queue_item item = update("a", 1);
        struct queue_run first, run;

        (void)state;
        queue_push(queue, 0, &item, 1);
        assert_true(queue_next(queue, 1, &first));
        queue_push(queue, 1, &item, 2);
        queue_forget(queue, 1, "a", item.uid, 3);
        assert_int_equal(queue_count(queue, 1).queued, 0);
        queue_push(queue, 1, &item, 4);
        assert_int_equal(queue_clear(queue, 1, 0), 0);
        assert_int_equal(queue_count(queue, 1).queued, 0);
        done(queue, first.id, 1, 5);
        assert_false(queue_next(queue, 6, &run));
        queue_free(queue);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_waits_for_the_other),
                cmocka_unit_test(test_news_of_one_hurries_what_waits_to_leave),
                cmocka_unit_test(test_what_comes_while_the_other_runs_waits_too),
                cmocka_unit_test(test_what_is_held_is_forgotten_in_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
