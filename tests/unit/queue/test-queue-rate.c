/* SPDX-License-Identifier: Apache-2.0 */
/* A watch whose handler may not run so often: tokens, who waits for them, and who needs none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "queue/rate.h"
#include "tests/unit/queue/queue-items.h"

#define INTERVAL (100 * USEC_PER_MSEC)

static struct queue *rated_queue(unsigned burst)
{
        struct queue *queue = new_queue(2, 0);

        queue_set_rate(queue, 0, INTERVAL * 1000, burst);
        return queue;
}

static void push(struct queue *queue, unsigned watch, const char *key, enum run_reason reason, uint64_t now)
{
        struct queue_item item = update(key, 1);

        item.reason = reason;
        assert_true(queue_push(queue, watch, &item, now) >= 0);
}

static void push_many(struct queue *queue, unsigned count, uint64_t now)
{
        for (unsigned i = 0; i < count; i++) {
                char key[32];

                snprintf(key, sizeof(key), "ns/k%u", i);
                push(queue, 0, key, RUN_CHANGED, now);
        }
}

/* How many begin now; each has asked its handler, and is over at once. */
static unsigned begun(struct queue *queue, uint64_t now)
{
        struct queue_run run;
        unsigned count = 0;

        for (; queue_next(queue, now, &run); count++) {
                queue_handler_ran(queue, run.watch, run.id, true, now);
                done(queue, run.id, 1, now);
        }
        return count;
}

static void test_a_burst_and_then_one_each_interval(void **state)
{
        struct queue *queue = rated_queue(3);
        uint64_t now = 1000;

        (void)state;
        push_many(queue, 10, now);
        assert_int_equal(begun(queue, now), 3);
        assert_int_equal(queue_next_time(queue), now + INTERVAL);
        assert_int_equal(queue_rate(queue, 0).next, now + INTERVAL);
        assert_int_equal(begun(queue, now + INTERVAL - 1), 0);
        assert_int_equal(begun(queue, now + INTERVAL), 1);
        assert_int_equal(begun(queue, now + INTERVAL), 0);
        assert_int_equal(begun(queue, now + 3 * INTERVAL), 2);
        assert_int_equal(begun(queue, now + 100 * INTERVAL), 3); /* no more than a burst is saved up */
        assert_int_equal(queue_rate(queue, 0).waited_runs, 6);
        assert_int_equal(begun(queue, now + 101 * INTERVAL), 1);
        assert_int_equal(queue_next_time(queue), UINT64_MAX); /* nobody waits */
        queue_free(queue);
}

static void test_waiting_costs_nothing(void **state)
{
        struct queue *queue = rated_queue(1);
        struct queue_run run;

        (void)state;
        push_many(queue, 100000, 1);
        assert_int_equal(begun(queue, 1), 1);
        for (unsigned i = 0; i < 200000; i++) /* with a look at each of them that would take an hour */
                assert_false(queue_next(queue, 2, &run));
        assert_int_equal(queue_count(queue, 0).queued, 99999);
        queue_free(queue);
}

static void test_other_watches_go_on(void **state)
{
        struct queue *queue = rated_queue(1);

        (void)state;
        push_many(queue, 3, 1);
        for (unsigned i = 0; i < 20; i++) {
                char key[32];

                snprintf(key, sizeof(key), "ns/k%u", i);
                push(queue, 1, key, RUN_CHANGED, 1);
        }
        assert_int_equal(begun(queue, 1), 21);
        queue_free(queue);
}

static void test_a_token_that_was_not_used_comes_back(void **state)
{
        struct queue *queue = rated_queue(1);
        struct queue_run run;

        (void)state;
        push_many(queue, 2, 1);
        assert_true(queue_next(queue, 1, &run));
        queue_handler_ran(queue, 0, run.id, false, 2);
        assert_int_equal(queue_return(queue, run.id, 2), 0);
        assert_true(queue_next(queue, 3, &run)); /* the same one, first of its line */
        assert_string_equal(run.key, "ns/k0");
        queue_handler_ran(queue, 0, run.id, true, 3);
        done(queue, run.id, 1, 3);
        assert_false(queue_next(queue, 4, &run));
        queue_free(queue);
}

static void test_what_goes_on_does_not_wait_but_may_owe(void **state)
{
        struct queue *queue = rated_queue(1);
        struct queue_run run;

        (void)state;
        push_many(queue, 2, 1);
        assert_int_equal(begun(queue, 1), 1);
        push(queue, 0, "ns/begun", RUN_SETTLING, 1);
        assert_true(queue_look(queue, 0, "ns/begun").goes_on);
        assert_false(queue_look(queue, 0, "ns/k1").goes_on);
        assert_true(queue_next(queue, 1, &run));
        assert_string_equal(run.key, "ns/begun");
        queue_handler_ran(queue, 0, run.id, true, 1); /* it began anew */
        done(queue, run.id, 1, 1);
        assert_int_equal(begun(queue, 1 + INTERVAL), 0);
        assert_int_equal(begun(queue, 1 + 2 * INTERVAL), 1);
        queue_free(queue);
}

