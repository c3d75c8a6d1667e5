/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers' metrics become, and what is dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "metric/metric-rule.h"
#include "metric/registry.h"
#include "tests/unit/valgrind.h"

static size_t watches = 1; /* that share the registry */

static int take_as(struct registry *registry, const char *watch, enum metric_action action, const char *name,
                   const char *labels, double value, const char *buckets)
{
        struct record_metric metric = {.action = action, .name = name, .labels = labels, .buckets = buckets};

        memcpy(&metric.value, &value, sizeof(value));
        return registry_take(registry, watch, watches, &metric);
}

static int take(struct registry *registry, enum metric_action action, const char *name, const char *labels,
                double value)
{
        return take_as(registry, "w", action, name, labels, value, "");
}

static struct registry *new_registry(void)
{
        struct registry *registry;

        assert_int_equal(registry_new(&registry), 0);
        return registry;
}

static void assert_written(const struct registry *registry, const char *expected)
{
        struct text text = TEXT_EMPTY;

        registry_write(registry, &text);
        assert_string_equal(text.data ? text.data : "", expected);
        text_done(&text);
}

static void test_each_action(void **state)
{
        struct registry *registry = new_registry();

        (void)state;
        assert_written(registry, "");
        assert_int_equal(take(registry, METRIC_SET, "size", "name=\"a\"", 3), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_SET, "size", "name=\"a\"", -1.5), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_ADD, "calls", "", 1), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_ADD, "calls_total", "", 2), METRIC_TAKEN);
        assert_int_equal(take_as(registry, "v", METRIC_ADD, "calls", "", 5, ""), METRIC_TAKEN);
        assert_int_equal(take_as(registry, "w", METRIC_OBSERVE, "age", "", 1, "1 10"), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_OBSERVE, "age", "", 5), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_OBSERVE, "age", "", 50), METRIC_TAKEN);
        assert_written(
                registry,
                "# TYPE size gauge\n# HELP size Of a handler.\n"
                "size{watch=\"w\",name=\"a\"} -1.5\n"
                "# TYPE calls counter\n# HELP calls Of a handler.\n"
                "calls_total{watch=\"w\"} 3\ncalls_total{watch=\"v\"} 5\n"
                "# TYPE age histogram\n# HELP age Of a handler.\n"
                "age_bucket{watch=\"w\",le=\"1\"} 1\nage_bucket{watch=\"w\",le=\"10\"} 2\n"
                "age_bucket{watch=\"w\",le=\"+Inf\"} 3\nage_count{watch=\"w\"} 3\nage_sum{watch=\"w\"} 56\n");
        assert_int_equal(registry_samples(registry), 1 + 2 + 5);
        assert_int_equal(take(registry, METRIC_REMOVE, "size", "name=\"b\"", 0),
                         METRIC_TAKEN); /* there is none */
        assert_int_equal(take(registry, METRIC_REMOVE, "nothing", "", 0), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_REMOVE, "size", "name=\"a\"", 0), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_REMOVE, "calls_total", "", 0), METRIC_TAKEN);
        assert_int_equal(take_as(registry, "v", METRIC_REMOVE, "calls", "", 0, ""), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_REMOVE, "age", "", 0), METRIC_TAKEN);
        assert_int_equal(registry_samples(registry), 0);
        assert_written(registry, "");
        registry_free(registry);
}

static void test_a_name_is_one_metric(void **state)
{
        struct registry *registry = new_registry();

        (void)state;
        assert_int_equal(take(registry, METRIC_SET, "size", "", 1), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_ADD, "size", "", 1), METRIC_CLASH);
        assert_int_equal(take_as(registry, "v", METRIC_OBSERVE, "size", "", 1, ""), METRIC_CLASH);
        assert_int_equal(take(registry, METRIC_OBSERVE, "age", "", 1), METRIC_TAKEN);
        assert_int_equal(take_as(registry, "w", METRIC_OBSERVE, "age", "", 1, "1 2"), METRIC_CLASH);
        assert_int_equal(take(registry, METRIC_SET, "age_count", "", 1), METRIC_CLASH);
        assert_int_equal(take(registry, METRIC_SET, "age_sum", "", 1), METRIC_CLASH);
        assert_int_equal(take(registry, METRIC_SET, "ages", "", 1), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_SET, "time_count", "", 1), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_OBSERVE, "time", "", 1), METRIC_CLASH);
        assert_int_equal(take(registry, METRIC_SET, "age_count_count", "", 1), METRIC_TAKEN);
        registry_free(registry);
}

