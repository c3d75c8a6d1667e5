/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner: every border of pieces, what it must refuse, and agreement with cJSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "object/scan-list.h"
#include "object/scan-value.h"
#include "object/scan.h"

static const char list_text[] =
        "{\"kind\":\"WidgetList\",\"apiVersion\":\"example.com/"
        "v1\",\"metadata\":{\"resourceVersion\":\"1234\","
        "\"continue\":\"a\\u0062c\",\"remainingItemCount\":42}, \"items\" : [ "
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"u1\",\"annotations\":{\"t\":\"x\\\\\\\"]}\"}}} ,\n"
        "{\"metadata\":{\"name\":\"\xc3\xa4\",\"uid\":\"u2\"},\"spec\":{\"list\":[1,-2.5e3,[true,null]]}},"
        "7 , \"s\", null],\"other\":{\"items\":[1]}}\n";

struct items {
        char *item[16];
        size_t count;
        int answer;
};

static int take_item(const char *item, size_t size, void *userdata)
{
        struct items *items = userdata;

        assert_true(items->count < 16);
        items->item[items->count++] = strndup(item, size);
        return items->answer;
}

static void items_done(struct items *items)
{
        for (size_t i = 0; i < items->count; i++)
                free(items->item[i]);
        *items = (struct items){0};
}

static void assert_items(const struct items *items, struct scan_list *list)
{
        struct scan_list_metadata metadata;

        assert_int_equal(scan_list_finish(list, &metadata), 0);
        assert_string_equal(metadata.resource_version, "1234");
        assert_string_equal(metadata.continue_token, "abc");
        assert_int_equal(metadata.remaining_items, 42);
        assert_int_equal(items->count, 5);
        assert_non_null(strstr(items->item[0], "u1"));
        assert_int_equal(items->item[1][strlen(items->item[1]) - 1], '}');
        assert_string_equal(items->item[2], "7");
        assert_string_equal(items->item[3], "\"s\"");
        assert_string_equal(items->item[4], "null");
}

static void test_list_at_every_border(void **state _unused_)
{
        size_t size = sizeof(list_text) - 1;

        for (size_t first = 0; first <= size; first++)
                for (size_t second = first; second <= size; second += second < first + 3 ? 1 : 17) {
                        _cleanup_(scan_list_free_pointer) struct scan_list *list = NULL;
                        struct items items = {0};

                        assert_int_equal(scan_list_new(4096, take_item, &items, &list), 0);
                        assert_int_equal(scan_list_feed(list, list_text, first), 0);
                        assert_int_equal(scan_list_feed(list, list_text + first, second - first), 0);
                        assert_int_equal(scan_list_feed(list, list_text + second, size - second), 0);
                        assert_items(&items, list);
                        items_done(&items);
                }
}

static void test_list_byte_by_byte(void **state _unused_)
{
        _cleanup_(scan_list_free_pointer) struct scan_list *list = NULL;
        struct items items = {0};
        struct scan_list_metadata metadata;

        assert_int_equal(scan_list_new(4096, take_item, &items, &list), 0);
        for (size_t i = 0; i < sizeof(list_text) - 1; i++) {
                if (i < sizeof(list_text) - 3)
                        assert_int_equal(scan_list_finish(list, &metadata), -EAGAIN);
                assert_int_equal(scan_list_feed(list, list_text + i, 1), 0);
        }
        assert_items(&items, list);
        items_done(&items);
}

/* Larger than what is taken of a piece at a time, and pieces that end in each of them. */
static void test_list_of_large_items(void **state _unused_)
{
        enum { ITEMS = 5, ITEM = 9000 };
        static const size_t piece[] = {1000, 4095, 4096, 4097, 9001, 16384, 30000};
        _cleanup_text_ struct text text = TEXT_EMPTY;
        _cleanup_free_ char *item = malloc(ITEM + 1);

        assert_non_null(item);
        memset(item, 'x', ITEM);
        item[0] = item[ITEM - 1] = '"';
        item[ITEM] = '\0';
        text_append_string(&text, "{\"items\":[");
        for (size_t i = 0; i < ITEMS; i++)
                text_printf(&text, "%s%s", i > 0 ? "," : "", item);
        text_append_string(&text, "]}");
        for (size_t i = 0; i < ELEMENTS(piece); i++) {
                _cleanup_(scan_list_free_pointer) struct scan_list *list = NULL;
                struct scan_list_metadata metadata;
                struct items items = {0};

                assert_int_equal(scan_list_new(10000, take_item, &items, &list), 0);
                for (size_t at = 0; at < text.size; at += piece[i])
                        assert_int_equal(
                                scan_list_feed(list, text.data + at,
                                               text.size - at < piece[i] ? text.size - at : piece[i]),
                                0);
                assert_int_equal(scan_list_finish(list, &metadata), 0);
                assert_int_equal(items.count, ITEMS);
                for (size_t k = 0; k < ITEMS; k++)
                        assert_string_equal(items.item[k], item);
                items_done(&items);
        }
}

