/* SPDX-License-Identifier: Apache-2.0 */
/* What strangers may make as large as the API server allows is walked in linear time: twice as much takes twice as long. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/text.h"
#include "object/keyed-hash.h"
#include "object/scan.h"
#include "worker/dependents/parked/managed-fields.h"
#include "worker/dependents/secret-data.h"
#include "worker/run/shown.h"
#include "json/difference.h"
#include "json/json.h"

#define SIZE ((size_t)10000)

static double processor_seconds(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double fastest(void (*walk)(const char *text, size_t count), const char *text, size_t count)
{
        double best = 1e9;

        for (unsigned i = 0; i < 5; i++) {
                double begun = processor_seconds(), took;

                walk(text, count);
                took = processor_seconds() - begun;
                best = took < best ? took : best;
        }
        return best;
}

/* Quadratic work would take sixteen times as long for four times as much. */
static void assert_linear(void (*make)(size_t count, struct text *out),
                          void (*walk)(const char *text, size_t count))
{
        _cleanup_text_ struct text small = TEXT_EMPTY, large = TEXT_EMPTY;
        double once, more;

        make(SIZE, &small);
        make(4 * SIZE, &large);
        once = fastest(walk, small.data, SIZE);
        more = fastest(walk, large.data, 4 * SIZE);
        if (more > 10 * once)
                fail_msg("%zu take %.3f s, and %zu take %.3f s", SIZE, once, 4 * SIZE, more);
}

/* ---- fields that a manager of our name is said to have */

static void make_managed(size_t count, struct text *out)
{
        text_append_string(
                out,
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"managedFields\":[{"
                "\"manager\":\"me\",\"operation\":\"Apply\",\"fieldsV1\":{\"f:data\":{");
        for (size_t i = 0; i < count; i++)
                text_printf(out, "%s\"f:absent-%zu\":{},\"f:key-%zu\":{}", i > 0 ? "," : "", i, i);
        text_append_string(out, "}}}]},\"data\":{");
        for (size_t i = count; i > 0; i--)
                text_printf(out, "\"key-%zu\":\"\"%s", i - 1, i > 1 ? "," : "");
        text_append_string(out, "}}");
}

static void walk_managed(const char *text, size_t count _unused_)
{
        _cleanup_free_ char *body = NULL;

        assert_int_equal(managed_fields_body(text, "me", &body), 0);
}

static void test_managed_fields(void **state _unused_)
{
        assert_linear(make_managed, walk_managed);
}

static void test_a_list_that_is_too_long(void **state _unused_)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;
        _cleanup_free_ char *body = NULL;

        text_append_string(
                &out,
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"managedFields\":[{"
                "\"manager\":\"me\",\"operation\":\"Apply\",\"fieldsV1\":{\"f:metadata\":{\"f:finalizers\":{\".\":{}");
        for (size_t i = 0; i <= MANAGED_LIST_MAX; i++)
                text_printf(&out, ",\"v:\\\"a/%zu\\\"\":{}", i);
        text_append_string(&out, "}}}}],\"finalizers\":[\"a/1\"]}}");
        assert_int_equal(managed_fields_body(out.data, "me", &body), -E2BIG);
}

/* ---- elements with many keys in a list whose items have many members */

static void add_members(size_t count, size_t other, const char *quote, struct text *out)
{
        for (size_t i = 0; i < count; i++)
                text_printf(out, "%s%s%zu%s:%zu", i > 0 ? "," : "", quote, i, quote,
                            i + 1 == count ? other : 0);
}

static void make_elements(size_t items, size_t members, size_t elements, size_t keys, struct text *out)
{
        text_append_string(
                out,
                "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\",\"managedFields\":[{"
                "\"manager\":\"me\",\"operation\":\"Apply\",\"fieldsV1\":{\"f:list\":{\".\":{}");
        for (size_t i = 0; i < elements; i++) {
                text_append_string(out, ",\"k:{");
                add_members(keys, i, "\\\"", out);
                text_append_string(out, "}\":{}");
        }
        text_append_string(out, "}}}]},\"list\":[");
        for (size_t i = 0; i < items; i++) {
                text_append_string(out, i > 0 ? ",{" : "{");
                add_members(members, i, "\"", out);
                text_append_string(out, "}");
        }
        text_append_string(out, "]}");
}