static void test_hostile_values(void **state)
{
        struct registry *registry = new_registry();

        (void)state;
        assert_int_equal(take(registry, METRIC_SET, "size", "", (double)NAN), -EINVAL);
        assert_int_equal(take(registry, METRIC_SET, "size", "", (double)INFINITY), -EINVAL);
        assert_int_equal(take(registry, METRIC_ADD, "calls", "", -1), -EINVAL);
        assert_int_equal(take(registry, METRIC_OBSERVE, "seconds", "", -1), -EINVAL);
        assert_int_equal(take(registry, METRIC_SET, "size", "a=\"b\"} 1\nx{b=\"c\"", 1), -EINVAL);
        assert_int_equal(take(registry, METRIC_SET, "reconciled_starts", "", 1), -EINVAL);
        assert_int_equal(take_as(registry, "w", METRIC_SET, "size", "", 1, "1 2"), -EINVAL);
        assert_int_equal(take_as(registry, "w", METRIC_OBSERVE, "age", "", 1, "2 1"), -EINVAL);
        assert_int_equal(take(registry, METRIC_ADD, "calls", "", 1e308), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_ADD, "calls", "", 1e308), METRIC_OVERFLOW);
        assert_written(
                registry,
                "# TYPE calls counter\n# HELP calls Of a handler.\ncalls_total{watch=\"w\"} 1e+308\n");
        registry_free(registry);
}

static void test_a_million_series(void **state)
{
        /* Of those that are dropped, valgrind need not see each. */
        const unsigned many = under_valgrind() ? REGISTRY_SAMPLES_MAX + 1000 : 1000000;
        struct registry *registry = new_registry();
        unsigned taken = 0, dropped = 0;
        struct text text = TEXT_EMPTY;

        (void)state;
        for (unsigned i = 0; i < many; i++) {
                char labels[40];
                int r;

                snprintf(labels, sizeof(labels), "name=\"object-%u\"", i);
                r = take(registry, METRIC_SET, "size", labels, i);
                taken += r == METRIC_TAKEN;
                dropped += r == METRIC_TOO_MANY;
        }
        assert_int_equal(taken, REGISTRY_SAMPLES_MAX);
        assert_int_equal(dropped, many - REGISTRY_SAMPLES_MAX);
        assert_int_equal(take(registry, METRIC_SET, "size", "name=\"object-7\"", 1),
                         METRIC_TAKEN); /* it has its place */
        assert_int_equal(take(registry, METRIC_REMOVE, "size", "name=\"object-7\"", 1), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_SET, "size", "name=\"new\"", 1), METRIC_TAKEN);
        registry_write(registry, &text);
        assert_false(text.failed);
        text_done(&text);
        registry_free(registry);
}

static void test_many_names(void **state)
{
        struct registry *registry = new_registry();
        unsigned taken = 0;

        (void)state;
        for (unsigned i = 0; i < 1000; i++) {
                char name[40];

                snprintf(name, sizeof(name), "size_%u", i);
                taken += take(registry, METRIC_SET, name, "", i) == METRIC_TAKEN;
        }
        assert_int_equal(taken, REGISTRY_FAMILIES_MAX);
        registry_free(registry);
}

