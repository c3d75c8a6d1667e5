/* SPDX-License-Identifier: Apache-2.0 */
/* jq programs over objects: filters and triggers, and programs that fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "jq/program.h"
#include "object/keyed-hash.h"
#include "tests/unit/valgrind.h"

#define OBJECT(spec)                                                                                        \
        "{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\","                 \
        "\"resourceVersion\":\"1\"},\"spec\":" spec "}"

static struct jq_program *program(const char *text)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct jq_program *made = NULL;

        if (jq_program_new(text, &made, &error) < 0)
                fail_msg("%s: %s", text, error_message(&error));
        return made;
}

/* libjq takes two seconds under valgrind to compile its own functions, before it sees ours: there some rows are enough. */
static size_t step(void)
{
        return under_valgrind() ? 4 : 1;
}

/* In a process of its own: libjq 1.6 loses some memory over a program that does not compile. */
static bool is_refused(const char *text)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct jq_program *made = NULL;

        return jq_program_new(text, &made, &error) == -EINVAL && strlen(error_message(&error)) > 0 &&
               !strchr(error_message(&error), '\n') && !made && !strstr(error_message(&error), "stderr") &&
               !strstr(error_message(&error), "top-level") &&
               !strstr(error_message(&error), "compile error") && !strstr(error_message(&error), "jq:") &&
               !strstr(error_message(&error), "  ");
}

static void test_what_does_not_compile(void **state)
{
        static const char *const wrong[] = {
                ".spec |",      "nonsense(1)", "{",    "\"open",       "foo | bar",
                ".a\n| nosuch", ". as $x|$y",  ".a b", "module {}; .", "# a\n import \"x\" as x; ."};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(wrong); i += step()) {
                int status;
                pid_t pid = fork();

                if (pid == 0)
                        _exit(is_refused(wrong[i]) ? 0 : 1);
                assert_true(pid > 0);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
}

static void test_filters(void **state)
{
        static const struct {
                const char *text, *object;
                bool truth;
                int result;
        } row[] = {
                {".spec.on", OBJECT("{\"on\":true}"), true, 0},
                {".spec.on", OBJECT("{\"on\":false}"), false, 0},
                {".spec.on", OBJECT("{}"), false, 0},
                {".spec.on", OBJECT("{\"on\":0}"), true, 0},
                {"empty", OBJECT("{}"), false, 0},
                {"true, false", OBJECT("{}"), true, 0},
                {"false, true", OBJECT("{}"), false, 0},
                {"has(\"kind\") or has(\"apiVersion\")", OBJECT("{}"), false, 0},
                {".spec | test(\"x\")", OBJECT("{}"), true, -EBADMSG},
                {"error(\"no\")", OBJECT("{}"), true, -EBADMSG},
                {"halt", OBJECT("{}"), true, -EBADMSG},
                {".", "{\"metadata\":", true, -EBADMSG},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i += step()) {
                _cleanup_(jq_program_free_pointer) struct jq_program *filter = program(row[i].text);
                _cleanup_error_ struct error error = ERROR_NONE;
                bool truth = true;

                if (jq_program_test(filter, row[i].object, strlen(row[i].object), false, &truth, &error) !=
                            row[i].result ||
                    truth != row[i].truth)
                        fail_msg("%s: %d %s", row[i].text, truth, error_message(&error));
                if (row[i].result < 0)
                        assert_true(strlen(error_message(&error)) > 0);
        }
}

static uint64_t fingerprint(struct jq_program *made, const char *object, bool partial, int expected)
{
        struct trigger_basis basis = {.trigger = TRIGGER_JQ, .program = made, .partial = partial};
        _cleanup_error_ struct error error = ERROR_NONE;
        uint64_t result = 0;

        assert_int_equal(trigger_fingerprint(&basis, object, strlen(object), &result, &error), expected);
        assert_true(result != 0);
        return result;
}

static void test_only_the_value_counts(void **state)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *made = program(".spec | {size, color}");
        uint64_t first = fingerprint(made, OBJECT("{\"size\":1,\"color\":\"red\",\"other\":1}"), false, 0);

        (void)state;
        assert_true(first ==
                    fingerprint(made, OBJECT("{\"other\":2,\"color\":\"red\",\"size\":1}"), false, 0));
        assert_true(first != fingerprint(made, OBJECT("{\"size\":2,\"color\":\"red\"}"), false, 0));
}

static void test_a_deletion_counts(void **state)
{
        static const char living[] = "{\"metadata\":{\"name\":\"a\"},\"spec\":1}",
                          dying[] = "{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"2026-01-01T00:00:"
                                    "00Z\"},\"spec\":1}";
        _cleanup_(jq_program_free_pointer) struct jq_program *made = program(".spec");

        (void)state;
        assert_true(fingerprint(made, living, false, 0) != fingerprint(made, dying, false, 0));
        assert_true(fingerprint(made, dying, false, 0) == fingerprint(made, dying, false, 0));
}

