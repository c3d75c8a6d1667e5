/* SPDX-License-Identifier: Apache-2.0 */
/* When a line of crontab(5) is due: fields, names, steps, Vixie's rule, summer time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/cron.h"
#include "base/duration.h"
#include "tests/unit/valgrind.h"

static uint64_t at(const char *utc)
{
        struct tm date = {0};

        assert_non_null(strptime(utc, "%Y-%m-%d %H:%M:%S", &date));
        return (uint64_t)timegm(&date) * USEC_PER_SEC;
}

static const char *shown(uint64_t usec, char *buffer, size_t size)
{
        const time_t time = (time_t)(usec / USEC_PER_SEC);
        struct tm date;

        assert_non_null(gmtime_r(&time, &date));
        strftime(buffer, size, "%Y-%m-%d %H:%M:%S", &date);
        return buffer;
}

static void due(const char *text, const char *zone, const char *after, const char *expected)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct cron cron;
        uint64_t next = 0;
        char buffer[32];

        assert_int_equal(cron_parse(text, &cron, &error), 0);
        assert_int_equal(cron_next(&cron, zone, at(after), &next), 0);
        assert_string_equal(shown(next, buffer, sizeof(buffer)), expected);
}

static void refused(const char *text, const char *part)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct cron cron;

        assert_int_equal(cron_parse(text, &cron, &error), -EINVAL);
        assert_non_null(strstr(error_message(&error), part));
}

static void test_fields(void **state _unused_)
{
        due("0 3 * * *", "UTC", "2026-01-01 00:00:00", "2026-01-01 03:00:00");
        due("0 3 * * *", "UTC", "2026-01-01 03:00:00", "2026-01-02 03:00:00");
        due("0 3 * * *", "UTC", "2026-01-01 02:59:59", "2026-01-01 03:00:00");
        due("* * * * *", "UTC", "2026-01-01 02:59:59", "2026-01-01 03:00:00");
        due("*/20 * * * *", "UTC", "2026-01-01 00:20:00", "2026-01-01 00:40:00");
        due("5,50-52 1 * * *", "UTC", "2026-01-01 01:50:30", "2026-01-01 01:51:00");
        due("10-40/15 * * * *", "UTC", "2026-01-01 00:26:00", "2026-01-01 00:40:00");
        due("0 0 1 jan,JUL *", "UTC", "2026-01-01 00:00:00", "2026-07-01 00:00:00");
        due("0 0 29 2 *", "UTC", "2096-03-01 00:00:00", "2104-02-29 00:00:00");
        due(" 0\t3  * * * ", "UTC", "2026-01-01 00:00:00", "2026-01-01 03:00:00");
        due("@hourly", "UTC", "2026-01-01 00:00:00", "2026-01-01 01:00:00");
        due("@daily", "UTC", "2026-12-31 23:59:59", "2027-01-01 00:00:00");
        due("@weekly", "UTC", "2026-11-27 00:00:00", "2026-11-29 00:00:00"); /* a Sunday */
        due("@yearly", "UTC", "2026-11-27 00:00:00", "2027-01-01 00:00:00");
}

static void test_weekdays(void **state _unused_)
{
        due("0 0 * * 7", "UTC", "2026-11-27 00:00:00", "2026-11-29 00:00:00");
        due("0 0 * * sun", "UTC", "2026-11-27 00:00:00", "2026-11-29 00:00:00");
        due("0 0 * * mon-fri", "UTC", "2026-11-27 00:00:00", "2026-11-30 00:00:00");
        due("0 0 * * sat-sun", "UTC", "2026-11-28 00:00:00", "2026-11-29 00:00:00");
        /* Vixie: the 13th, or a Friday. */
        due("0 0 13 * fri", "UTC", "2026-11-08 00:00:00", "2026-11-13 00:00:00");
        due("0 0 13 * fri", "UTC", "2026-11-13 00:00:00", "2026-11-20 00:00:00");
        due("0 0 13 * fri", "UTC", "2026-12-12 00:00:00", "2026-12-13 00:00:00");
        /* ... but with a *, both: each second day that is a Friday. */
        due("0 0 */2 * fri", "UTC", "2026-11-08 00:00:00", "2026-11-13 00:00:00");
        due("0 0 */2 * fri", "UTC", "2026-11-13 00:00:00", "2026-11-27 00:00:00");
}

static void test_refused(void **state _unused_)
{
        struct cron cron;
        uint64_t next;

        refused("", "five fields");
        refused("0 3 * *", "five fields");
        refused("0 3 * * * *", "five fields");
        refused("60 * * * *", "\"60\" is no minute: write a number from 0 to 59");
        refused("* 24 * * *", "hour");
        refused("* * 0 * *", "day of the month");
        refused("* * * 13 *", "month");
        refused("* * * foo *", "month");
        refused("* * * * 8", "day of the week");
        refused("5-1 * * * *", "minute");
        refused("*/0 * * * *", "minute");
        refused("5/10 * * * *", "minute");
        refused("1, * * * *", "minute");
        refused("-1 * * * *", "minute");
        refused("99999999999999999999 * * * *", "minute");
        refused("@reboot", "startup");
        refused("@often", "@hourly");
        assert_int_equal(cron_parse("0 0 30 2 *", &cron, NULL), 0);
        assert_int_equal(cron_next(&cron, "UTC", at("2026-01-01 00:00:00"), &next), -ENOENT);
}

