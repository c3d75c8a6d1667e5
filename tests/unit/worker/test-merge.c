/* SPDX-License-Identifier: Apache-2.0 */
/* Merge patches: what counts as no change, and the body that is sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "tests/unit/valgrind.h"
#include "worker/write/merge.h"
#include "json/json.h"

static enum merge_effect effect_on(const char *json, const char *member, const char *patch)
{
        return merge_effect_on(json, member, (struct span){patch, strlen(patch)});
}

static void test_effect(void **state)
{
        static const struct {
                const char *object, *patch;
                enum merge_effect effect;
        } row[] = {
                {"{}", "{}", MERGE_SAME},
                {"{\"a\":1}", "{}", MERGE_SAME},
                {"{\"a\":1}", "{\"a\":1}", MERGE_SAME},
                {"{\"a\":1}", "{\"a\":1.0}", MERGE_SAME},
                {"{\"a\":1}", "{\"a\":2}", MERGE_CHANGES},
                {"{\"a\":1}", "{\"a\":\"1\"}", MERGE_CHANGES},
                {"{\"a\":1}", "{\"A\":1}", MERGE_CHANGES},
                {"{\"a\":1}", "{\"a\":null}", MERGE_CHANGES},
                {"{\"a\":1}", "{\"b\":null}", MERGE_SAME},
                {"{\"a\":true}", "{\"a\":false}", MERGE_CHANGES},
                {"{\"a\":null}", "{\"a\":null}", MERGE_CHANGES},
                {"{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"c\":2}}", MERGE_SAME},
                {"{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"c\":{}}}", MERGE_CHANGES},
                {"{\"a\":{\"b\":1}}", "{\"a\":{\"b\":null}}", MERGE_CHANGES},
                {"{\"a\":{\"b\":1}}", "{\"a\":{\"x\":null}}", MERGE_SAME},
                {"{\"a\":{}}", "{\"b\":{}}", MERGE_CHANGES},
                {"{\"a\":[1,2]}", "{\"a\":[1,2]}", MERGE_SAME},
                {"{\"a\":[1,2]}", "{\"a\":[2,1]}", MERGE_CHANGES},
                {"{\"a\":[1,2]}", "{\"a\":[1]}", MERGE_CHANGES},
                {"{\"a\":[1]}", "{\"a\":[1,2]}", MERGE_CHANGES},
                {"{\"a\":[{\"b\":1,\"c\":2}]}", "{\"a\":[{\"c\":2,\"b\":1}]}", MERGE_SAME},
                {"{\"a\":[{\"b\":1,\"c\":2}]}", "{\"a\":[{\"c\":2}]}", MERGE_CHANGES},
                /* Adjacent integers that are one and the same double. */
                {"{\"a\":1700000000000000001}", "{\"a\":1700000000000000002}", MERGE_UNSURE},
                {"{\"a\":1700000000000000001,\"b\":1}", "{\"a\":1700000000000000002,\"b\":2}",
                 MERGE_CHANGES},
                {"{\"a\":9007199254740991}", "{\"a\":9007199254740991}", MERGE_SAME},
                {"{\"a\":1e999}", "{\"a\":1e999}", MERGE_SAME},
                {"{\"a\":1e999}", "{\"a\":2e999}", MERGE_UNSURE},
                {"{\"a\":1700000000000000001}", "{\"a\":1700000000000000001}", MERGE_SAME},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++)
                if (effect_on(row[i].object, NULL, row[i].patch) != row[i].effect)
                        fail_msg("%s on %s", row[i].patch, row[i].object);
}

static void test_effect_on_status(void **state)
{
        (void)state;
        assert_int_equal(effect_on("{\"spec\":{}}", "status", "{}"), MERGE_SAME);
        assert_int_equal(effect_on("{\"spec\":{}}", "status", "{\"a\":null}"), MERGE_SAME);
        assert_int_equal(effect_on("{\"spec\":{\"a\":1}}", "status", "{\"a\":1}"), MERGE_CHANGES);
        assert_int_equal(effect_on("{\"status\":{\"a\":1,\"b\":2}}", "status", "{\"a\":1}"), MERGE_SAME);
        assert_int_equal(effect_on("broken", "status", "{\"a\":1}"), MERGE_CHANGES);
}

/* cJSON's own comparison would take minutes, and the loop with it. */
static void test_wide(void **state)
{
        struct text text = TEXT_EMPTY;
        clock_t started;

        (void)state;
        text_append_string(&text, "{\"a\":{");
        for (int i = 0; i < 60000; i++)
                text_printf(&text, "%s\"k%d\":%d", i ? "," : "", i, i);
        text_append_string(&text, "}}");
        started = clock();
        assert_int_equal(effect_on(text.data, NULL, text.data), MERGE_UNSURE);
        assert_true(clock() - started < (under_valgrind() ? 60 : 3) * CLOCKS_PER_SEC);
        text_done(&text);
}

/* {"list": [1, 1, ...]} with this many values in all. */
static void make_list(size_t values, struct text *out)
{
        text_append_string(out, "{\"list\":[1");
        for (size_t i = 3; i < values; i++)
                text_append_string(out, ",1");
        text_append_string(out, "]}");
}

/* Nothing that a tenant writes becomes a tree of any size. */
static void test_too_many_values_to_compare(void **state)
{
        _cleanup_text_ struct text most = TEXT_EMPTY, more = TEXT_EMPTY;

        (void)state;
        make_list(JSON_BOUNDED_MAX, &most);
        make_list(JSON_SERVED_MAX + 1, &more);
        assert_int_equal(effect_on(most.data, NULL, most.data), MERGE_SAME);
        assert_int_equal(effect_on(most.data, NULL, "{\"list\":2}"), MERGE_CHANGES);
        assert_int_equal(effect_on(more.data, NULL, "{\"list\":2}"), MERGE_UNSURE);
        assert_int_equal(effect_on("{\"list\":2}", NULL, more.data), MERGE_UNSURE);
}

static void test_body(void **state)
{
        static const struct {
                const char *member, *patch, *version, *body;
        } row[] = {
                {"status", "{\"a\":1}", "7",
                 "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"status\":{\"a\":1}}"},
                {NULL, "{}", "7", "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}"},
                {NULL, "{ }", "7", "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}"},
                {NULL, "{ \"spec\": {} }", "7",
                 "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\": {} }"},
                {NULL, "{\"metadata\":{}}", "7", "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}"},
                {NULL, "{\"a\":1,\"metadata\": { \"labels\":{\"x\":null}},\"b\":12345678901234567890}", "7",
                 "{\"a\":1,\"metadata\": {\"uid\":\"u\",\"resourceVersion\":\"7\",\"labels\":{\"x\":null}},"
                 "\"b\":12345678901234567890}"},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                _cleanup_text_ struct text body = TEXT_EMPTY;
                struct span patch = {row[i].patch, strlen(row[i].patch)};

                assert_int_equal(merge_body(row[i].member, patch, "u", row[i].version, &body), 0);
                assert_string_equal(body.data, row[i].body);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_effect), cmocka_unit_test(test_effect_on_status),
                cmocka_unit_test(test_wide),   cmocka_unit_test(test_too_many_values_to_compare),
                cmocka_unit_test(test_body),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