static void test_many_values_and_none(void **state)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *made = program(".spec[]?");

        (void)state;
        assert_true(fingerprint(made, OBJECT("[1,2]"), false, 0) !=
                    fingerprint(made, OBJECT("[12]"), false, 0));
        assert_true(fingerprint(made, OBJECT("[]"), false, 0) == fingerprint(made, OBJECT("7"), false, 0));
}

static void test_where_it_fails_the_essence_stands_in(void **state)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *made = program(".spec | keys");
        uint64_t first = fingerprint(made, OBJECT("1"), false, 1);

        (void)state;
        assert_true(first != fingerprint(made, OBJECT("2"), false, 1));
        assert_true(first == fingerprint(made, OBJECT("1"), false, 1));
}

static void test_what_grows_without_end_fails(void **state)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *made =
                program("range(1; 1e18) | tostring * 100");

        (void)state;
        (void)fingerprint(made, OBJECT("1"), false, 1);
        (void)fingerprint(made, OBJECT("1"), false, 1); /* and it can be used again */
}

static void test_of_metadata_alone_nothing_else_is_seen(void **state)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *made = program("[.metadata.name, .spec]");

        (void)state;
        assert_true(fingerprint(made, OBJECT("1"), true, 0) == fingerprint(made, OBJECT("2"), true, 0));
        assert_true(fingerprint(made, OBJECT("1"), false, 0) != fingerprint(made, OBJECT("2"), false, 0));
}

/* {"spec":[{},{}...]}: jq takes the most for each {}. */
static char *object_of(size_t values)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;

        text_append_string(&text, "{\"metadata\":{\"name\":\"a\"},\"spec\":[{}");
        for (size_t i = 5; i < values; i++)
                text_append_string(&text, ",{}");
        text_append_string(&text, "]}");
        return text_take(&text);
}

static size_t peak_kib(void)
{
        struct rusage usage;

        assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
        return (size_t)usage.ru_maxrss;
}

static void test_an_object_of_too_many_values(void **state)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *made = program(".spec | length > 5");
        _cleanup_free_ char *most = object_of(JQ_VALUES_MAX), *more = object_of(JQ_VALUES_MAX + 1),
                            *huge = object_of(under_valgrind() ? 200000 : 1000000);
        size_t before _unused_ = peak_kib();
        bool truth = false;

        (void)state;
        assert_int_equal(jq_program_test(made, most, strlen(most), false, &truth, NULL), 0);
        assert_true(truth);
        for (size_t i = 0; i < 2; i++) {
                _cleanup_error_ struct error error = ERROR_NONE;
                const char *object = i == 0 ? more : huge;

                assert_int_equal(jq_program_test(made, object, strlen(object), false, &truth, &error),
                                 -E2BIG);
                assert_string_equal(error_message(&error), "the object has more than 30000 values (objects, "
                                                           "lists, texts, numbers)");
        }
        assert_true(fingerprint(made, more, false, 1) != fingerprint(made, huge, false, 1));
#ifndef __SANITIZE_ADDRESS__
        if (!under_valgrind())
                assert_in_range(peak_kib() - before, 0, 64 << 10);
#endif
}

/* Functions of jq that are bounded, on what is within the bounds: as jq has them. */
static void test_bounded_functions_are_those_of_jq(void **state)
{
        static const char *const row[] = {
                "[(1, 2) - (10, 20)] == [-9, -8, -19, -18] and ([1, 2, 3, 2] - [2]) == [1, 3] and -(.spec.n) == -7",
                "(.spec.list | contains([\"b\"])) and (.spec | contains({list: [\"a\"]})) and (\"b\" | inside(\"abc\"))",
                "[(\"ab\" | contains(\"a\", \"x\"))] == [true, false] and ([1] | inside([1, 2], [3]) | tostring) != \"\"",
                "(.spec.text | test(\"B.\"; \"i\")) and ([.spec.text | match(\"b\"; \"g\").offset] == [1, 4])",
                "(.spec.text | capture(\"(?<x>c)\").x) == \"c\" and ([.spec.text | scan(\"b\")] | length) == 2",
                "(.spec.text | sub(\"b\"; \"x\")) == \"axc-b\" and (.spec.text | gsub(\"B\"; \"x\"; \"i\")) == \"axc-x\"",
                "(.spec.text | [splits(\"-\")]) == [\"abc\", \"b\"] and (.spec.text | split(\"B\"; \"gi\")) == [\"a\", \"c-\", \"\"]",
                "(\"[1]\" | fromjson) == [1] and ([.spec.list[] | test([\"A\", \"i\"])] == [true, false])",
        };

        (void)state;
        for (size_t i = 0; i < (under_valgrind() ? 1 : ELEMENTS(row)); i++) {
                _cleanup_(jq_program_free_pointer) struct jq_program *made = program(row[i]);
                const char *object = OBJECT("{\"n\":7,\"list\":[\"a\",\"b\"],\"text\":\"abc-b\"}");
                _cleanup_error_ struct error error = ERROR_NONE;
                bool truth = false;

                if (jq_program_test(made, object, strlen(object), false, &truth, &error) < 0 || !truth)
                        fail_msg("%s: %s", row[i], error_message(&error));
        }
}

