/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server takes for a selector, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "selector/requirement.h"

typedef int (*parse_t)(const char *text, struct requirement **ret, struct error *error);

#define NAME_63   "a23456789012345678901234567890123456789012345678901234567890123"
#define PREFIX_64 NAME_63 "."
#define PREFIX_253                                                                                          \
        PREFIX_64 PREFIX_64 PREFIX_64 "a234567890123456789012345678901234567890123456789012345678901"

static void assert_taken(parse_t parse, const char *text)
{
        _cleanup_(requirements_free_pointer) struct requirement *list = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;

        if (parse(text, &list, &error) < 0)
                fail_msg("\"%s\" is refused: %s", text, error_message(&error));
}

static void assert_refused(parse_t parse, const char *text, const char *said)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct requirement *list = NULL;

        if (parse(text, &list, &error) != -EINVAL)
                fail_msg("\"%s\" is taken", text);
        assert_null(list);
        if (!strstr(error_message(&error), said))
                fail_msg("\"%s\": %s", text, error_message(&error));
}

static void test_labels(void **state)
{
        static const char *const taken[] = {
                "",
                " ",
                "a",
                "!a",
                "! a",
                "a=b",
                "a==b",
                "a = b",
                "a!=b",
                "a=",
                "a!=",
                "a in (b)",
                "a in(b,c)",
                "a in ( b , c )",
                "a in (,)",
                "a in (b,)",
                "a in (b,,c)",
                "a notin (b)",
                "in",
                "notin",
                "!in",
                "in in (in,notin)",
                "a=in",
                "a>1",
                "a < 1",
                "a,b,!c,d=e,f in (g)",
                "example.com/a=b",
                "a_b.c-d=E",
                NAME_63,
                (NAME_63 "=" NAME_63),
                PREFIX_253 "/a",
        };
        static const struct {
                const char *text, *said;
        } refused[] = {
                {",", "the key of a label"},
                {"a,", "the key of a label is expected at the end"},
                {"a,,b", "the key of a label"},
                {"=b", "the key of a label"},
                {"a=b=c", "a comma is expected instead of \"=\" (character 4"},
                {"a= =b", "a value is expected"},
                {"a b", "one of =, ==, !=, in, notin, < and > is expected instead of \"b\""},
                {"a=b c", "a comma is expected instead of \"c\""},
                {"!a=b", "a comma"},
                {"a in b", "a list of values, like (a,b),"},
                {"a in", "a list of values"},
                {"a in ()", "a value"},
                {"a in (b", "a comma or )"},
                {"a in (b c)", "a comma or )"},
                {"a IN (b)", "one of =, =="},
                {"a=(b)", "a value"},
                {"a>b", "whole numbers"},
                {"a>", "whole numbers"},
                {"a>-1", "is not a value"},
                {"a<99999999999999999999", "whole numbers"},
                {"-a", "\"-a\" is not a key of a label"},
                {"a-", "is not a key"},
                {"/a", "is not a key"},
                {"example.com/", "is not a key"},
                {"Example.com/a", "is not a key"},
                {"a/b/c", "is not a key"},
                {"a..b/c", "is not a key"},
                {"a-/c", "is not a key"},
                {NAME_63 "4", "is not a key"},
                {PREFIX_253 "x/a", "is not a key"},
                {"a=b/c", "\"b/c\" is not a value of a label"},
                {"a=-b", "is not a value"},
                {"a in (b,\"c\")", "is not a value"},
                {"a=" NAME_63 "4", "is not a value"},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(taken); i++)
                assert_taken(label_selector_parse, taken[i]);
        for (size_t i = 0; i < ELEMENTS(refused); i++)
                assert_refused(label_selector_parse, refused[i].text, refused[i].said);
}

static void test_fields(void **state)
{
        static const char *const taken[] = {
                "",
                "metadata.name=a",
                "metadata.name==a",
                "metadata.name!=a",
                "a=b,c!=d",
                "a=",
                "a=b,",
                ",a=b",
                "type!=helm.sh/release.v1",
                "a=b\\,c",
                "a=b\\=c",
                "a=\\\\",
                "a=b!c",
                "a=b c",
        };
        static const struct {
                const char *text, *said;
        } refused[] = {
                {"metadata.name", "has none of =, == and !="},
                {"a=b,c", "\"c\" has none"},
                {"a!b", "has none"},
                {"metadata.name in (a)", "has none"},
                {"=a", "names no field before its ="},
                {"!=a", "names no field before its !"},
                {"a = b", "\"a \" is not a path of a field"},
                {"a=b, c=d", "\" c\" is not a path of a field"},
                {"a=b=c", "holds a ="},
                {"a===b", "holds a ="},
                {"a=b\\c", "a backslash"},
                {"a=b\\", "a backslash"},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(taken); i++)
                assert_taken(field_selector_parse, taken[i]);
        for (size_t i = 0; i < ELEMENTS(refused); i++)
                assert_refused(field_selector_parse, refused[i].text, refused[i].said);
}

static void test_what_is_read(void **state)
{
        _cleanup_(requirements_free_pointer) struct requirement *label = NULL, *field = NULL;

        (void)state;
        assert_int_equal(label_selector_parse("tier notin ( a ,, b)", &label, NULL), 0);
        assert_string_equal(label->key, "tier");
        assert_int_equal(label->operation, SELECTOR_NOT_IN);
        assert_int_equal(label->count, 3);
        assert_string_equal(label->value[0], "a");
        assert_string_equal(label->value[1], "");
        assert_string_equal(label->value[2], "b");
        assert_null(label->next);

        assert_int_equal(field_selector_parse("spec.name!=a\\,b", &field, NULL), 0);
        assert_string_equal(field->key, "spec.name");
        assert_int_equal(field->operation, SELECTOR_NOT_EQUALS);
        assert_int_equal(field->count, 1);
        assert_string_equal(field->value[0], "a,b");
}

static bool matches(const char *selector, const char *value)
{
        _cleanup_(requirements_free_pointer) struct requirement *list = NULL;

        assert_int_equal(label_selector_parse(selector, &list, NULL), 0);
        assert_null(list->next);
        return requirement_matches(list, value);
}

static void test_what_matches(void **state)
{
        (void)state;
        assert_true(matches("a=b", "b"));
        assert_false(matches("a=b", "c"));
        assert_false(matches("a=b", NULL));
        assert_true(matches("a!=b", NULL));
        assert_false(matches("a!=b", "b"));
        assert_true(matches("a in (b,c)", "c"));
        assert_false(matches("a in (b,c)", "d"));
        assert_false(matches("a notin (b,c)", "b"));
        assert_true(matches("a notin (b,c)", NULL));
        assert_true(matches("a", ""));
        assert_false(matches("a", NULL));
        assert_true(matches("!a", NULL));
        assert_false(matches("!a", "b"));
        assert_true(matches("a>3", "4"));
        assert_false(matches("a>3", "3"));
        assert_true(matches("a<3", "-1"));
        assert_false(matches("a<3", "x"));
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_fields),
                cmocka_unit_test(test_what_is_read),
                cmocka_unit_test(test_what_matches),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
