/* SPDX-License-Identifier: Apache-2.0 */
/* Merge patch against the examples of RFC 7386, JSON patch against those of RFC 6902, strategic merge patch
 * as kubectl sends it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "devserver/tree/tree-patch.h"
#include "json/json.h"

static cJSON *parse(const char *json)
{
        cJSON *value = json_parse(json, strlen(json));

        if (!value)
                fail_msg("the test's own JSON is wrong: %s", json);
        return value;
}

/* Takes `value`. */
static void assert_is(cJSON *value, const char *expected_json, const char *of)
{
        cJSON *expected = parse(expected_json);

        if (!cJSON_Compare(value, expected, true))
                fail_msg("%s gave %s, not %s", of, cJSON_PrintUnformatted(value), expected_json);
        cJSON_Delete(expected);
        cJSON_Delete(value);
}

static void test_merge(void **state)
{
        static const struct {
                const char *target, *patch, *result;
        } row[] = {
                {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
                {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
                {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
                {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
                {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
                {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
                {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
                {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
                {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
                {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
                {"{\"a\":\"foo\"}", "null", "null"},
                {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
                {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
                {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
                {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
                {"{\"A\":1}", "{\"a\":2}", "{\"A\":1,\"a\":2}"},
        };

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                cJSON *patch = parse(row[i].patch);

                assert_is(patch_merge(parse(row[i].target), patch), row[i].result, row[i].patch);
                cJSON_Delete(patch);
        }
        (void)state;
}

static void test_json_patch(void **state)
{
        static const struct {
                const char *target, *patch, *result; /* NULL: -ECANCELED */
        } row[] = {
                {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
                 "{\"baz\":\"qux\",\"foo\":\"bar\"}"},
                {"{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
                 "{\"foo\":[\"bar\",\"qux\",\"baz\"]}"},
                {"{\"foo\":[\"bar\"]}", "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[1]}]",
                 "{\"foo\":[\"bar\",[1]]}"},
                {"{\"foo\":[1]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":2}]", "{\"foo\":[1,2]}"},
                {"{\"foo\":[1]}", "[{\"op\":\"add\",\"path\":\"/foo/2\",\"value\":2}]", NULL},
                {"{\"foo\":[1]}", "[{\"op\":\"add\",\"path\":\"/foo/x\",\"value\":2}]", NULL},
                {"{\"foo\":[1]}", "[{\"op\":\"add\",\"path\":\"/foo/01\",\"value\":2}]", NULL},
                {"{\"foo\":[1]}", "[{\"op\":\"add\",\"path\":\"/foo/-1\",\"value\":2}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"b\":2}}]", "{\"b\":2}"},
                {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b/c\",\"value\":2}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/c\",\"value\":2}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", NULL},
                {"{\"baz\":1,\"foo\":2}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]", "{\"foo\":2}"},
                {"{\"foo\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]", "{\"foo\":[1,3]}"},
                {"{\"foo\":1}", "[{\"op\":\"remove\",\"path\":\"/bar\"}]", NULL},
                {"{\"foo\":1}", "[{\"op\":\"replace\",\"path\":\"/foo\",\"value\":2}]", "{\"foo\":2}"},
                {"{\"foo\":[1,2,3]}", "[{\"op\":\"replace\",\"path\":\"/foo/0\",\"value\":9}]",
                 "{\"foo\":[9,2,3]}"},
                {"{\"foo\":1}", "[{\"op\":\"replace\",\"path\":\"/bar\",\"value\":2}]", NULL},
                {"{\"foo\":{\"a\":1},\"bar\":{}}",
                 "[{\"op\":\"move\",\"from\":\"/foo/a\",\"path\":\"/bar/b\"}]",
                 "{\"foo\":{},\"bar\":{\"b\":1}}"},
                {"{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
                 "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
                 "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}"},
                {"{\"foo\":{\"a\":{}}}", "[{\"op\":\"move\",\"from\":\"/foo\",\"path\":\"/foo/a/b\"}]",
                 NULL},
                {"{\"l\":[{\"x\":1},{\"y\":2}]}",
                 "[{\"op\":\"move\",\"from\":\"/l/0\",\"path\":\"/l/0/z\"}]", NULL},
                {"{\"l\":[1,{\"y\":2}]}", "[{\"op\":\"move\",\"from\":\"/l/0\",\"path\":\"/l/0/z\"}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", "{\"a\":1}"},
                {"{\"foo\":{\"a\":1}}", "[{\"op\":\"copy\",\"from\":\"/foo\",\"path\":\"/foo/b\"}]",
                 "{\"foo\":{\"a\":1,\"b\":{\"a\":1}}}"},
                {"{\"foo\":1}", "[{\"op\":\"copy\",\"path\":\"/foo\"}]", NULL},
                {"{\"baz\":\"qux\",\"foo\":[1,2]}",
                 "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},{\"op\":\"test\",\"path\":\"/foo/"
                 "1\","
                 "\"value\":2}]",
                 "{\"baz\":\"qux\",\"foo\":[1,2]}"},
                {"{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]", NULL},
                {"{\"baz\":null}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":null}]", "{\"baz\":null}"},
                {"{}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":null}]", NULL},
                {"{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
                 "{\"/\":9,\"~1\":10}"},
                {"{\"a/b\":1}", "[{\"op\":\"remove\",\"path\":\"/a~1b\"}]", "{}"},
                {"{\"a\":1}", "[{\"op\":\"jump\",\"path\":\"/a\"}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"a\"}]", NULL},
        };

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                _cleanup_error_ struct error error = ERROR_NONE;
                cJSON *target = parse(row[i].target), *patch = parse(row[i].patch);
                int r = patch_json(&target, patch, &error);

                if (r != (row[i].result ? 0 : -ECANCELED))
                        fail_msg("%s on %s: %d", row[i].patch, row[i].target, r);
                if (row[i].result)
                        assert_is(target, row[i].result, row[i].patch);
                else
                        cJSON_Delete(target);
                cJSON_Delete(patch);
        }
        (void)state;
}

static void test_json_patch_malformed(void **state)
{
        static const char *const row[] = {"{}", "[{\"op\":\"add\"}]", "[{\"path\":\"/a\"}]", "[1]",
                                          "[{\"op\":1,\"path\":\"/a\"}]"};

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                _cleanup_error_ struct error error = ERROR_NONE;
                cJSON *target = parse("{}"), *patch = parse(row[i]);

                assert_int_equal(patch_json(&target, patch, &error), -EINVAL);
                cJSON_Delete(patch);
                cJSON_Delete(target);
        }
        (void)state;
}

static void test_strategic(void **state)
{
        static const struct {
                const char *target, *patch, *result;
        } row[] = {
                {"{\"data\":{\"a\":\"1\",\"b\":\"2\"}}", "{\"data\":{\"a\":null,\"c\":\"3\"}}",
                 "{\"data\":{\"b\":\"2\",\"c\":\"3\"}}"},
                {"{\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"tty\":true},{\"name\":\"b\"}]}",
                 "{\"containers\":[{\"name\":\"a\",\"image\":\"2\"}]}",
                 "{\"containers\":[{\"name\":\"a\",\"image\":\"2\",\"tty\":true},{\"name\":\"b\"}]}"},
                {"{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                 "{\"containers\":[{\"name\":\"b\",\"$patch\":\"delete\"},{\"name\":\"c\"}]}",
                 "{\"containers\":[{\"name\":\"a\"},{\"name\":\"c\"}]}"},
                {"{\"env\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                 "{\"$setElementOrder/env\":[{\"name\":\"c\"},{\"name\":\"b\"},{\"name\":\"a\"}],"
                 "\"env\":[{\"name\":\"c\"}]}",
                 "{\"env\":[{\"name\":\"c\"},{\"name\":\"b\"},{\"name\":\"a\"}]}"},
                {"{\"ports\":[{\"containerPort\":80,\"name\":\"x\"},{\"containerPort\":81}]}",
                 "{\"ports\":[{\"containerPort\":80,\"name\":\"y\"}]}",
                 "{\"ports\":[{\"containerPort\":80,\"name\":\"y\"},{\"containerPort\":81}]}"},
                {"{\"ports\":[{\"port\":80},{\"port\":81}]}", "{\"ports\":[{\"port\":82}]}",
                 "{\"ports\":[{\"port\":80},{\"port\":81},{\"port\":82}]}"},
                {"{\"args\":[\"a\",\"b\"]}", "{\"args\":[\"c\"]}", "{\"args\":[\"c\"]}"},
                {"{\"finalizers\":[\"a\"]}", "{\"finalizers\":[\"b\",\"a\"]}",
                 "{\"finalizers\":[\"a\",\"b\"]}"},
                {"{\"finalizers\":[\"a\",\"b\"]}", "{\"$deleteFromPrimitiveList/finalizers\":[\"a\"]}",
                 "{\"finalizers\":[\"b\"]}"},
                {"{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"}]}",
                 "{\"conditions\":[{\"type\":\"B\",\"status\":\"False\"}]}",
                 "{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"},{\"type\":\"B\",\"status\":"
                 "\"False\"}]}"},
                {"{\"containers\":[{\"name\":\"a\"}]}",
                 "{\"containers\":[{\"name\":\"b\"},{\"$patch\":\"replace\"}]}",
                 "{\"containers\":[{\"name\":\"b\"}]}"},
                {"{\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{}}}",
                 "{\"strategy\":{\"$retainKeys\":[\"type\"],\"type\":\"Recreate\"}}",
                 "{\"strategy\":{\"type\":\"Recreate\"}}"},
                {"{\"spec\":{\"a\":1,\"b\":2}}", "{\"spec\":{\"$patch\":\"replace\",\"c\":3}}",
                 "{\"spec\":{\"c\":3}}"},
                {"{\"spec\":{\"a\":1},\"x\":1}", "{\"spec\":{\"$patch\":\"delete\"}}", "{\"x\":1}"},
        };

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                cJSON *patch = parse(row[i].patch);

                assert_is(patch_strategic(parse(row[i].target), patch), row[i].result, row[i].patch);
                cJSON_Delete(patch);
        }
        (void)state;
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_merge),
                cmocka_unit_test(test_json_patch),
                cmocka_unit_test(test_json_patch_malformed),
                cmocka_unit_test(test_strategic),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