/* {"spec":"wordword..."} or {"spec":["word0","word1"...]} */
static char *object_with(const char *word, size_t count, bool is_list)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;

        text_append_string(&text, is_list ? "{\"spec\":[\"\"" : "{\"spec\":\"");
        for (size_t i = 0; i < count; i++)
                if (is_list)
                        text_printf(&text, ",\"%s%zu\"", word, i);
                else
                        text_append_string(&text, word);
        text_append_string(&text, is_list ? "]}" : "\"}");
        return text_take(&text);
}

static double processor_seconds(void)
{
        struct rusage usage;

        assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* What tenants write makes programs costly that an administrator wrote without a thought. */
static void test_no_object_takes_a_program_long(void **state)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *next = program(".spec | test(\"a+b\")");
        static const struct {
                const char *program, *word;
                size_t count;
                bool is_list;
                const char *error;
        } row[] = {
                {"last(range(1e15))", "", 1, false, "processor time"},
                {".spec | test(\"prod.*v2\")", "prod", 100000, false, "at most 16384 bytes"},
                {".spec | test(\"^(a|aa)+[^a]\")", "a", 16000, false, "retry"},
                {"[.spec | scan(\"a.*?b|a\")] | length", "a", 16000, false, "processor time"},
                {".spec | gsub(\"a\"; \"b\")", "a", 16000, false, "processor time"},
                {".spec | join(\",\")", "some-longer-host-name-", 29000, true, "processor time"},
                {"(.spec - .spec) | length", "h", 29000, true, "too many to be compared"},
                {".spec | contains(.)", "h", 14000, true, "too many to be compared"},
                {". as $o | .spec | inside($o.spec)", "h", 14000, true, "too many to be compared"},
                {".spec | fromjson | length", "[0,0],", 100000, false, "is not read as JSON"},
                {"[range(1e12)] | length", "", 1, false, "processor time"},
        };
        bool holds = false;

        (void)state;
        for (size_t i = 0; i < (under_valgrind() ? 1 : ELEMENTS(row)); i++) {
                _cleanup_(jq_program_free_pointer) struct jq_program *made = program(row[i].program);
                _cleanup_free_ char *object = object_with(row[i].word, row[i].count, row[i].is_list);

                for (size_t turn = 0; turn < (i == 0 ? 2 : 1); turn++) {
                        _cleanup_error_ struct error error = ERROR_NONE;
                        double before = processor_seconds();
                        bool truth;

                        if (jq_program_test(made, object, strlen(object), false, &truth, &error) !=
                                    -EBADMSG ||
                            !strstr(error_message(&error), row[i].error))
                                fail_msg("%s: %s", row[i].program, error_message(&error));
                        if (!under_valgrind() && processor_seconds() - before > 1)
                                fail_msg("%s took %.1f s", row[i].program, processor_seconds() - before);
                }
        }
        assert_int_equal(jq_program_test(next, "{\"spec\":\"aab\"}", 14, false, &holds, NULL), 0);
        assert_true(holds);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_what_does_not_compile),
                cmocka_unit_test(test_bounded_functions_are_those_of_jq),
                cmocka_unit_test(test_no_object_takes_a_program_long),
                cmocka_unit_test(test_filters),
                cmocka_unit_test(test_only_the_value_counts),
                cmocka_unit_test(test_a_deletion_counts),
                cmocka_unit_test(test_many_values_and_none),
                cmocka_unit_test(test_where_it_fails_the_essence_stands_in),
                cmocka_unit_test(test_what_grows_without_end_fails),
                cmocka_unit_test(test_an_object_of_too_many_values),
                cmocka_unit_test(test_of_metadata_alone_nothing_else_is_seen),
        };

        if (keyed_hash_begin("0123456789abcdef", SIPHASH_KEY_SIZE) < 0)
                return 1;
        return cmocka_run_group_tests(test, NULL, NULL);
}
