/* SPDX-License-Identifier: Apache-2.0 */
/* Our finalizer is found in the metadata. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "object/bookkeeping.h"

static void check(const char *json, bool ours, bool deleting)
{
        struct finalizer_view view;

        assert_int_equal(finalizer_look(json, strlen(json), "e.com/finalizer", &view), 0);
        assert_int_equal(view.ours, ours);
        assert_int_equal(view.deleting, deleting);
}

static void test_look(void **state)
{
        struct finalizer_view view;

        (void)state;
        check("{\"metadata\":{}}", false, false);
        check("{\"metadata\":{\"finalizers\":[]},\"spec\":{\"finalizers\":[\"e.com/finalizer\"]}}", false,
              false);
        check("{\"metadata\":{\"finalizers\":[\"e.com/finalizer\"]}}", true, false);
        check("{\"metadata\":{\"finalizers\": [ \"a/b\" , \"e.com\\/finalizer\" ] }}", true, false);
        check("{\"metadata\":{\"finalizers\":[\"e.com/finalizer2\",{\"x\":[1]},null]}}", false, false);
        check("{\"metadata\":{\"finalizers\":\"e.com/finalizer\"}}", false, false);
        check("{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"a/b\"]}}",
              false, true);
        assert_true(finalizer_look("{}", 2, "e.com/finalizer", &view) < 0);
        assert_true(finalizer_look("[", 1, "e.com/finalizer", &view) < 0);
}

int main(void)
{
        const struct CMUnitTest test[] = {cmocka_unit_test(test_look)};

        return cmocka_run_group_tests(test, NULL, NULL);
}