static void test_by_hand_is_first_but_waits(void **state)
{
        struct queue *queue = rated_queue(1);
        struct queue_item item = update("ns/asked", 1);
        struct queue_run run;

        (void)state;
        push_many(queue, 3, 1);
        assert_int_equal(begun(queue, 1), 1);
        item.urgent = true;
        item.reason = RUN_REQUESTED;
        assert_int_equal(queue_push(queue, 0, &item, 1), QUEUE_ADDED);
        assert_false(queue_next(queue, 1, &run));
        assert_true(queue_next(queue, 1 + INTERVAL, &run));
        assert_string_equal(run.key, "ns/asked");
        queue_free(queue);
}

static void test_what_asks_no_handler_does_not_wait(void **state)
{
        struct queue *queue = rated_queue(1);
        struct queue_run run;

        (void)state;
        push_many(queue, 4, 1);
        assert_int_equal(begun(queue, 1), 1);
        for (unsigned i = 1; i < 4; i++) {
                char key[32];
                struct queue_item item = update(key, 1);

                snprintf(key, sizeof(key), "ns/k%u", i);
                item.urgent = true;
                item.reason = RUN_UNINSTALL;
                assert_int_equal(queue_push(queue, 0, &item, 1), QUEUE_MERGED);
        }
        for (unsigned i = 0; i < 3; i++) {
                assert_true(queue_next(queue, 1, &run));
                queue_handler_ran(queue, 0, run.id, false, 1);
                done(queue, run.id, 1, 1);
        }
        assert_int_equal(queue_rate(queue, 0).next, 1 + INTERVAL); /* nothing was taken, nothing came back */
        queue_free(queue);
}

/* A tenant whose runs go on all the time keeps its turn for a token. */
static void test_namespaces_take_turns_for_tokens(void **state)
{
        struct queue *queue = rated_queue(1);
        struct queue_run run;
        unsigned first = 0;

        (void)state;
        for (unsigned i = 0; i < 50; i++) {
                char key[32];

                snprintf(key, sizeof(key), "a/k%u", i);
                push(queue, 0, key, RUN_CHANGED, 1);
                snprintf(key, sizeof(key), "b/k%u", i);
                push(queue, 0, key, RUN_CHANGED, 1);
        }
        for (uint64_t now = 1, i = 0; i < 20; i++, now += INTERVAL) {
                assert_true(queue_next(queue, now, &run));
                first += run.key[0] == 'a';
                queue_handler_ran(queue, 0, run.id, true, now);
                done(queue, run.id, 1, now);
                push(queue, 0, "a/begun", RUN_SETTLING, now);
                assert_true(queue_next(queue, now, &run));
                assert_string_equal(run.key, "a/begun");
                queue_handler_ran(queue, 0, run.id, false, now);
                done(queue, run.id, 1, now);
        }
        assert_int_equal(first, 10);
        queue_free(queue);
}

static void test_pause_close_and_clear(void **state)
{
        struct queue *queue = rated_queue(1);

        (void)state;
        push_many(queue, 3, 1);
        assert_int_equal(begun(queue, 1), 1);
        queue_pause(queue, 0, true);
        assert_int_equal(queue_next_time(queue), UINT64_MAX);
        queue_pause(queue, 0, false);
        assert_int_equal(queue_next_time(queue), 1 + INTERVAL);
        queue_close(queue, 0);
        assert_int_equal(queue_next_time(queue), UINT64_MAX);
        assert_int_equal(queue_clear(queue, 0, 0), 0);
        push_many(queue, 3, 1);
        assert_int_equal(begun(queue, 1), 0); /* the same handler */
        queue_set_rate(queue, 0, 0, 1);
        assert_int_equal(begun(queue, 1), 3);
        queue_free(queue);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_a_burst_and_then_one_each_interval),
                cmocka_unit_test(test_waiting_costs_nothing),
                cmocka_unit_test(test_other_watches_go_on),
                cmocka_unit_test(test_a_token_that_was_not_used_comes_back),
                cmocka_unit_test(test_what_goes_on_does_not_wait_but_may_owe),
                cmocka_unit_test(test_what_asks_no_handler_does_not_wait),
                cmocka_unit_test(test_by_hand_is_first_but_waits),
                cmocka_unit_test(test_namespaces_take_turns_for_tokens),
                cmocka_unit_test(test_pause_close_and_clear),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
