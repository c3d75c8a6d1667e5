/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "object/child-kinds.h"

static void assert_span(struct span span, const char *text)
{
        assert_int_equal(span.size, strlen(text));
        assert_memory_equal(span.start, text, span.size);
}

static void test_entries(void **state _unused_)
{
        const char *at = "?3#1a2b,v1/Node,nonsense,apps/v1/Deployment@default=7:10.15.-20,v1/Secret@b=8:";
        struct child_kind kind;

        assert_true(child_kinds_are_unknown(at));
        assert_true(child_kinds_next(&at, &kind));
        assert_span(kind.api_version, "v1");
        assert_span(kind.kind, "Node");
        assert_int_equal(kind.namespace_name.size + kind.versions.size, 0);
        assert_true(child_kinds_next(&at, &kind));
        assert_true(child_kind_is(&kind, "apps/v1", "Deployment"));
        assert_false(child_kind_is(&kind, "apps/v1", "Deploymen"));
        assert_span(kind.namespace_name, "default");
        assert_int_equal(kind.epoch, 7);
        assert_span(kind.versions, "10.15.-20");
        assert_true(child_kinds_next(&at, &kind));
        assert_span(kind.namespace_name, "b");
        assert_int_equal(kind.versions.size, 0);
        assert_false(child_kinds_next(&at, &kind));
        assert_true(child_kinds_are_none("?") && child_kinds_are_none("") &&
                    child_kinds_are_none("v1/Node"));
        assert_int_equal(child_kinds_count("?12#ff,v1/Node"), 12);
        assert_int_equal(child_kinds_hash("?12#ff,v1/Node"), 0xff);
}

static void test_versions(void **state _unused_)
{
        const char *kinds = "v1/Secret@a=7:10.15.-20,v1/Secret@b=8:30";
        const char *at = kinds;
        struct child_kind kind;

        assert_true(child_kinds_next(&at, &kind));
        assert_true(child_kind_has(&kind, 10, false) && child_kind_has(&kind, 20, false));
        assert_true(child_kind_has(&kind, 20, true) && !child_kind_has(&kind, 10, true));
        assert_true(child_kinds_have(kinds, "v1", "Secret", 7, 15, false));
        assert_true(child_kinds_have(kinds, "v1", "Secret", 8, 30, false));
        assert_false(child_kinds_have(kinds, "v1", "Secret", 7, 30, false)); /* of another epoch */
        assert_false(child_kinds_have(kinds, "v1", "ConfigMap", 7, 15, false));
        assert_false(child_kinds_have(kinds, "v1", "Secret", 7, 1, false)); /* no part of a number counts */
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_entries), cmocka_unit_test(test_versions)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