/* Berlin: 2026-03-29 02:00 becomes 03:00 (01:00 UTC), 2026-10-25 03:00 becomes 02:00 (01:00 UTC). */
static void test_summer_time(void **state _unused_)
{
        due("0 3 * * *", "Europe/Berlin", "2026-01-01 00:00:00", "2026-01-01 02:00:00");
        due("0 3 * * *", "Europe/Berlin", "2026-07-01 00:00:00", "2026-07-01 01:00:00");
        /* skipped: 02:30 becomes 03:30, once */
        due("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00:00", "2026-03-29 01:30:00");
        due("30 2 * * *", "Europe/Berlin", "2026-03-29 01:30:00", "2026-03-30 00:30:00");
        /* each quarter of an hour goes on through it */
        due("*/15 * * * *", "Europe/Berlin", "2026-03-29 00:45:00", "2026-03-29 01:00:00");
        due("*/15 * * * *", "Europe/Berlin", "2026-03-29 01:45:00", "2026-03-29 02:00:00");
        /* twice: the first counts */
        due("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00:00", "2026-10-25 00:30:00");
        due("30 2 * * *", "Europe/Berlin", "2026-10-25 00:30:00", "2026-10-26 01:30:00");
        /* ... but of what is due in each hour both do */
        due("30 * * * *", "Europe/Berlin", "2026-10-25 00:30:00", "2026-10-25 01:30:00");
        due("30 * * * *", "Europe/Berlin", "2026-10-25 01:30:00", "2026-10-25 02:30:00");
        /* a change at midnight */
        due("0 0 * * *", "America/Havana", "2026-03-07 12:00:00", "2026-03-08 05:00:00");
        due("30 0 * * *", "America/Havana", "2026-03-07 12:00:00", "2026-03-08 05:30:00");
        /* a day that never was */
        due("0 12 30 12 *", "Pacific/Apia", "2011-12-29 00:00:00", "2011-12-30 22:00:00");
}

/* What is due in each minute is so minute by minute, in all zones and at all changes. */
static void test_each_minute(void **state _unused_)
{
        static const char *const zone[] = {"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns",
                                           "Asia/Kathmandu"};
        /* Under valgrind, what is around two changes, of which the second has an hour twice. */
        const uint64_t from = at(under_valgrind() ? "2026-03-29 00:45:00" : "2026-03-28 20:00:00"),
                       to = at(under_valgrind() ? "2026-03-29 01:30:00" : "2026-03-29 04:00:00");
        const uint64_t autumn_from = at(under_valgrind() ? "2026-10-24 23:55:00" : "2026-10-24 22:00:00"),
                       autumn_to = at(under_valgrind() ? "2026-10-25 02:05:00" : "2026-10-25 04:00:00");
        struct cron cron;

        assert_int_equal(cron_parse("* * * * *", &cron, NULL), 0);
        for (size_t i = 0; i < (under_valgrind() ? 2 : ELEMENTS(zone)); i++)
                for (uint64_t after = from, next; after < to; after = next) {
                        assert_int_equal(cron_next(&cron, zone[i], after, &next), 0);
                        assert_int_equal(next - after, USEC_PER_MINUTE);
                }
        for (uint64_t after = autumn_from, next; after < autumn_to; after = next) {
                assert_int_equal(cron_next(&cron, "Europe/Berlin", after, &next), 0);
                assert_int_equal(next - after, USEC_PER_MINUTE);
        }
}

static void test_zones(void **state _unused_)
{
        assert_true(cron_zone_exists("UTC"));
        assert_true(cron_zone_exists("Europe/Berlin"));
        assert_false(cron_zone_exists("Europe/Berlim"));
        assert_false(cron_zone_exists("Europe"));
        assert_false(cron_zone_exists("../../../etc/passwd"));
        assert_false(cron_zone_exists("/etc/localtime"));
}

static void test_environment(void **state _unused_)
{
        assert_int_equal(setenv("TZ", "Asia/Tokyo", 1), 0);
        due("0 3 * * *", "Europe/Berlin", "2026-01-01 00:00:00", "2026-01-01 02:00:00");
        assert_string_equal(getenv("TZ"), "Asia/Tokyo");
        assert_int_equal(unsetenv("TZ"), 0);
        due("0 3 * * *", "Europe/Berlin", "2026-01-01 00:00:00", "2026-01-01 02:00:00");
        assert_null(getenv("TZ"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fields),      cmocka_unit_test(test_weekdays),
                cmocka_unit_test(test_refused),     cmocka_unit_test(test_summer_time),
                cmocka_unit_test(test_each_minute), cmocka_unit_test(test_zones),
                cmocka_unit_test(test_environment),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
