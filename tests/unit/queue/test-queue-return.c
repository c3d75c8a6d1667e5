/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker was given and has not begun, and what is found once more while it runs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/queue/queue-items.h"

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

/* The next object of its name does not take its place. */
static void test_that_it_has_left_is_told_before_the_next_object(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item left = {
                .key = "a", .uid = "old", .kind = CHANGE_UNSELECTED, .reason = RUN_UNSELECTED};
        struct queue_item next = {
                .key = "a", .uid = "new", .kind = CHANGE_UPDATED, .fingerprint = 7, .reason = RUN_ADDED};
        struct queue_outcome fails = {.delay_usec = 100, .reason = RUN_RETRY};
        struct queue_run run;

        (void)state;
        queue_push(queue, 0, &left, 1);
        queue_push(queue, 0, &next, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_string_equal(run.uid, "old");
        assert_int_equal(run.kind, CHANGE_UNSELECTED);
        assert_int_equal(queue_done(queue, run.id, &fails, 2), 0);
        assert_false(queue_next(queue, 101, &run));
        assert_true(queue_next(queue, 102, &run));
        assert_string_equal(run.uid, "old");
        done(queue, run.id, 0, 103);
        assert_true(queue_next(queue, 103, &run));
        assert_string_equal(run.uid, "new");
        done(queue, run.id, 7, 104);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_AT_REST);
        queue_free(queue);
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
        assert_int_equal(run[2].reason, RUN_CHANGED);
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

static struct queue_item wish(const char *key)
{
        struct queue_item item = update(key, 0);

        item.urgent = true;
        item.reason = RUN_RELEASE;
        return item;
}

static void expect_wish(struct queue *queue, uint64_t now, uint64_t fingerprint)
{
        struct queue_run run;

        start(queue, now, "a", &run);
        assert_int_equal(run.reason, RUN_RELEASE);
        assert_int_equal(run.fingerprint, fingerprint);
        done(queue, run.id, fingerprint, now);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_AT_REST);
}

static void test_a_change_takes_no_wish_away(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = wish("a");
        struct queue_outcome fails = {.delay_usec = 100, .reason = RUN_RELEASE};
        struct queue_run run;

        (void)state;
        queue_push(queue, 0, &item, 1); /* while it waits */
        item = update("a", 2);
        queue_push(queue, 0, &item, 2);
        expect_wish(queue, 2, 2);

        item = wish("a"); /* while it runs, and fails over that */
        queue_push(queue, 0, &item, 3);
        start(queue, 3, "a", &run);
        item = update("a", 3);
        queue_push(queue, 0, &item, 4);
        assert_int_equal(queue_done(queue, run.id, &fails, 5), 0);
        assert_false(queue_next(queue, 104, &run));
        item = update("a", 4);
        queue_push(queue, 0, &item, 104);
        item.nudge = true; /* nor what comes to it from elsewhere */
        queue_push(queue, 0, &item, 104);
        assert_false(queue_next(queue, 104, &run));
        expect_wish(queue, 105, 4);

        item = wish("a"); /* while a worker has it, and gives it back */
        queue_push(queue, 0, &item, 200);
        start(queue, 200, "a", &run);
        item = update("a", 5);
        queue_push(queue, 0, &item, 201);
        assert_int_equal(queue_return(queue, run.id, 202), 0);
        expect_wish(queue, 202, 5);

        item = update("a", 6); /* while the change is read by another run */
        queue_push(queue, 0, &item, 300);
        start(queue, 300, "a", &run);
        item = wish("a");
        queue_push(queue, 0, &item, 301);
        item = update("a", 6);
        queue_push(queue, 0, &item, 302);
        done(queue, run.id, 6, 303);
        expect_wish(queue, 303, 6);
        queue_free(queue);
}

static void test_a_wish_is_of_one_object(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = wish("a"), next = update("a", 1);
        struct queue_run run;

        (void)state;
        next.uid = "next";
        queue_push(queue, 0, &item, 1);
        queue_push(queue, 0, &next, 1);
        start(queue, 1, "a", &run);
        assert_int_equal(run.reason, RUN_CHANGED);
        done(queue, run.id, 1, 2);
        queue_push(queue, 0, &item, 3);
        start(queue, 3, "a", &run);
        queue_push(queue, 0, &next, 4);
        assert_int_equal(queue_return(queue, run.id, 4), 0);
        queue_pause(queue, 0, true);
        assert_false(queue_next(queue, 4, &run));
        queue_free(queue);
}

/* What is uninstalled runs no deletion any more. */
static void test_a_wish_joins_a_deletion(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 0), asked = wish("a");
        struct queue_run run;

        (void)state;
        item.kind = asked.kind = CHANGE_DELETED;
        queue_push(queue, 0, &item, 1);
        queue_pause(queue, 0, true);
        assert_false(queue_next(queue, 1, &run));
        queue_push(queue, 0, &asked, 1);
        expect_wish(queue, 1, 0);
        queue_pause(queue, 0, false);
        queue_push(queue, 0, &item, 2);
        start(queue, 2, "a", &run);
        queue_push(queue, 0, &asked, 2);
        queue_pause(queue, 0, true);
        assert_int_equal(queue_return(queue, run.id, 3), 0);
        expect_wish(queue, 3, 0);
        queue_free(queue);
}

/* What is left waits since it could run: not since the machine is up, and not from now on. */
static void test_what_is_behind_something_forgotten_waits_since_then(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item gone = update("a", 0), next = update("a", 1);
        uint64_t sequence;

        (void)state;
        gone.kind = CHANGE_DELETED;
        next.uid = "next";
        for (int i = 0; i < 2; i++) {
                uint64_t now = 1000 * ((uint64_t)i + 1);

                queue_push(queue, 0, &gone, now);
                queue_push(queue, 0, &next, now + 1);
                if (i == 0)
                        queue_forget(queue, 0, "a", "u", now + 2);
                else
                        assert_true(queue_take_deletion(queue, 0, "a", "u", now + 2, &sequence));
                assert_string_equal(queue_look(queue, 0, "a").uid, "next");
                assert_in_range(queue_look(queue, 0, "a").since, now, now + 2);
                queue_forget(queue, 0, "a", "next", now + 3);
                assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_AT_REST);
        }
        next.suspect = true; /* it keeps its patience */
        queue_push(queue, 0, &gone, 5000);
        queue_push(queue, 0, &next, 5000);
        queue_forget(queue, 0, "a", "u", 5001);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_SUSPECT);
        assert_int_equal(queue_look(queue, 0, "a").since, 5001);
        queue_push(queue, 0, &gone, 5002); /* that of another object is nothing to it */
        queue_forget(queue, 0, "a", "next", 5003);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_QUEUED);
        queue_free(queue);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_unselected_is_told_once),
                cmocka_unit_test(test_that_it_has_left_is_told_before_the_next_object),
                cmocka_unit_test(test_what_was_never_begun_comes_back_first),
                cmocka_unit_test(test_a_deletion_and_a_suspect_come_back),
                cmocka_unit_test(test_a_change_takes_no_wish_away),
                cmocka_unit_test(test_a_wish_is_of_one_object),
                cmocka_unit_test(test_a_wish_joins_a_deletion),
                cmocka_unit_test(test_what_is_behind_something_forgotten_waits_since_then),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
