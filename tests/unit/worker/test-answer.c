/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler may answer, and that a wrong answer is told with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "worker/run/answer.h"
#include "json/json.h"

static int parse(const char *output, struct answer *answer)
{
        _cleanup_error_ struct error error = ERROR_NONE;

        return answer_parse(output, strlen(output), answer, &error);
}

static void assert_text(struct span span, const char *text)
{
        assert_int_equal(span.size, strlen(text));
        assert_memory_equal(span.start, text, span.size);
}

static void test_everything(void **state)
{
        struct answer answer;

        (void)state;
        assert_int_equal(parse(" \n{\"status\": {\"a\" : 12345678901234567890},\"patch\":{\"spec\":{}},"
                               "\"requeueAfter\":\"1m30s\",\"message\":\"all \\\"well\\\"\"}\n\n",
                               &answer),
                         0);
        assert_null(cJSON_GetObjectItemCaseSensitive(answer.root, "status"));
        assert_text(answer.status_text, "{\"a\" : 12345678901234567890}");
        assert_text(answer.patch_text, "{\"spec\":{}}");
        assert_int_equal(answer.requeue_after_usec, 90 * USEC_PER_SEC);
        assert_string_equal(answer.message, "all \"well\"");
        answer_done(&answer);
}

static void test_empty(void **state)
{
        static const char *const output[] = {"",
                                             "\n",
                                             " \r\n\t ",
                                             "{}",
                                             "{ }\n",
                                             "{\"status\":null,\"patch\":null}",
                                             "{\"requeueAfter\":null,\"message\":null}"};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(output); i++) {
                struct answer answer = {.requeue_after_usec = 1};

                assert_int_equal(parse(output[i], &answer), 0);
                assert_null(answer.status_text.start);
                assert_null(answer.patch_text.start);
                assert_null(answer.message);
                assert_int_equal(answer.requeue_after_usec, 0);
                answer_done(&answer);
        }
}

static void test_output_that_is_no_answer(void **state)
{
        static const char *const output[] = {"hello", "[1]", "\"{}\"", "null", "  done {}"};
        struct answer answer;

        (void)state;
        for (size_t i = 0; i < ELEMENTS(output); i++)
                assert_int_equal(parse(output[i], &answer), 1);
}

static void test_when_it_runs_again(void **state)
{
        static const struct {
                const char *output;
                uint64_t after_usec;
        } row[] = {
                {"{}", 0},
                {"{\"requeueAt\":null}", 0},
                {"{\"requeueAt\":\"2026-12-01T03:00:00Z\"}", 3600 * USEC_PER_SEC},
                {"{\"requeueAt\":\"2026-12-01t04:30:00.25+01:30\"}", 3600 * USEC_PER_SEC + 250000},
                {"{\"requeueAt\":\"2026-12-01T03:00:00Z\",\"requeueAfter\":\"2h\"}", 3600 * USEC_PER_SEC},
                {"{\"requeueAt\":\"2026-12-01T03:00:00Z\",\"requeueAfter\":\"5m\"}", 300 * USEC_PER_SEC},
                {"{\"requeueAt\":\"2026-12-01T02:00:00Z\"}", USEC_PER_SEC},
                {"{\"requeueAt\":\"1900-01-01T00:00:00Z\"}", USEC_PER_SEC},
                {"{\"requeueAt\":\"9999-12-31T23:59:60-23:59\"}", UINT64_C(251606296740) * USEC_PER_SEC},
        };
        const uint64_t now = UINT64_C(1796090400) * USEC_PER_SEC; /* 2026-12-01T02:00:00Z */

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                struct answer answer;

                assert_int_equal(parse(row[i].output, &answer), 0);
                if (answer_requeue_after(&answer, now) != row[i].after_usec)
                        fail_msg("%s: %" PRIu64, row[i].output, answer_requeue_after(&answer, now));
                answer_done(&answer);
        }
}

