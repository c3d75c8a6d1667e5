/* SPDX-License-Identifier: Apache-2.0 */
/* JSON is printed as it was read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "tests/unit/valgrind.h"
#include "json/json.h"

static void test_what_comes_back(void **state)
{
        static const struct {
                const char *in, *out; /* NULL: as it came */
        } row[] = {
                {"{\"a\":1,\"b\":[1.5,true,null,\"x\"]}", NULL},
                {"{\"n\":9007199254740993}", NULL},
                {"[9223372036854775807,-9223372036854775808,18446744073709551615]", NULL},
                {"{\"usec\":1700000000123456}", NULL},
                {"[1000000000000000]", NULL},
                {"[0.12345678901234567890]", NULL},
                {"123456789012345678", NULL},
                {"{\"s\":\"9007199254740993\",\"n\":9007199254740993}", NULL},
                {"{\"q\":\"\\\"1234567890123456789\\\"\",\"n\":9007199254740993}", NULL},
                {"{\"9007199254740993\":9007199254740993}", NULL},
                {"[1.0,1,-0,1e5,1E-400,0.10,1e999,-0.0e+0]", NULL},
                {"{\"s\":\"\\u0001foo\",\"n\":1234567890123456}", NULL},
                {" [ 1 , {\"a\" : [ ] , \"b\" : { } } ] \n", "[1,{\"a\":[],\"b\":{}}]"},
                {"[\"a\\u0000b\"]", NULL},
                {"[\"\\u00fc\\ud83d\\ude00\\ud83d\\/\"]", "[\"\u00fc\U0001f600\ufffd/\"]"},
                {"{\"a\":1,\"a\":2,\"\":3}", NULL},
                {"true", NULL},
                {"\"\"", NULL},
        };

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                cJSON *value = json_parse(row[i].in, strlen(row[i].in));
                char *json;

                if (!value)
                        fail_msg("%s is refused", row[i].in);
                json = cJSON_PrintUnformatted(value);
                assert_string_equal(json, row[i].out ? row[i].out : row[i].in);
                free(json);
                cJSON_Delete(value);
        }
        (void)state;
}

static void test_neighbours_differ(void **state)
{
        cJSON *a = json_parse("9007199254740993", 16), *b = json_parse("9007199254740992", 16),
              *c = json_parse("9007199254740993", 16);

        assert_false(json_equal(a, b));
        assert_true(json_equal(a, c));
        cJSON_Delete(a);
        cJSON_Delete(b);
        cJSON_Delete(c);
        (void)state;
}

static void test_what_is_no_json(void **state)
{
        static const char *const row[] = {"",
                                          "{",
                                          "[12345678901234567",
                                          "[1-2-3-4-5-6-7-8-9-1-2-3-4-5-6-7]",
                                          "[1234567890123456e]",
                                          "\"",
                                          "{\"a\\",
                                          "--1234567890123456789",
                                          "[01]",
                                          "[\"\377\"]",
                                          "[\"\\\377\"]",
                                          "[\"\303\"]",
                                          "[\"\355\240\200\"]",
                                          "{\"\360\237\230\":1}",
                                          "[1.]",
                                          "[.5]",
                                          "[+1]",
                                          "[1e]",
                                          "[NaN]",
                                          "[nul]",
                                          "[1,]",
                                          "[1 2]",
                                          "{\"a\"}",
                                          "{\"a\":}",
                                          "{\"a\":1,}",
                                          "{1:2}",
                                          "{,}",
                                          "[}",
                                          "{]",
                                          "1 2",
                                          "[\"\\x\"]",
                                          "[\"\\u12g4\"]",
                                          "[\"\\u12\"]",
                                          "[\"a\tb\"]",
                                          "[\"\\\"]",
                                          "{\"a\\u0000\":1}"};

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                cJSON *value = json_parse(row[i], strlen(row[i]));

                if (value)
                        fail_msg("%s is accepted as %s", row[i], cJSON_PrintUnformatted(value));
        }
        assert_null(json_parse(NULL, 0));
        (void)state;
}

static void test_depth(void **state)
{
        enum { DEPTH = 2 * JSON_DEPTH_MAX };
        char *text = malloc(2 * DEPTH + 1), *printed;
        cJSON *tree, *copy;

        assert_non_null(text);
        memset(text, '[', JSON_DEPTH_MAX);
        memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
        text[2 * JSON_DEPTH_MAX] = '\0';
        tree = json_parse(text, strlen(text));
        assert_non_null(tree);
        copy = cJSON_Duplicate(tree, true);
        assert_true(json_equal(tree, copy));
        printed = cJSON_PrintUnformatted(copy);
        assert_string_equal(printed, text);
        free(printed);
        cJSON_Delete(copy);
        cJSON_Delete(tree);
        memset(text, '[', DEPTH);
        memset(text + DEPTH, ']', DEPTH);
        assert_null(json_parse(text, 2 * DEPTH));
        free(text);
        (void)state;
}

