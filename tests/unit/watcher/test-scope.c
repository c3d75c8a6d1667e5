/* SPDX-License-Identifier: Apache-2.0 */
/* What a watch selects, and when absence proves a deletion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "watcher/apply/scope.h"
#include "watcher/stream/stream.h"

static struct message_config_watcher widgets(void)
{
        return (struct message_config_watcher){
                .api_version = "example.com/v1",
                .kind = "Widget",
                .label_selector = "",
                .field_selector = "",
                .trigger_jq = "",
                .filter = "",
                .shared = "",
                .conditions = "",
                .owner_api_version = "",
                .owner_kind = "",
                .known_scope = "",
        };
}

static void assert_scopes(const struct message_config_watcher *a, const struct message_config_watcher *b,
                          bool same, bool other_resource)
{
        _cleanup_free_ char *first = scope_new(a), *second = scope_new(b);

        assert_non_null(first);
        assert_non_null(second);
        assert_int_equal(strcmp(first, second) == 0, same);
        assert_int_equal(scope_is_other_resource(first, second), other_resource);
}

static void test_scopes(void **state _unused_)
{
        static const struct record_string namespaces[] = {{"a"}, {"b"}};
        struct message_config_watcher base = widgets(), other = widgets();

        assert_scopes(&base, &other, true, false);
        other.label_selector = "tier=gold";
        assert_scopes(&base, &other, false, false);
        other = widgets();
        other.field_selector = "tier=gold";
        assert_scopes(&base, &other, false, false);
        other = widgets();
        other.namespace = namespaces;
        other.namespace_count = 2;
        assert_scopes(&base, &other, false, false);
        other = widgets();
        other.api_version = "example.com/v2"; /* another version shows the same objects */
        assert_scopes(&base, &other, false, false);
        other.kind = "Gadget";
        assert_scopes(&base, &other, false, true);
        other = widgets();
        other.api_version = "example.org/v1";
        assert_scopes(&base, &other, false, true);
        other.api_version = "v1";
        assert_scopes(&base, &other, false, true);
}

static void test_unknown_scopes_are_of_no_other_resource(void **state _unused_)
{
        struct message_config_watcher config = widgets();
        _cleanup_free_ char *scope = scope_new(&config);

        assert_false(scope_is_other_resource("", scope));
        assert_false(scope_is_other_resource("0123", scope));
}

static void test_absence(void **state _unused_)
{
        struct message_config_watcher config = widgets();
        struct watcher watcher = {.config = &config};
        char empty[] = "";

        watcher.scope = scope_new(&config);
        watcher.meta.scope = empty;
        assert_true(absence_is_deletion(&watcher));
        watcher.meta.scope = watcher.scope;
        config.known_scope = watcher.scope;
        assert_true(absence_is_deletion(&watcher));
        config.label_selector = "a=b";
        assert_false(absence_is_deletion(&watcher));
        config.label_selector = "";
        config.field_selector = "a=b";
        assert_false(absence_is_deletion(&watcher));
        config.field_selector = "";
        config.known_scope = "another";
        assert_false(absence_is_deletion(&watcher));
        config.known_scope = "";
        watcher.meta.scope = (char[]){"another"};
        assert_false(absence_is_deletion(&watcher));
        free(watcher.scope);
}

static void test_a_key_belongs_to_its_stream(void **state _unused_)
{
        struct stream stream[] = {{.namespace_name = "a"}, {.namespace_name = "ab"}};
        struct watcher watcher = {.stream = stream, .stream_count = 2};

        assert_ptr_equal(stream_of_key(&watcher, "a/x"), &stream[0]);
        assert_ptr_equal(stream_of_key(&watcher, "ab/x"), &stream[1]);
        assert_null(stream_of_key(&watcher, "abc/x"));
        assert_null(stream_of_key(&watcher, "a"));
        stream[0].namespace_name = "";
        assert_ptr_equal(stream_of_key(&watcher, "cluster-scoped"), &stream[0]);
}

static void test_resource_versions_compare_as_numbers(void **state _unused_)
{
        assert_true(resource_version_less("9", "10"));
        assert_true(resource_version_less("", "1"));
        assert_true(resource_version_less("123456789012345678901", "123456789012345678902"));
        assert_false(resource_version_less("10", "9"));
        assert_false(resource_version_less("10", "10"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_scopes),
                cmocka_unit_test(test_unknown_scopes_are_of_no_other_resource),
                cmocka_unit_test(test_absence),
                cmocka_unit_test(test_a_key_belongs_to_its_stream),
                cmocka_unit_test(test_resource_versions_compare_as_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