static int feed_all(const char *text, size_t item_max, struct items *items)
{
        _cleanup_(scan_list_free_pointer) struct scan_list *list = NULL;
        struct scan_list_metadata metadata;
        int r = scan_list_new(item_max, take_item, items, &list);

        if (r >= 0)
                r = scan_list_feed(list, text, strlen(text));
        return r < 0 ? r : scan_list_finish(list, &metadata);
}

static void test_list_refuses(void **state _unused_)
{
        static const char *const bad[] = {
                "[]",
                "{]",
                "{\"items\":[}",
                "{\"items\":[1,]}",
                "{\"items\":[1 2]}",
                "{\"items\":[1],}",
                "{\"items\":[1]}x",
                "{\"items\" 1}",
                "{items:[]}",
                "{,}",
                "{\"metadata\":{\"resourceVersion\":7}}",
                "{\"metadata\":{\"resourceVersion\":\"\\x\"}}",
        };
        static const char *const unfinished[] = {"", "{", "{\"items\":[", "{\"items\":[{}", "{\"a\":\"\\"};
        struct items items = {0};

        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                assert_int_equal(feed_all(bad[i], 4096, &items), -EBADMSG);
                items_done(&items);
        }
        for (size_t i = 0; i < ELEMENTS(unfinished); i++) {
                assert_int_equal(feed_all(unfinished[i], 4096, &items), -EAGAIN);
                items_done(&items);
        }
}

static void test_list_ends_with_the_callers_error(void **state _unused_)
{
        struct items items = {.answer = -ECANCELED};

        assert_int_equal(feed_all("{\"items\":[1,2]}", 4096, &items), -ECANCELED);
        assert_int_equal(items.count, 1);
        items_done(&items);
}

struct skipped {
        unsigned whole, giants;
};

static int count_items(const char *item, size_t size _unused_, void *userdata)
{
        struct skipped *skipped = userdata;

        if (item)
                skipped->whole++;
        else
                skipped->giants++;
        return 0;
}

static void assert_giant_is_skipped(const char *text, size_t piece)
{
        struct scan_list_metadata metadata;
        struct scan_list *list = NULL;
        struct skipped skipped = {0};
        size_t size = strlen(text);

        assert_int_equal(scan_list_new(24, count_items, &skipped, &list), 0);
        for (size_t at = 0; at < size; at += piece)
                assert_int_equal(scan_list_feed(list, text + at, at + piece < size ? piece : size - at), 0);
        assert_int_equal(scan_list_finish(list, &metadata), 0);
        assert_string_equal(metadata.resource_version, "7");
        assert_int_equal(skipped.whole, 2);
        assert_int_equal(skipped.giants, 1);
        scan_list_free(list);
}

static void test_list_bounds_an_item(void **state _unused_)
{
        static const char giant[] =
                "{\"items\":[{\"a\":1},{\"b\":\"]0123456789 \\\"},{[ 0123456789\",\"c\":[1,2,3 ,4]},"
                "{\"d\":2}],\"metadata\":{\"resourceVersion\":\"7\"}}";
        struct items items = {0};

        /* in pieces of any size: one that holds it whole is as good as none */
        for (size_t piece = 1; piece < 8; piece++)
                assert_giant_is_skipped(giant, piece);
        assert_int_equal(feed_all("{\"other\":[\"0123456789012345678901234567890123456789", 32, &items),
                         -EMSGSIZE);
        items_done(&items);
}

static void test_empty_lists(void **state _unused_)
{
        struct items items = {0};

        assert_int_equal(feed_all("{}", 64, &items), 0);
        assert_int_equal(feed_all("{\"items\":[]}", 64, &items), 0);
        assert_int_equal(feed_all("{\"items\":null}", 64, &items), 0);
        assert_int_equal(items.count, 0);
}

