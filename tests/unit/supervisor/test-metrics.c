/* SPDX-License-Identifier: Apache-2.0 */
/* Counting: what falls into which bucket, and counters that come over the wire. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "controller/controller-watch.h"
#include "supervisor/children/child-slot.h"

static void test_histogram(void **state)
{
        struct histogram histogram = {0};

        (void)state;
        histogram_add(&histogram, 0);
        histogram_add(&histogram, histogram_bound_usec[0]);
        histogram_add(&histogram, histogram_bound_usec[0] + 1);
        histogram_add(&histogram, histogram_bound_usec[HISTOGRAM_BUCKETS - 1]);
        histogram_add(&histogram, UINT64_MAX / 2);
        assert_int_equal(histogram.count, 5);
        assert_int_equal(histogram.bucket[0], 2);
        assert_int_equal(histogram.bucket[1], 1);
        assert_int_equal(histogram.bucket[HISTOGRAM_BUCKETS - 1], 1);
        for (size_t i = 1; i < HISTOGRAM_BUCKETS; i++)
                assert_true(histogram_bound_usec[i] > histogram_bound_usec[i - 1]);
}

static void test_results(void **state)
{
        struct watch_metrics metrics = {0};

        (void)state;
        for (uint64_t result = 0; result < RESULT_COUNT; result++) {
                struct message_done done = {.result = result, .requeue_after_usec = 1};

                metrics_ended(&metrics, &done, 10);
                assert_int_equal(metrics.result[result], 1);
        }
        assert_int_equal(metrics.retries, 1);
        assert_int_equal(metrics.requeues, 1);
        assert_int_equal(metrics.work.count, RESULT_COUNT);
}

static void test_counters(void **state)
{
        struct record_counter many[CHILD_COUNTERS + 8];
        struct message_heartbeat heartbeat = {.counter = many, .counter_count = ELEMENTS(many)};
        struct child_counters counters;
        char name[ELEMENTS(many)][128];

        (void)state;
        for (size_t i = 0; i < ELEMENTS(many); i++) {
                snprintf(name[i], sizeof(name[i]), "counter_%zu", i);
                many[i] = (struct record_counter){name[i], i};
        }
        memset(name[1], 'x', sizeof(name[1]) - 1);
        name[1][sizeof(name[1]) - 1] = '\0';
        counters_set(&counters, &heartbeat);
        assert_int_equal(counters.count, CHILD_COUNTERS);
        assert_int_equal(counters_get(&counters, "counter_31"), 31);
        assert_int_equal(counters_get(&counters, "counter_32"), 0);
        heartbeat.counter_count = 0;
        counters_set(&counters, &heartbeat);
        assert_int_equal(counters_get(&counters, "counter_31"), 0);
}

static void test_counters_of_those_before(void **state)
{
        static const struct record_counter first[] = {{"a", 1}, {"b", 2}}, second[] = {{"b", 3}, {"c", 4}};
        struct child_slot child = {0};

        (void)state;
        counters_set(&child.counters, &(struct message_heartbeat){.counter = first, .counter_count = 2});
        counters_keep(&child.past, &child.counters);
        counters_keep(&child.past, &child.counters);
        counters_set(&child.counters, &(struct message_heartbeat){.counter = second, .counter_count = 2});
        assert_int_equal(child_total(&child, "a"), 2);
        assert_int_equal(child_total(&child, "b"), 7);
        assert_int_equal(child_total(&child, "c"), 4);
        assert_int_equal(child_total(&child, "d"), 0);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_histogram),
                cmocka_unit_test(test_results),
                cmocka_unit_test(test_counters),
                cmocka_unit_test(test_counters_of_those_before),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