static const struct {
        const char *output, *says;
} wrong[] = {
        {"{\"status\":[]}", "status: must be an object"},
        {"{\"status\":\"Ready\"}", "status: must be an object"},
        {"{\"patch\":7}", "patch: must be an object"},
        {"{\"message\":7}", "message: must be a text"},
        {"{\"requeueAfter\":30}", "requeueAfter: must be a duration"},
        {"{\"requeueAfter\":\"soon\"}", "requeueAfter: must be a duration"},
        {"{\"requeueAfter\":\"-1s\"}", "requeueAfter: must be a duration"},
        {"{\"requeueAt\":1764558000}", "requeueAt: must be a time with its zone"},
        {"{\"requeueAt\":\"2026-12-01T03:00:00\"}", "requeueAt: must be a time with its zone"},
        {"{\"error\":\"no\",\"requeueAt\":\"2026-12-01T03:00:00Z\"}", "requeueAt: is for a success"},
        {"{\"conditions\":{}}", "conditions: must be a list"},
        {"{\"conditions\":[7]}", "conditions[0]: must be an object"},
        {"{\"conditions\":[{\"status\":\"True\"}]}", "conditions[0].type: is missing"},
        {"{\"conditions\":[{\"type\":\"A\"}]}", "conditions[0].status: is missing"},
        {"{\"conditions\":[{\"type\":\"A\",\"status\":true}]}", "conditions[0].status: must be a text"},
        {"{\"conditions\":[{\"type\":\"A\",\"status\":\"yes\"}]}", "conditions[0].status: must be \"True\""},
        {"{\"conditions\":[{\"type\":\"a_B./X\",\"status\":\"True\"}]}",
         "conditions[0].type: must be a name"},
        {"{\"conditions\":[{\"type\":\"a..b/X\",\"status\":\"True\"}]}",
         "conditions[0].type: must be a name"},
        {"{\"conditions\":[{\"type\":\"a.-b/X\",\"status\":\"True\"}]}",
         "conditions[0].type: must be a name"},
        {"{\"conditions\":[{\"type\":\"not a name\",\"status\":\"True\"}]}",
         "conditions[0].type: must be a name"},
        {"{\"conditions\":[{\"type\":\"A\",\"status\":\"True\",\"reason\":\"two words\"}]}",
         "conditions[0].reason: must be one word"},
        {"{\"conditions\":[{\"type\":\"A\",\"status\":\"True\",\"lastTransitionTime\":\"now\"}]}",
         "conditions[0].lastTransitionTime: it is set by reconciled"},
        {"{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"},{\"type\":\"A\",\"status\":"
         "\"False\"}]}",
         "conditions[1].type: stands there twice"},
        {"{\"children\":{}}", "children: must be a list"},
        {"{\"children\":[{\"apiVersion\":\"v1\"}]}", "children[0].kind: "},
        {"{\"patches\":[{\"apiVersion\":\"v1\"}]}", "patches[0].kind: "},
        {"{\"metrics\":{}}", "metrics: must be a list"},
        {"{\"metrics\":[{\"name\":\"a\"}]}", "metrics[0].action: is missing"},
        {"{\"metrics\":[{\"name\":\"a\",\"action\":\"set\"}]}", "metrics[0].value: is missing"},
        {"{\"metrics\":[{\"name\":\"a\",\"action\":\"up\",\"value\":1}]}",
         "metrics[0].action: must be \"set\", "},
        {"{\"metrics\":[{\"name\":\"a b\",\"action\":\"set\",\"value\":1}]}",
         "metrics[0].name: must be a name"},
        {"{\"metrics\":[{\"name\":\"a\",\"action\":\"add\",\"value\":-1}]}",
         "metrics[0].value: is negative"},
        {"{\"metrics\":[{\"name\":\"a\",\"action\":\"observe\",\"value\":-1}]}",
         "metrics[0].value: is negative"},
        {"{\"metrics\":[{\"name\":\"a\",\"action\":\"set\",\"value\":1,\"labels\":{\"le\":\"\"}}]}",
         "metrics[0].labels.le: is set by reconciled"},
        {"{\"metrics\":[{\"name\":\"a\",\"action\":\"observe\",\"value\":1,\"buckets\":[2,1]}]}",
         "metrics[0].buckets: must be at most 30 numbers"},
        {"{\"metrics\":[{\"name\":\"a\",\"action\":\"set\",\"value\":1,\"group\":\"g\"}]}",
         "metrics[0].group: is unknown"},
        {"{\"metrics\":[{\"name\":\"a\",\"action\":\"set\",\"value\":1e999}]}", "larger than any number"},
        {"{\"events\":{}}", "events: must be a list"},
        {"{\"events\":[{}]}", "events[0].reason: is missing"},
        {"{\"events\":[{\"reason\":\"two words\"}]}", "events[0].reason: must be one word"},
        {"{\"events\":[{\"reason\":\"A\",\"type\":\"Error\"}]}", "events[0].type: must be \"Normal\""},
        {"{\"events\":[{\"reason\":\"A\",\"message\":\"x\"}]}", "events[0].message: is unknown"},
        {"{\"done\":1}", "done: must be true or false"},
        {"{\"permanent\":true}", "permanent: says how bad an error is"},
        {"{\"fatal\":true}", "fatal: says how bad an error is"},
        {"{\"requeue\":\"1s\"}",
         "requeue: is unknown; known are status, conditions, events, patch, requeueAfter, "
         "requeueAt, message, error, retryAfter, permanent, fatal, done, metrics, children and patches"},
        {"{\"patch\":{\"status\":{}}}", "patch.status: use the answer's own key"},
        {"{\"patch\":{\"kind\":\"X\"}}", "patch.kind: "},
        {"{\"patch\":{\"apiVersion\":null}}", "patch.apiVersion: "},
        {"{\"patch\":{\"metadata\":{\"uid\":\"x\"}}}", "patch.metadata.uid: "},
        {"{\"patch\":{\"metadata\":{\"name\":\"x\"}}}", "patch.metadata.name: "},
        {"{\"patch\":{\"metadata\":{\"namespace\":null}}}", "patch.metadata.namespace: "},
        {"{\"patch\":{\"metadata\":{\"resourceVersion\":\"1\"}}}", "patch.metadata.resourceVersion: "},
        {"{\"patch\":{\"metadata\":{\"managedFields\":[]}}}", "patch.metadata.managedFields: "},
        {"{\"patch\":{\"metadata\":{\"resource\\u0056ersion\":\"1\"}}}", "patch.metadata.resourceVersion: "},
        {"{\"patch\":{\"metadata\":null}}", "patch.metadata: must be an object"},
        {"{\"patch\":{\"metadata\":{},\"metadata\":{\"uid\":\"x\"}}}", "patch.metadata stands there twice"},
        {"{\"status\":{\"a\":1},\"st\\u0061tus\":null}", "answer: status stands there twice"},
        {"{\"children\":[{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}},"
         "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"data\":{\"x\":1,\"y\":2,\"x\":1}}]}",
         "answer: children[1].data.x stands there twice"},
        {"{\"status\":{\"a\":[1,{\"b\":-1e999}]}}",
         "the handler's answer: b: -1e999 is larger than any number"},
        {"{\"status\":{\"a\":[1e309]}}", "the handler's answer: 1e309 is larger than any number"},
        {"{\"status\":{}", "not valid JSON: a syntax error (at byte "},
        {"{\"status\":{\"a\":nul}}", "not valid JSON: a syntax error (at byte 15 of stdout)"},
        {"\n{\"message\":\"a\nb\"}",
         "a control character, which a string must escape (at byte 14 of stdout)"},
        {"{\"status\":{\"a\":\"\377\376\"}}",
         "not valid JSON: a byte that is not UTF-8 (at byte 16 of stdout)"},
        {"{\"patch\":{\"\303\":1}}", "not valid JSON: a byte that is not UTF-8 (at byte 11 of stdout)"},
        {"{\355\240\200}", "not valid JSON: a byte that is not UTF-8 (at byte 1 of stdout)"},
        {"{}\ndone", "not valid JSON: more follows behind the object (at byte 2 of stdout)"},
        {"{'status': {}}", "not valid JSON"},
};

