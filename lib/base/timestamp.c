/* SPDX-License-Identifier: Apache-2.0 */
/* strptime() takes blanks, signs and single digits too, and days that do not exist: so this reads digit by digit. */
#include "base/timestamp.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"

/* Exactly this many digits; *p moves past them. */
static bool take_digits(const char **p, int digits, int *ret)
{
        *ret = 0;
        for (; digits > 0; digits--, (*p)++) {
                if (!is_digit(**p))
                        return false;
                *ret = *ret * 10 + (**p - '0');
        }
        return true;
}

static bool take_one_of(const char **p, char one, char other)
{
        if (**p != one && **p != other)
                return false;
        (*p)++;
        return true;
}

static bool take_date(const char **p, struct tm *tm)
{
        bool is_date = take_digits(p, 4, &tm->tm_year) && take_one_of(p, '-', '-') &&
                       take_digits(p, 2, &tm->tm_mon) && take_one_of(p, '-', '-') &&
                       take_digits(p, 2, &tm->tm_mday);

        tm->tm_year -= 1900;
        tm->tm_mon -= 1;
        return is_date && take_one_of(p, 'T', 't');
}

/* The 60th second is a leap second. */
static bool take_clock(const char **p, struct tm *tm)
{
        return take_digits(p, 2, &tm->tm_hour) && take_one_of(p, ':', ':') &&
               take_digits(p, 2, &tm->tm_min) && take_one_of(p, ':', ':') &&
               take_digits(p, 2, &tm->tm_sec) && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

static bool take_fraction(const char **p, uint64_t *ret_usec)
{
        uint64_t unit = USEC_PER_SEC;

        *ret_usec = 0;
        if (**p != '.')
                return true;
        if (!is_digit(*++*p))
                return false;
        for (; is_digit(**p); (*p)++) {
                unit /= 10;
                *ret_usec += unit * (uint64_t)(**p - '0');
        }
        return true;
}

static bool take_zone(const char **p, int *ret_seconds)
{
        int sign = **p == '-' ? -1 : 1, hours, minutes;

        *ret_seconds = 0;
        if (take_one_of(p, 'Z', 'z'))
                return true;
        if (!take_one_of(p, '+', '-') || !take_digits(p, 2, &hours) || !take_one_of(p, ':', ':') ||
            !take_digits(p, 2, &minutes) || hours > 23 || minutes > 59)
                return false;
        *ret_seconds = sign * (hours * 3600 + minutes * 60);
        return true;
}

/* timegm() makes the 2nd of March of the 30th of February. */
static bool exists(const struct tm *date)
{
        struct tm day = {.tm_year = date->tm_year, .tm_mon = date->tm_mon, .tm_mday = date->tm_mday};

        timegm(&day);
        return day.tm_mon == date->tm_mon && day.tm_mday == date->tm_mday;
}

int timestamp_parse(const char *text, uint64_t *ret_usec)
{
        struct tm tm = {0};
        uint64_t fraction;
        time_t seconds;
        int zone;

        if (!take_date(&text, &tm) || !take_clock(&text, &tm) || !take_fraction(&text, &fraction) ||
            !take_zone(&text, &zone) || *text != '\0' || !exists(&tm))
                return -EINVAL;
        seconds = timegm(&tm) - zone;
        *ret_usec = seconds >= 0 ? (uint64_t)seconds * USEC_PER_SEC + fraction : 0;
        return 0;
}
