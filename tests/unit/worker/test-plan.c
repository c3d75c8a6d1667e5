/* SPDX-License-Identifier: Apache-2.0 */
/* What we had applied of an object, from its managedFields; and the plan that goes to the ledger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "worker/dependents/parked/managed-fields.h"
#include "worker/dependents/parked/plan.h"

#define MANAGED(fields)                                                                                     \
        "\"managedFields\":[{\"manager\":\"other\",\"operation\":\"Apply\",\"fieldsV1\":{\"f:spec\":{}}},"  \
        "{\"manager\":\"me\",\"operation\":\"Update\",\"fieldsV1\":{\"f:spec\":{}}},"                       \
        "{\"manager\":\"me\",\"operation\":\"Apply\",\"fieldsV1\":" fields "}]"

static void test_only_our_fields(void **state)
{
        static const struct {
                const char *object, *body;
        } row[] = {
                {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                 "\"a\",\"namespace\":\"d\","
                 "\"uid\":\"u\",\"labels\":{\"ours\":\"1\",\"theirs\":\"2\"}," MANAGED(
                         "{\"f:data\":{\"f:x\":{}},\"f:metadata\":{\"f:labels\":{\"f:ours\":"
                         "{}}}}") "},\"data\":{"
                                  "\"x\":\"1\",\"y\":\"2\"}}",
                 "{\"data\":{\"x\":\"1\"},\"metadata\":{\"labels\":{\"ours\":\"1\"},"
                 "\"name\":\"a\",\"namespace\":"
                 "\"d\"},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}"},
                /* lists: by keys, by value, as a whole */
                {"{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":"
                 "\"a\"," MANAGED("{\"f:spec\":{\"f:ports\":{\"k:{\\\"port\\\":80,"
                                  "\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{}"
                                  ",\"f:name\":{}}},\"f:set\":{\"v:\\\"b\\\"\":{}},\"f:"
                                  "whole\":{}}}") "},\"spec\":{\"ports\":["
                                                  "{\"port\":80,\"protocol\":\"UDP\","
                                                  "\"name\":\"no\"},{\"port\":80,"
                                                  "\"protocol\":\"TCP\",\"name\":"
                                                  "\"yes\",\"nodePort\":1}],\"set\":[\"a\","
                                                  "\"b\"],\"whole\":[1,2]}}",
                 "{\"spec\":{\"ports\":[{\"name\":\"yes\",\"port\":80,\"protocol\":\"TCP\"}]"
                 ",\"set\":[\"b\"],"
                 "\"whole\":[1,2]},\"metadata\":{\"name\":\"a\"},\"apiVersion\":\"v1\","
                 "\"kind\":\"X\"}"},
                /* nothing of it was ours */
                {"{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"a\"},"
                 "\"data\":{}}",
                 "{\"metadata\":{\"name\":\"a\"},\"apiVersion\":\"v1\",\"kind\":\"X\"}"},
                /* what is gone meanwhile is left out */
                {"{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":"
                 "\"a\"," MANAGED("{\"f:data\":{\"f:gone\":{}},\"odd\":{}}") "},\"data\":{}}",
                 "{\"data\":{},\"metadata\":{\"name\":\"a\"},\"apiVersion\":\"v1\",\"kind\":"
                 "\"X\"}"},
                {"{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":"
                 "\"a\"," MANAGED("{}") "},\"data\":{\"a\":\"1\"}}",
                 "{\"metadata\":{\"name\":\"a\"},\"apiVersion\":\"v1\",\"kind\":"
                 "\"X\"}"},
                {"{\"apiVersion\":", NULL},
                {"[]", NULL},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                _cleanup_free_ char *body = NULL;

                assert_int_equal(managed_fields_body(row[i].object, "me", &body),
                                 row[i].body ? 0 : -EBADMSG);
                if (row[i].body)
                        assert_string_equal(body, row[i].body);
        }
}

static struct dependent dependent(const char *name, const char *previous)
{
        return (struct dependent){.api_version = strdup("v1"),
                                  .kind = strdup("ConfigMap"),
                                  .namespace_name = strdup("default"),
                                  .name = strdup(name),
                                  .uid = strdup("u"),
                                  .previous = previous ? strdup(previous) : NULL};
}