static void test_wrong_answers(void **state)
{
        (void)state;
        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                _cleanup_error_ struct error error = ERROR_NONE;
                struct answer answer = {.requeue_after_usec = 4711};

                assert_int_equal(answer_parse(wrong[i].output, strlen(wrong[i].output), &answer, &error),
                                 -EINVAL);
                if (!strstr(error_message(&error), wrong[i].says))
                        fail_msg("%s: \"%s\" does not say \"%s\"", wrong[i].output, error_message(&error),
                                 wrong[i].says);
                assert_non_null(strstr(error_message(&error), "the handler's answer"));
                assert_int_equal(answer.requeue_after_usec, 4711); /* untouched */
        }
}

static void test_zero_bytes(void **state)
{
        static const char output[] = "{\"message\":\"a\0b\"}";
        _cleanup_error_ struct error error = ERROR_NONE;
        struct answer answer;

        (void)state;
        assert_int_equal(answer_parse(output, sizeof(output) - 1, &answer, &error), -EINVAL);
}

static void test_deep(void **state)
{
        struct text output = TEXT_EMPTY;
        struct answer answer;

        (void)state;
        for (int depth = 1; depth <= 100000; depth *= 10) {
                text_clear(&output);
                text_append_string(&output, "{\"status\":{\"a\":");
                for (int i = 0; i < depth; i++)
                        text_append_string(&output, "[");
                for (int i = 0; i < depth; i++)
                        text_append_string(&output, "]");
                text_append_string(&output, "}}");
                assert_int_equal(parse(output.data, &answer), depth <= 10000 ? 0 : -EINVAL);
                if (depth <= 10000)
                        answer_done(&answer);
        }
        text_done(&output);
}

