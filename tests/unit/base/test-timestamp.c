/* SPDX-License-Identifier: Apache-2.0 */
/* Times as RFC 3339 writes them, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/timestamp.h"

static void test_times(void **state)
{
        static const struct {
                const char *text;
                uint64_t usec;
        } row[] = {
                {"2026-12-01T03:00:00Z", UINT64_C(1796094000000000)},
                {"2026-12-01t03:00:00z", UINT64_C(1796094000000000)},
                {"2026-12-01T03:00:00.5Z", UINT64_C(1796094000500000)},
                {"2026-12-01T03:00:00.123456789123Z", UINT64_C(1796094000123456)},
                {"2026-12-01T04:30:00+01:30", UINT64_C(1796094000000000)},
                {"2026-11-30T20:00:00-07:00", UINT64_C(1796094000000000)},
                {"2026-12-01T03:00:00-00:00", UINT64_C(1796094000000000)},
                {"2024-02-29T00:00:00Z", UINT64_C(1709164800000000)},
                {"2016-12-31T23:59:60Z", UINT64_C(1483228800000000)},
                {"9999-12-31T23:59:59Z", UINT64_C(253402300799000000)},
                {"1970-01-01T00:00:00Z", 0},
                {"1970-01-01T00:00:00+00:01", 0},
                {"0000-01-01T00:00:00.9Z", 0},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                uint64_t usec = 1;

                assert_int_equal(timestamp_parse(row[i].text, &usec), 0);
                if (usec != row[i].usec)
                        fail_msg("%s: %" PRIu64, row[i].text, usec);
        }
}

static void test_what_is_no_time(void **state)
{
        static const char *const text[] = {
                "",
                "now",
                "2026-12-01",
                "2026-12-01T03:00:00",
                "2026-12-01 03:00:00Z",
                " 2026-12-01T03:00:00Z",
                "2026-12-01T03:00:00Z ",
                "2026-12-01T03:00Z",
                "2026-12-1T03:00:00Z",
                "+2026-12-01T03:00:00Z",
                "12026-12-01T03:00:00Z",
                "2026-00-01T03:00:00Z",
                "2026-13-01T03:00:00Z",
                "2026-12-00T03:00:00Z",
                "2026-12-32T03:00:00Z",
                "2026-02-29T03:00:00Z",
                "2026-04-31T03:00:00Z",
                "2026-12-01T24:00:00Z",
                "2026-12-01T03:60:00Z",
                "2026-12-01T03:00:61Z",
                "2026-12-01T03:00:00.Z",
                "2026-12-01T03:00:00,5Z",
                "2026-12-01T03:00:00+01",
                "2026-12-01T03:00:00+0100",
                "2026-12-01T03:00:00+24:00",
                "2026-12-01T03:00:00+00:60",
                "2026-12-01T03:00:00UTC",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(text); i++) {
                uint64_t usec = 4711;

                if (timestamp_parse(text[i], &usec) != -EINVAL)
                        fail_msg("\"%s\" was taken", text[i]);
                assert_int_equal(usec, 4711);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_what_is_no_time),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