static void test_depth(void **state _unused_)
{
        enum { BOMB = 100000 };
        _cleanup_free_ char *bomb = malloc(BOMB);
        struct span value;

        assert_non_null(bomb);
        memset(bomb, '[', BOMB);
        assert_int_equal(scan_value(bomb, BOMB, &value), -EAGAIN);
        memset(bomb + BOMB / 2, ']', BOMB / 2);
        assert_int_equal(scan_value(bomb, BOMB, &value), 0);
        assert_int_equal(value.size, BOMB);
        /* The kinds of brackets that are known must match. */
        bomb[BOMB - 1] = '}';
        assert_int_equal(scan_value(bomb, BOMB, &value), -EBADMSG);
}

static void test_brackets_must_match(void **state _unused_)
{
        struct span value;

        assert_int_equal(scan_value("{\"a\":[1}]", 9, &value), -EBADMSG);
        assert_int_equal(scan_value("]", 1, &value), -EBADMSG);
        assert_int_equal(scan_value(",", 1, &value), -EBADMSG);
        assert_int_equal(scan_value("{\"a\":[1]", 8, &value), -EAGAIN);
        assert_int_equal(scan_value("", 0, &value), -EAGAIN);
}

/* A script in a ConfigMap is one string of many escapes: its cost must be its length. */
static void test_many_escapes_cost_their_length(void **state _unused_)
{
        enum { SIZE = 8 * 1024 * 1024 };
        _cleanup_free_ char *text = malloc(SIZE);
        struct timespec before, after;
        struct span value;

        assert_non_null(text);
        for (size_t i = 0; i < SIZE; i += 2)
                memcpy(text + i, "\\n", 2);
        text[0] = '"';
        text[1] = ' ';
        text[SIZE - 1] = '"';
        text[SIZE - 2] = ' ';
        clock_gettime(CLOCK_MONOTONIC, &before);
        assert_int_equal(scan_value(text, SIZE, &value), 0);
        clock_gettime(CLOCK_MONOTONIC, &after);
        assert_int_equal(value.size, SIZE);
        assert_true(after.tv_sec - before.tv_sec < 5); /* quadratic would be many minutes */
}

static void assert_string(const char *json, const char *expected)
{
        struct span value = {json, strlen(json)};
        char *string = NULL;
        int r = scan_string(value, &string);

        if (!expected) {
                assert_int_equal(r, -EBADMSG);
                return;
        }
        assert_int_equal(r, 0);
        assert_string_equal(string, expected);
        assert_true(scan_string_equals(value, expected));
        assert_false(scan_string_equals(value, "something else"));
        free(string);
}

static void test_strings(void **state _unused_)
{
        assert_string("\"\"", "");
        assert_string("\"a\\/b\\\\\\\"\\b\\f\\n\\r\\t\"", "a/b\\\"\b\f\n\r\t");
        assert_string("\"\\u0041\\u00e4\\u20AC\"", "A\xc3\xa4\xe2\x82\xac");
        assert_string("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80");
        assert_string("\"\\ud83dx\"", "\xef\xbf\xbdx");
        assert_string("\"\\ude00\"", "\xef\xbf\xbd");
        assert_string("\"\\u0000\"", NULL);
        assert_string("\"\\u12\"", NULL);
        assert_string("\"\\u12g4\"", NULL);
        assert_string("\"\\q\"", NULL);
        assert_string("7", NULL);
        assert_string("\"", NULL);
        assert_false(scan_string_equals((struct span){NULL, 0}, ""));
}

static void test_object(void **state _unused_)
{
        static const char text[] = " {\"apiVersion\":\"v1\",\"status\":{\"metadata\":{\"name\":\"no\"}},"
                                   "\"metadata\":{\"na\\u006de\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
                                   "\"resourceVersion\":\"5\",\"finalizers\":[\"x/y\"],\"name\":\"last\"}} ";
        struct scan_object object;

        assert_int_equal(scan_object(text, sizeof(text) - 1, &object), 0);
        assert_true(scan_string_equals(object.name, "last"));
        assert_true(scan_string_equals(object.namespace_name, "b"));
        assert_true(scan_string_equals(object.uid, "c"));
        assert_true(scan_string_equals(object.resource_version, "5"));
        assert_true(object.finalizers.size == strlen("[\"x/y\"]"));
        assert_null(object.labels.start);
        assert_int_equal(object.whole.size, sizeof(text) - 3);
        assert_int_equal(scan_object("[]", 2, &object), -EBADMSG);
        assert_int_equal(scan_object("{} {}", 5, &object), -EBADMSG);
        assert_int_equal(scan_object("{\"metadata\":[]}", 15, &object), -EBADMSG);
        assert_int_equal(scan_object("{\"metadata\"", 11, &object), -EAGAIN);
}

