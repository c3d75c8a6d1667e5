/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Times of crontab(5): five fields (minute, hour, day of the month, month, day of the week), each a list of numbers, ranges
 * and steps; months and days of the week also by name; or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.
 * Where both the day of the month and the day of the week are restricted (neither begins with *), a day that fits one of them
 * is meant, as in Vixie's cron.
 *
 * Times are local to a zone of the system's tzdata. A time of day that summer time skips means what it would have meant without
 * the change: 02:30 becomes 03:30. A time of day that comes twice means the first, except where every hour is meant.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cron {
        uint64_t minute; /* bit n: number n is in it */
        uint64_t hour, day, month, weekday;
        bool any_day, any_weekday; /* the field begins with * */
};

/* 0; -EINVAL with the reason in *error; -ENOMEM. */
int cron_parse(const char *text, struct cron *ret, struct error *error);

/* Whether the system's tzdata has the zone ("Europe/Berlin"); "UTC" needs none. */
bool cron_zone_exists(const char *zone);

/* The first time after this one; both in microseconds of CLOCK_REALTIME. Sets the environment's TZ while it
 * runs. 0; -ENOENT: there is none in the next eight years. */
int cron_next(const struct cron *cron, const char *zone, uint64_t after_usec, uint64_t *ret_usec);