static void test_too_many_values(void **state)
{
        size_t size = 2 * (size_t)JSON_VALUES_MAX;
        char *text;
        cJSON *tree;

        if (under_valgrind()) /* two minutes */
                skip();
        text = malloc(size + 1);
        assert_non_null(text);
        for (size_t i = 0; i < size; i += 2)
                memcpy(text + i, i == 0 ? "[1" : ",1", 2);
        text[size] = ']';
        assert_null(json_parse(text, size + 1));
        text[size - 2] = ']';
        tree = json_parse(text, size - 1);
        assert_non_null(tree);
        cJSON_Delete(tree);
        free(text);
        (void)state;
}

/* At each level in another order: as a program writes it that sorts names as numbers. */
static void test_members_in_another_order_at_each_level(void **state)
{
        enum { LEVELS = 60 };
        _cleanup_text_ struct text first = TEXT_EMPTY, second = TEXT_EMPTY;
        cJSON *a, *b;

        for (int i = 0; i < LEVELS; i++) {
                text_append_string(&first, "{\"1\":");
                text_append_string(&second, "{\"1\":");
        }
        text_append_string(&first, "0");
        text_append_string(&second, "0");
        for (int i = 0; i < LEVELS; i++) {
                text_append_string(&first, ",\"10\":1,\"9\":1}");
                text_append_string(&second, ",\"9\":1,\"10\":1}");
        }
        a = json_parse(first.data, first.size);
        b = json_parse(second.data, second.size);
        assert_true(json_equal(a, b));
        cJSON_Delete(a);
        cJSON_Delete(b);
        (void)state;
}

static void test_where(void **state)
{
        static const struct {
                const char *text;
                size_t where;
        } row[] = {{"{\"a\":nul}", 5}, {"{} {}", 2}, {"[1", 2}, {"[\"a\nb\"]", 3}, {"[1}", 2}};

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                cJSON *tree;
                size_t where = 99;

                assert_int_equal(json_read(row[i].text, strlen(row[i].text), &tree, &where), -EBADMSG);
                if (where != row[i].where)
                        fail_msg("%s: %zu", row[i].text, where);
        }
        (void)state;
}

static void test_numbers(void **state)
{
        cJSON *tree = json_parse("[7,-1.5,\"7\",\"\\u0000\",true]", 26), *item = tree->child;

        assert_true(json_is_number(item) && json_number(item, 0) > 6 && item->valueint == 7);
        item = item->next;
        assert_true(json_is_number(item) && json_number(item, 0) < -1);
        for (item = item->next; item; item = item->next)
                assert_false(json_is_number(item));
        assert_true(json_number(NULL, 3) > 2);
        cJSON_Delete(tree);
        item = json_new_integer(INT64_MIN);
        assert_string_equal(item->valuestring, "-9223372036854775808");
        cJSON_Delete(item);
        (void)state;
}

/* An answer may have ever so many keys in one object. */
static void test_duplicates(void **state)
{
        struct text text = TEXT_EMPTY, path = TEXT_EMPTY;
        const int many = under_valgrind() ? 20000 : 200000;
        const cJSON *found;
        cJSON *tree;

        text_append_string(&text, "{\"a\":[{},{\"b\":{\"\":0");
        for (int i = 0; i < many; i++)
                text_printf(&text, ",\"%d\":0", i * 7919 % (many + 3));
        text_append_string(&text, "}}]}");
        tree = json_parse(text.data, text.size);
        assert_int_equal(json_find_duplicate(tree, &found), 0);
        assert_null(found);
        cJSON_Delete(tree);
        text.size -= strlen("}}]}");
        text_append_string(&text, ",\"4711\":1}}]}");
        tree = json_parse(text.data, text.size);
        assert_int_equal(json_find_duplicate(tree, &found), 0);
        json_append_path(tree, found, &path);
        assert_string_equal(path.data, "a[1].b.4711");
        cJSON_Delete(tree);
        text_done(&path);
        text_done(&text);
        (void)state;
}

static void test_patterns(void **state _unused_)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;

        text_json(&out, "{?:[?,?]}", "a\"", NULL, "?");
        assert_string_equal(out.data, "{\"a\\\"\":[\"\",\"?\"]}");
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_patterns),
                cmocka_unit_test(test_what_comes_back),
                cmocka_unit_test(test_neighbours_differ),
                cmocka_unit_test(test_what_is_no_json),
                cmocka_unit_test(test_depth),
                cmocka_unit_test(test_members_in_another_order_at_each_level),
                cmocka_unit_test(test_too_many_values),
                cmocka_unit_test(test_where),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_duplicates),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