static void test_identity_alone(void **state _unused_)
{
        static const char text[] = "{\"kind\":\"K\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\"},\"spec\":{]";
        struct scan_object object;

        assert_int_equal(scan_identity(text, sizeof(text) - 1, &object), 0);
        assert_true(scan_string_equals(object.name, "n"));
        assert_true(scan_string_equals(object.uid, "u"));
        assert_null(object.namespace_name.start);
        assert_int_equal(scan_object(text, sizeof(text) - 1, &object), -EBADMSG);

        assert_int_equal(scan_identity("[]", 2, &object), -EBADMSG);
        assert_int_equal(scan_identity("{\"a\":1}", 7, &object), -EBADMSG);
        assert_int_equal(scan_identity("{\"metadata\":[]}", 15, &object), -EBADMSG);
        assert_int_equal(scan_identity("{\"metadata\"", 11, &object), -EAGAIN);
}

/* Wherever it ends, and whatever stands before it. */
static void test_ends_of_strings(void **state _unused_)
{
        char text[200];

        for (size_t length = 0; length < 150; length++)
                for (size_t before = 0; before < 20; before++) {
                        size_t size = before + length + 2;
                        struct span value;

                        memset(text, 'x', sizeof(text));
                        text[before] = text[size - 1] = '"';
                        assert_int_equal(scan_value(text + before, size - before, &value), 0);
                        assert_int_equal(value.size, length + 2);
                        assert_int_equal(scan_value(text + before, size - before - 1, &value), -EAGAIN);
                        if (length == 0)
                                continue;
                        text[size - 2] = '\\'; /* it is none, then */
                        assert_int_equal(scan_value(text + before, size - before, &value), -EAGAIN);
                }
}

/* ---- against cJSON: random documents that it prints must be read alike */

static uint64_t random_state = 88172645463325252U;

static unsigned random_below(unsigned bound)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return (unsigned)(random_state % bound);
}

static cJSON *random_value(unsigned depth)
{
        static const char *const string[] = {"", "a", "\"", "\\", "\n\t]}", "\xc3\xa4", "{[", "metadata"};
        cJSON *value;

        switch (random_below(depth > 4 ? 4 : 6)) {
        case 0:
                return cJSON_CreateString(string[random_below(ELEMENTS(string))]);
        case 1:
                return cJSON_CreateNumber((double)random_below(1000) - 500.5);
        case 2:
                return cJSON_CreateBool(random_below(2) == 0);
        case 3:
                return cJSON_CreateNull();
        case 4:
                value = cJSON_CreateArray();
                for (unsigned i = random_below(4); i > 0; i--)
                        cJSON_AddItemToArray(value, random_value(depth + 1));
                return value;
        default:
                value = cJSON_CreateObject();
                for (unsigned i = random_below(4); i > 0; i--)
                        cJSON_AddItemToObject(value, string[random_below(ELEMENTS(string))],
                                              random_value(depth + 1));
                return value;
        }
}

static struct span whole_of(const char *json)
{
        return (struct span){json, strlen(json)};
}

/* The keys and values that a walk comes by, each with a space behind it. */
static int walk_text(const char *json, bool is_array, char *out, size_t size)
{
        struct scan_walk walk;

        out[0] = '\0';
        if (is_array)
                SCAN_ELEMENTS(walk, whole_of(json))
                        snprintf(out + strlen(out), size - strlen(out), "%.*s ", (int)walk.value.size,
                                 walk.value.start);
        else
                SCAN_MEMBERS(walk, whole_of(json))
                        snprintf(out + strlen(out), size - strlen(out), "%.*s=%.*s ", (int)walk.key.size,
                                 walk.key.start, (int)walk.value.size, walk.value.start);
        return walk.status;
}