static void test_elements_that_take_long_to_find(void **state _unused_)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;
        _cleanup_free_ char *body = NULL;

        make_elements(320, 300, 950, 75, &out);
        assert_int_equal(managed_fields_body(out.data, "me", &body), -E2BIG);
}

static void test_as_many_elements_as_may_be(void **state _unused_)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;
        _cleanup_free_ char *body = NULL;

        make_elements(MANAGED_LIST_MAX, 4, MANAGED_LIST_MAX - 1, 4, &out);
        assert_int_equal(managed_fields_body(out.data, "me", &body), 0);
        assert_non_null(strstr(body, "\"3\":998"));
}

/* ---- a Secret of an answer */

static void make_secret(size_t count, struct text *out)
{
        text_append_string(out, "{\"kind\":\"Secret\",\"data\":{");
        for (size_t i = 0; i < count; i++)
                text_printf(out, "%s\"data-%zu\":\"\"", i > 0 ? "," : "", i);
        text_append_string(out, "},\"stringData\":{");
        for (size_t i = 0; i < count; i++)
                text_printf(out, "%s\"string-%zu\":\"\"", i > 0 ? "," : "", i);
        text_append_string(out, "}}");
}

static void walk_secret(const char *text, size_t count _unused_)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;

        assert_int_equal(secret_data_body((struct span){text, strlen(text)}, &out), 1);
}

static void test_secret_data(void **state _unused_)
{
        assert_linear(make_secret, walk_secret);
}

/* ---- what an apply has changed */

static void make_map(size_t count, struct text *out)
{
        text_append_string(out, "{\"data\":{");
        for (size_t i = 0; i < count; i++)
                text_printf(out, "%s\"key-%zu\":\"\"", i > 0 ? "," : "", i);
        text_append_string(out, "}}");
}

static void ignore(const char *path _unused_, const cJSON *before _unused_, const cJSON *after _unused_,
                   void *userdata _unused_)
{
}

static void walk_difference(const char *text, size_t count)
{
        cJSON *before = json_parse(text, strlen(text)), *after = json_parse(text, strlen(text)),
              *data = after->child, *last;

        /* The same members in another order, and one of them is another one. */
        last = cJSON_DetachItemFromArray(data, 0);
        free(last->string);
        last->string = strdup("other");
        cJSON_AddItemToArray(data, last);
        assert_int_equal(difference_visit(before, after, ignore, NULL), 2);
        assert_int_equal(cJSON_GetArraySize(data), count);
        cJSON_Delete(before);
        cJSON_Delete(after);
}

static void test_differences(void **state _unused_)
{
        assert_linear(make_map, walk_difference);
}

/* ---- objects that name one owner */

static void make_nothing(size_t count _unused_, struct text *out)
{
        text_append_string(out, "");
}

static void walk_shown(const char *text _unused_, size_t count)
{
        const struct record_watch config = {.name = "owned"};
        struct shown shown = {0};
        char json[200], key[64];

        for (size_t i = 0; i < count; i++) {
                int size = snprintf(
                        json, sizeof(json),
                        "{\"metadata\":{\"name\":\"a%zu\",\"namespace\":\"n\",\"uid\":\"%zu\",\"resourceVersion\":\"1\"}}",
                        i, i);

                snprintf(key, sizeof(key), "n/a%zu", i);
                assert_false(shown_is_known(&shown, &config, key));
                assert_int_equal(shown_add(&shown, &config, json, (size_t)size, i % 2 == 0), 0);
                assert_non_null(shown_find(&shown, &config, key));
        }
        shown_forget_stored(&shown);
        assert_int_equal(shown.count, count / 2);
        shown_done(&shown);
}

static void test_children(void **state _unused_)
{
        assert_linear(make_nothing, walk_shown);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_managed_fields),
                cmocka_unit_test(test_a_list_that_is_too_long),
                cmocka_unit_test(test_elements_that_take_long_to_find),
                cmocka_unit_test(test_as_many_elements_as_may_be),
                cmocka_unit_test(test_secret_data),
                cmocka_unit_test(test_differences),
                cmocka_unit_test(test_children),
        };

        if (keyed_hash_begin("0123456789abcdef", SIPHASH_KEY_SIZE) < 0)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
