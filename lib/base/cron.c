/* SPDX-License-Identifier: Apache-2.0 */
/* No C library of Debian parses crontab(5), so this is one. */
#include "base/cron.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/text.h"

#define DAY_SECONDS  86400
#define HOUR_SECONDS 3600
#define DAYS_MAX     (8 * 366 + 2) /* February 29 is eight years away, at most */
#define ALL_HOURS    ((UINT64_C(1) << 24) - 1)
#define ITEM_SIZE    32 /* bytes of the longest item of a list */

/* ---- parsing */

struct field {
        const char *title;
        unsigned min, max;
        const char *names; /* three letters each, from `first` on; NULL: it has numbers only */
        unsigned first;
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELD_COUNT };

static const struct field field_of[FIELD_COUNT] = {
        [MINUTE] = {"minute", 0, 59, NULL, 0},
        [HOUR] = {"hour", 0, 23, NULL, 0},
        [DAY] = {"day of the month", 1, 31, NULL, 0},
        [MONTH] = {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", 1},
        [WEEKDAY] = {"day of the week", 0, 7, "sunmontuewedthufrisat", 0},
};

static const struct {
        const char *name, *text;
} nickname[] = {
        {"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
        {"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
        {"@annually", "0 0 1 1 *"},
};

static int refuse_item(const struct field *field, const char *item, struct error *error)
{
        return error_set(
                error, -EINVAL,
                "\"%s\" is no %s: write a number from %u to %u%s, a range (1-5) or *, perhaps with a step (*/5), and "
                "commas between several",
                item, field->title, field->min, field->max, field->names ? ", a name of three letters" : "");
}

/* Returns where the number or the name ends; NULL if there is none. */
static const char *read_cron_number(const struct field *field, const char *text, unsigned *ret)
{
        size_t digits = strspn(text, "0123456789");
        unsigned number = 0;

        for (size_t i = 0; field->names && digits == 0 && field->names[3 * i]; i++)
                if (strncasecmp(text, field->names + 3 * i, 3) == 0) {
                        *ret = field->first + (unsigned)i;
                        return text + 3;
                }
        if (digits == 0 || digits > 3)
                return NULL;
        for (size_t i = 0; i < digits; i++)
                number = 10 * number + (unsigned)(text[i] - '0');
        *ret = number;
        return text + digits;
}

/* "*", "5" or "1-5"; "*" and "1-5" may have "/2" after them. */
static int read_cron_item(const struct field *field, const char *item, uint64_t *set, struct error *error)
{
        static const struct field step_field = {"step", 1, 999, NULL, 0};
        unsigned from = field->min, to = field->max, step = 1;
        bool is_range = item[0] == '*';
        const char *rest = is_range ? item + 1 : read_cron_number(field, item, &from);

        if (rest && !is_range) {
                to = from;
                if (*rest == '-') {
                        is_range = true;
                        rest = read_cron_number(field, rest + 1, &to);
                }
                if (field == &field_of[WEEKDAY] && to == 0 && from > 0)
                        to = 7; /* fri-sun */
        }
        if (rest && *rest == '/' && is_range)
                rest = read_cron_number(&step_field, rest + 1, &step);
        if (!rest || *rest || step == 0 || from < field->min || to > field->max || from > to)
                return refuse_item(field, item, error);
        for (unsigned number = from; number <= to; number += step)
                *set |= UINT64_C(1) << number;
        return 0;
}

static int read_field(const struct field *field, const char *text, size_t size, uint64_t *set,
                      struct error *error)
{
        const char *end = text + size;

        for (;;) {
                const char *comma = memchr(text, ',', (size_t)(end - text));
                size_t length = (size_t)((comma ? comma : end) - text);
                char item[ITEM_SIZE];
                int r;

                snprintf(item, sizeof(item), "%.*s", (int)(length < ITEM_SIZE ? length : ITEM_SIZE - 1),
                         text);
                r = read_cron_item(field, item, set, error);
                if (r < 0 || !comma)
                        return r;
                text = comma + 1;
        }
}

static const char *spelled_out(const char *text)
{
        for (size_t i = 0; i < ELEMENTS(nickname); i++)
                if (strcmp(nickname[i].name, text) == 0)
                        return nickname[i].text;
        return text;
}

static int refuse_count(const char *text, struct error *error)
{
        if (text[0] == '@')
                return error_set(
                        error, -EINVAL,
                        "\"%s\" is none of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually%s",
                        text,
                        strcmp(text, "@reboot") == 0 ? "; `startup` is for what runs at each start" : "");
        return error_set(
                error, -EINVAL,
                "\"%s\" has not five fields (minute, hour, day of the month, month, day of the week)", text);
}

int cron_parse(const char *text, struct cron *ret, struct error *error)
{
        const char *rest = spelled_out(text);
        uint64_t set[FIELD_COUNT] = {0};
        bool star[FIELD_COUNT] = {false};
        size_t count = 0;

        rest += strspn(rest, " \t");
        while (*rest && *rest != '@') {
                size_t size = strcspn(rest, " \t");
                int r = count < FIELD_COUNT ? read_field(&field_of[count], rest, size, &set[count], error)
                                            : 0;

                if (r < 0)
                        return r;
                if (count < FIELD_COUNT)
                        star[count] = *rest == '*';
                count++;
                rest += size;
                rest += strspn(rest, " \t");
        }
        if (count != FIELD_COUNT || *rest)
                return refuse_count(text, error);
        set[WEEKDAY] |= set[WEEKDAY] >> 7 & 1; /* Sunday is 0 and 7 */
        *ret = (struct cron){set[MINUTE],  set[HOUR], set[DAY],     set[MONTH],
                             set[WEEKDAY], star[DAY], star[WEEKDAY]};
        return 0;
}

/* ---- zones */

static bool is_utc(const char *zone)
{
        return zone[0] == '\0' || strcmp(zone, "UTC") == 0;
}

/* A name that leads out of the folder is no zone. */
bool cron_zone_exists(const char *zone)
{
        _cleanup_free_ char *path = format_string("%s/%s", getenv("TZDIR") ?: "/usr/share/zoneinfo", zone);
        _cleanup_close_ int file = -1;
        char magic[4];

        if (is_utc(zone))
                return true;
        if (!path || zone[0] == '/' || strstr(zone, ".."))
                return false;
        file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        return file >= 0 && read(file, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
               memcmp(magic, "TZif", sizeof(magic)) == 0;
}

/* libc knows one zone at a time. Returns what TZ was, for set_zone() again; NULL: it was not set. */
static char *set_zone(const char *zone)
{
        const char *before = getenv("TZ");
        char *kept = before ? strdup(before) : NULL;

        if (zone)
                (void)setenv("TZ", zone, 1);
        else
                (void)unsetenv("TZ");
        tzset();
        return kept;
}

/* Seconds that local time is ahead of UTC at this moment. */
static int64_t offset_at(int64_t time)
{
        const time_t moment = (time_t)time;
        struct tm local;

        return localtime_r(&moment, &local) ? (int64_t)local.tm_gmtoff : 0;
}

/* ---- the next time */

struct search {
        const struct cron *cron;
        int64_t after, best; /* seconds; best: 0 = none yet */
};

/* local: seconds of a clock on the wall, counted as if it showed UTC. */
static bool is_day(const struct cron *cron, int64_t local)
{
        const time_t time = (time_t)local;
        struct tm date;
        bool day, weekday;

        if (!gmtime_r(&time, &date) || !(cron->month >> (date.tm_mon + 1) & 1))
                return false;
        day = cron->day >> date.tm_mday & 1;
        weekday = cron->weekday >> date.tm_wday & 1;
        return cron->any_day || cron->any_weekday ? day && weekday : day || weekday;
}

static void offer_moment(struct search *search, int64_t moment)
{
        if (moment > search->after && (search->best == 0 || moment < search->best))
                search->best = moment;
}

/* before, after: the offsets on both sides of a change of the clocks nearby. */
static void offer_local(struct search *search, int64_t local, int64_t before, int64_t after)
{
        int64_t first = local - before, second = local - after;
        bool first_is = offset_at(first) == before, second_is = offset_at(second) == after;

        if (first_is || !second_is) /* or the clock skips it: as if it had not been changed */
                offer_moment(search, first);
        if (second_is && (!first_is || search->cron->hour == ALL_HOURS))
                offer_moment(search, second);
}

static void offer_day(struct search *search, int64_t midnight)
{
        for (unsigned hour = 0; hour < 24; hour++) {
                int64_t local = midnight + hour * HOUR_SECONDS, before, after;

                if (!(search->cron->hour >> hour & 1))
                        continue;
                before = offset_at(local - DAY_SECONDS);
                after = offset_at(local + DAY_SECONDS);
                for (unsigned minute = 0; minute < 60; minute++)
                        if (search->cron->minute >> minute & 1)
                                before == after ? offer_moment(search, local + minute * 60 - before)
                                                : offer_local(search, local + minute * 60, before, after);
        }
}

/* A day more than is needed on both sides: where clocks change at midnight, days overlap. */
static int64_t find_next(const struct cron *cron, int64_t after)
{
        struct search search = {.cron = cron, .after = after};
        int64_t today = (after + offset_at(after)) / DAY_SECONDS;

        for (int64_t day = today - 1; day < today + DAYS_MAX; day++) {
                bool was_found = search.best > 0;

                if (is_day(cron, day * DAY_SECONDS))
                        offer_day(&search, day * DAY_SECONDS);
                if (was_found)
                        break;
        }
        return search.best;
}

int cron_next(const struct cron *cron, const char *zone, uint64_t after_usec, uint64_t *ret_usec)
{
        _cleanup_free_ char *before = set_zone(is_utc(zone) ? "UTC0" : zone);
        int64_t found = find_next(cron, (int64_t)(after_usec / USEC_PER_SEC));

        free(set_zone(before));
        if (found == 0)
                return -ENOENT;
        *ret_usec = (uint64_t)found * USEC_PER_SEC;
        return 0;
}