static unsigned take_many(struct registry *registry, const char *watch, enum metric_action action,
                          unsigned names, unsigned series)
{
        unsigned taken = 0;

        for (unsigned i = 0; i < names; i++)
                for (unsigned j = 0; j < series; j++) {
                        char name[40], labels[40];

                        snprintf(name, sizeof(name), "%s_%u", watch, i);
                        snprintf(labels, sizeof(labels), "of=\"%u\"", j);
                        taken += take_as(registry, watch, action, name, labels, 1, "") == METRIC_TAKEN;
                }
        return taken;
}

static void test_no_watch_takes_the_place_of_another(void **state)
{
        struct registry *registry = new_registry();

        (void)state;
        watches = 4;
        assert_int_equal(take_many(registry, "crowd", METRIC_SET, 1, 20000), REGISTRY_SAMPLES_MAX / 4);
        assert_int_equal(take_many(registry, "names", METRIC_SET, 1000, 1), REGISTRY_FAMILIES_MAX / 4);
        assert_int_equal(take_many(registry, "quiet", METRIC_OBSERVE, 50, 1), 50);
        assert_int_equal(take_as(registry, "crowd", METRIC_SET, "names_1", "", 1, ""), METRIC_TOO_MANY);
        watches = 1000;
        assert_int_equal(take_many(registry, "late", METRIC_SET, 1, 20000), REGISTRY_SAMPLES_MIN);
        assert_int_equal(take_many(registry, "later", METRIC_SET, 1000, 1), REGISTRY_FAMILIES_MIN);
        watches = 1;
        registry_free(registry);
}

static void test_a_name_is_free_when_nothing_is_left_of_it(void **state)
{
        struct registry *registry = new_registry();

        (void)state;
        for (unsigned i = 0; i < 1000; i++) {
                char name[40];

                snprintf(name, sizeof(name), "size_%u", i);
                assert_int_equal(take(registry, METRIC_SET, name, "of=\"a\"", i), METRIC_TAKEN);
                assert_int_equal(take_as(registry, "v", METRIC_SET, name, "", i, ""), METRIC_TAKEN);
                assert_int_equal(take(registry, METRIC_REMOVE, name, "of=\"a\"", i), METRIC_TAKEN);
                assert_int_equal(take(registry, METRIC_ADD, name, "", i), METRIC_CLASH); /* v has it */
                assert_int_equal(take_as(registry, "v", METRIC_REMOVE, name, "", i, ""), METRIC_TAKEN);
        }
        assert_int_equal(registry_samples(registry), 0);
        assert_int_equal(take(registry, METRIC_ADD, "size_7", "", 3), METRIC_TAKEN);
        assert_written(registry,
                       "# TYPE size_7 counter\n# HELP size_7 Of a handler.\nsize_7_total{watch=\"w\"} 3\n");
        registry_free(registry);
}

/* A family that found no place for its first series takes none itself. */
static void test_a_name_without_a_sample_is_none(void **state)
{
        struct registry *registry = new_registry();

        (void)state;
        assert_int_equal(take_many(registry, "w", METRIC_SET, 1, REGISTRY_SAMPLES_MAX),
                         REGISTRY_SAMPLES_MAX);
        for (unsigned i = 0; i < 1000; i++) {
                char name[40];

                snprintf(name, sizeof(name), "size_%u", i);
                assert_int_equal(take(registry, METRIC_SET, name, "", i), METRIC_TOO_MANY);
        }
        assert_int_equal(take(registry, METRIC_REMOVE, "w_0", "of=\"5\"", 0), METRIC_TAKEN);
        assert_int_equal(take(registry, METRIC_ADD, "size_0", "", 1), METRIC_TAKEN);
        registry_free(registry);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_each_action),
                cmocka_unit_test(test_a_name_is_one_metric),
                cmocka_unit_test(test_hostile_values),
                cmocka_unit_test(test_a_million_series),
                cmocka_unit_test(test_many_names),
                cmocka_unit_test(test_no_watch_takes_the_place_of_another),
                cmocka_unit_test(test_a_name_is_free_when_nothing_is_left_of_it),
                cmocka_unit_test(test_a_name_without_a_sample_is_none),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