static void test_walks(void **state _unused_)
{
        static const struct {
                const char *json, *seen;
                bool is_array;
                int status;
        } walk[] = {
                {"{\"a\":1, \"b\" : [2,{}]}", "\"a\"=1 \"b\"=[2,{}] ", false, 0},
                {"[ 1 ,\"]\",{\"a\":[]} ]", "1 \"]\" {\"a\":[]} ", true, 0},
                {"{}", "", false, 0},
                {"[ ]", "", true, 0},
                {"[1]", "", false, 0}, /* of another type */
                {"{\"a\":1}", "", true, 0},
                {"null", "", true, 0},
                {"[1 2]", "1 ", true, -EBADMSG},
                {"[1,", "1 ", true, -EBADMSG},
                {"[,1]", "", true, -EBADMSG},
                {"{\"a\":1,}", "\"a\"=1 ", false, -EBADMSG},
                {"{\"a\"}", "", false, -EBADMSG},
                {"{1:2}", "", false, -EBADMSG},
        };
        struct scan_walk none;
        char seen[200];

        for (size_t i = 0; i < ELEMENTS(walk); i++) {
                assert_int_equal(walk_text(walk[i].json, walk[i].is_array, seen, sizeof(seen)),
                                 walk[i].status);
                assert_string_equal(seen, walk[i].seen);
        }
        SCAN_MEMBERS(none, (struct span){0})
                fail();
        assert_int_equal(none.status, 0);
}

static void test_one_member(void **state _unused_)
{
        struct span object = whole_of("{\"a\":1,\"b\":true,\"a\":\"last\"}");

        assert_true(scan_string_equals(scan_get(object, "a"), "last"));
        assert_true(scan_is_true(scan_get(object, "b")));
        assert_false(scan_is_true(scan_get(object, "a")));
        assert_null(scan_get(object, "c").start);
        assert_null(scan_get(whole_of("[1]"), "a").start);
        assert_false(scan_is_true((struct span){0}));
}

static void test_agrees_with_cjson(void **state _unused_)
{
        for (unsigned round = 0; round < 2000; round++) {
                cJSON *root = cJSON_CreateObject(), *array = cJSON_AddArrayToObject(root, "items");
                struct items items = {0};
                unsigned count = random_below(8);
                char *text;

                for (unsigned i = 0; i < count; i++)
                        cJSON_AddItemToArray(array, random_value(0));
                text = round % 2 ? cJSON_Print(root) : cJSON_PrintUnformatted(root);
                assert_int_equal(feed_all(text, 1 << 20, &items), 0);
                assert_int_equal(items.count, count);
                for (unsigned i = 0; i < count; i++) {
                        cJSON *item = cJSON_Parse(items.item[i]);
                        char *found = cJSON_PrintUnformatted(item);
                        char *expected = cJSON_PrintUnformatted(cJSON_GetArrayItem(array, (int)i));

                        assert_string_equal(found, expected);
                        cJSON_free(found);
                        cJSON_free(expected);
                        cJSON_Delete(item);
                }
                items_done(&items);
                cJSON_free(text);
                cJSON_Delete(root);
        }
}

static void test_values_are_counted(void **state)
{
        static const struct {
                const char *text;
                size_t count;
        } row[] = {
                {"7", 1},
                {"\"a,[{\\\",\"", 1},
                {"[]", 1},
                {" { \n} ", 1},
                {"[1]", 2},
                {"[1,[2, {}],\"\\\\\",null]", 7},
                {"{\"a,b\":{\"c\":[[],[]]},\"d\":\"]\"}", 6},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++)
                assert_int_equal(scan_count_values(row[i].text, strlen(row[i].text)), row[i].count);
        assert_int_equal(scan_count_values("[1,\"", 4), 3); /* what ends too early ends the count */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_list_at_every_border),
                cmocka_unit_test(test_identity_alone),
                cmocka_unit_test(test_ends_of_strings),
                cmocka_unit_test(test_list_byte_by_byte),
                cmocka_unit_test(test_list_of_large_items),
                cmocka_unit_test(test_list_refuses),
                cmocka_unit_test(test_list_ends_with_the_callers_error),
                cmocka_unit_test(test_list_bounds_an_item),
                cmocka_unit_test(test_empty_lists),
                cmocka_unit_test(test_depth),
                cmocka_unit_test(test_brackets_must_match),
                cmocka_unit_test(test_many_escapes_cost_their_length),
                cmocka_unit_test(test_strings),
                cmocka_unit_test(test_object),
                cmocka_unit_test(test_walks),
                cmocka_unit_test(test_one_member),
                cmocka_unit_test(test_values_are_counted),
                cmocka_unit_test(test_agrees_with_cjson),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