static void append_values(struct text *out, size_t count)
{
        for (size_t i = 0; i < count; i++)
                text_append_string(out, i > 0 ? ",1" : "1");
}

static void test_too_many_values(void **state)
{
        _cleanup_text_ struct text most = TEXT_EMPTY, more = TEXT_EMPTY;
        _cleanup_error_ struct error error = ERROR_NONE;
        struct answer answer;

        (void)state;
        text_append_string(&most, "{\"status\":{\"a\":[");
        append_values(&most, JSON_BOUNDED_MAX - 3);
        text_append_string(&most, "]}}");
        assert_int_equal(parse(most.data, &answer), 0);
        assert_int_equal(answer.status_text.size, most.size - strlen("{\"status\":}"));
        assert_null(answer.root->child); /* an answer may wait for long: it keeps no large tree */
        answer_done(&answer);
        text_append_string(&more, "{\"status\":{\"a\":[");
        append_values(&more, JSON_BOUNDED_MAX - 2);
        text_append_string(&more, "]}}");
        assert_int_equal(answer_parse(more.data, more.size, &answer, &error), -EINVAL);
        assert_string_equal(error_message(&error),
                            "the handler's answer has more than 100000 values (objects, lists, texts, "
                            "numbers): too many from byte 200010 of 200014 on");
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_everything),
                cmocka_unit_test(test_empty),
                cmocka_unit_test(test_output_that_is_no_answer),
                cmocka_unit_test(test_when_it_runs_again),
                cmocka_unit_test(test_wrong_answers),
                cmocka_unit_test(test_zero_bytes),
                cmocka_unit_test(test_deep),
                cmocka_unit_test(test_too_many_values),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