static void test_a_plan_survives(void **state)
{
        struct park_plan plan = {.cause = strdup("no \"luck\""),
                                 .deadline = 1ULL << 62,
                                 .fingerprint = UINT64_MAX,
                                 .requeue_after_usec = 7,
                                 .requeue_at_usec = 1ULL << 61};
        struct dependent made = dependent("made", NULL),
                         changed = dependent("changed", "{\"data\":{\"x\":\"1\"}}");
        struct park_plan back;
        struct text text = TEXT_EMPTY;

        (void)state;
        assert_int_equal(dependent_list_add(&plan.undo, &made), 0);
        assert_int_equal(dependent_list_add(&plan.undo, &changed), 0);
        assert_int_equal(park_plan_write(&plan, &text), 0);
        assert_int_equal(park_plan_read(text.data, &back), 0);
        assert_string_equal(back.cause, "no \"luck\"");
        assert_true(back.deadline == plan.deadline && back.fingerprint == UINT64_MAX);
        assert_true(back.requeue_after_usec == 7 && back.requeue_at_usec == 1ULL << 61);
        assert_int_equal(back.undo.count, 2);
        assert_null(back.undo.item[0].previous);
        assert_string_equal(back.undo.item[0].uid, "u");
        assert_string_equal(back.undo.item[1].previous, "{\"data\":{\"x\":\"1\"}}");
        park_plan_done(&back);
        park_plan_done(&plan);
        text_done(&text);
        assert_int_equal(park_plan_read("{\"cause\":1}", &back), -EBADMSG);
        assert_int_equal(park_plan_read("nonsense", &back), -EBADMSG);
}

/* A thousand children that an answer leaves out, with long names: the wait goes on, and the next run deletes them. */
static void test_what_is_too_large_is_not_dropped_yet(void **state)
{
        struct park_plan plan = {.cause = strdup("cause")};
        struct dependent made = dependent("made", NULL);
        struct text text = TEXT_EMPTY;
        struct park_plan back;
        char name[254];

        (void)state;
        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        assert_int_equal(dependent_list_add(&plan.wait, &made), 0);
        for (size_t i = 0; i < DEPENDENTS_MAX; i++) {
                struct dependent left_out = dependent(name, NULL);

                assert_int_equal(dependent_list_add(&plan.drop, &left_out), 0);
        }
        assert_int_equal(park_plan_write(&plan, &text), -E2BIG);
        assert_true(text.size < PARK_PLAN_MAX);
        assert_int_equal(park_plan_read(text.data, &back), 0);
        assert_int_equal(back.wait.count, 1);
        assert_int_equal(back.drop.count, 0);
        park_plan_done(&back);
        park_plan_done(&plan);
        text_done(&text);
}

static void test_what_is_too_large_is_not_restored(void **state)
{
        struct park_plan plan = {.cause = strdup("cause")};
        char *large = malloc(PARK_PLAN_MAX + 1);
        struct dependent made = dependent("made", NULL), changed;
        struct text text = TEXT_EMPTY;
        struct park_plan back;

        (void)state;
        memset(large, '1', PARK_PLAN_MAX);
        large[PARK_PLAN_MAX] = '\0';
        changed = dependent("changed", large);
        free(large);
        assert_int_equal(dependent_list_add(&plan.undo, &changed), 0);
        assert_int_equal(dependent_list_add(&plan.undo, &made), 0);
        assert_int_equal(park_plan_write(&plan, &text), -E2BIG);
        assert_int_equal(park_plan_read(text.data, &back), 0);
        assert_int_equal(back.undo.count, 1);
        assert_string_equal(back.undo.item[0].name, "made");
        park_plan_done(&back);
        park_plan_done(&plan);
        text_done(&text);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_only_our_fields),
                cmocka_unit_test(test_a_plan_survives),
                cmocka_unit_test(test_what_is_too_large_is_not_restored),
                cmocka_unit_test(test_what_is_too_large_is_not_dropped_yet),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
