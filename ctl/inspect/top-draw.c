/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/inspect/top-draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "ctl/answer/members.h"

/* ---- lines */

enum style { PLAIN, BOLD, RED, REVERSE };

static const char *style_code(enum style style)
{
        static const char *const code[] = {"", "\033[1m", "\033[31m", "\033[7m"};

        return code[style];
}

/* So much of it as fits, and nothing that a terminal would act on. */
static void append_clipped(struct text *text, const char *string, size_t columns)
{
        size_t left = strlen(string);

        while (left > 0 && columns-- > 0) {
                size_t size = utf8_sequence(string, left);

                if (size == 0 || (unsigned char)*string < ' ' || *string == 0x7f) {
                        text_append_string(text, "?");
                        size = 1;
                } else {
                        text_append(text, string, size);
                }
                string += size;
                left -= size;
        }
}

static void line(struct picture *picture, enum style style, const char *format, ...) _printf_(3, 4);
static void line(struct picture *picture, enum style style, const char *format, ...)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        va_list arguments;

        if (picture->row == picture->rows)
                return;
        picture->row++;
        va_start(arguments, format);
        text_vprintf(&text, format, arguments);
        va_end(arguments);
        if (picture->colour)
                text_append_string(&picture->text, style_code(style));
        append_clipped(&picture->text, text.data ? text.data : "", picture->columns);
        if (picture->colour && style != PLAIN)
                text_append_string(&picture->text, "\033[0m");
        text_append_string(&picture->text, picture->line_end);
}

static size_t rows_left(const struct picture *picture)
{
        return picture->rows - picture->row;
}

/* ---- numbers */

static const cJSON *list(const cJSON *status, const char *name)
{
        return cJSON_GetObjectItemCaseSensitive(status, name);
}

static const cJSON *same_watch(const cJSON *status, const cJSON *watch)
{
        const cJSON *item;

        cJSON_ArrayForEach(item,
                           list(status, "watches")) if (strcmp(ctl_text(item, "name"),
                                                               ctl_text(watch, "name")) == 0) return item;
        return NULL;
}

/* Since the answer before; from the beginning where there is none, or the operator has started anew. */
static uint64_t grown(const cJSON *watch, const cJSON *before, const char *name)
{
        uint64_t value = ctl_number(watch, name), old = ctl_number(before, name);

        return value >= old ? value - old : value;
}

static uint64_t sum(const cJSON *status, const char *name)
{
        const cJSON *watch;
        uint64_t result = 0;

        cJSON_ArrayForEach(watch, list(status, "watches")) result += ctl_number(watch, name);
        return result;
}

static uint64_t sum_grown(const cJSON *now, const cJSON *before, const char *name)
{
        uint64_t value = sum(now, name), old = sum(before, name);

        return value >= old ? value - old : value;
}

static double rate(uint64_t count, uint64_t usec)
{
        return usec > 0 ? (double)count * (double)USEC_PER_SEC / (double)usec : 0;
}

/* ---- sections */

static void draw_head(struct picture *picture, const cJSON *now)
{
        char buffer[64], clock[16] = "";
        time_t seconds = time(NULL);
        struct tm tm;

        if (localtime_r(&seconds, &tm))
                strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        line(picture, BOLD, "%s  %s, up %s, %" PRIu64 " %s  %s", ctl_text(now, "operator"),
             ctl_text(now, "phase"), ctl_since(now, "startedAt", buffer, sizeof(buffer)),
             ctl_number(now, "restarts"), counted(ctl_number(now, "restarts"), "restart", "restarts"),
             clock);
}

static void draw_sums(struct picture *picture, const cJSON *now, const cJSON *before, uint64_t usec)
{
        char rates[64] = "";

        if (before)
                snprintf(rates, sizeof(rates), "%.1f runs/s, %.1f fail/s; ",
                         rate(sum_grown(now, before, "runs"), usec),
                         rate(sum_grown(now, before, "failed"), usec));
        line(picture, PLAIN,
             "%s%" PRIu64 " queued, %" PRIu64 " running, %" PRIu64 " waiting, %" PRIu64
             " failing, %d in quarantine",
             rates, sum(now, "queued"), sum(now, "running"), sum(now, "waiting"), sum(now, "failing"),
             cJSON_GetArraySize(list(now, "quarantine")));
}

static void draw_watch(struct picture *picture, const cJSON *watch, const cJSON *before, uint64_t usec)
{
        bool paused = ctl_number(watch, "pausedSince") > 0, trouble = ctl_text(watch, "reason")[0] != '\0';
        uint64_t runs = grown(watch, before, "runs"), time = grown(watch, before, "runTime");
        char mean[64] = "-", per_second[32] = "-";

        if (before)
                snprintf(per_second, sizeof(per_second), "%.1f", rate(runs, usec));
        if (runs == 0) {
                runs = ctl_number(watch, "runs");
                time = ctl_number(watch, "runTime");
        }
        if (runs > 0)
                ctl_duration(time / runs, mean, sizeof(mean));
        line(picture, trouble || paused ? RED : PLAIN,
             "%-20s %-9s %8" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7s %8s",
             ctl_text(watch, "name"), paused ? "paused" : ctl_text(watch, "state"),
             ctl_number(watch, "objects"), ctl_number(watch, "queued"), ctl_number(watch, "running"),
             ctl_number(watch, "waiting"), ctl_number(watch, "failing"), per_second, mean);
}

/* Up to a third of the rows; the rest is for what hurts. */
static void draw_watches(struct picture *picture, const cJSON *now, const cJSON *before, uint64_t usec)
{
        size_t most = picture->rows / 3, drawn = 0;
        const cJSON *watch;

        line(picture, PLAIN, "%s", "");
        line(picture, REVERSE, "%-20s %-9s %8s %7s %7s %7s %7s %7s %8s", "WATCH", "STATE", "OBJECTS",
             "QUEUED", "RUNNING", "WAITING", "FAILING", "RUNS/S", "MEAN");
        cJSON_ArrayForEach(watch, list(now, "watches")) if (drawn++ < most)
                draw_watch(picture, watch, same_watch(before, watch), usec);
        if (drawn > most)
                line(picture, PLAIN, "... and %zu more %s", drawn - most,
                     counted(drawn - most, "watch", "watches"));
}

static void draw_running(struct picture *picture, const cJSON *now, size_t most)
{
        const cJSON *worker, *longest;
        uint64_t below = UINT64_MAX;
        char buffer[64];

        /* By age; there are few workers. */
        for (size_t drawn = 0; drawn < most; drawn++) {
                longest = NULL;
                cJSON_ArrayForEach(worker, list(now, "workers"))
                {
                        uint64_t age = ctl_number(worker, "runningFor");

                        if (age > 0 && age < below && (!longest || age > ctl_number(longest, "runningFor")))
                                longest = worker;
                }
                if (!longest)
                        return;
                below = ctl_number(longest, "runningFor");
                line(picture, PLAIN, "%9s  %s  %s  runs in worker %" PRIu64,
                     ctl_duration(below, buffer, sizeof(buffer)), ctl_text(longest, "key"),
                     ctl_text(longest, "watch"), ctl_number(longest, "index"));
        }
}

static void draw_slowest(struct picture *picture, const cJSON *now, size_t most)
{
        char took[64], ago[64];
        size_t drawn = 0;
        const cJSON *run;

        line(picture, PLAIN, "%s", "");
        line(picture, REVERSE, "%9s  %s", "SLOWEST", "of what runs, then of the last ten minutes");
        draw_running(picture, now, most / 2);
        cJSON_ArrayForEach(run, list(now, "slowest")) if (drawn++ < most / 2)
                line(picture, PLAIN, "%9s  %s  %s  %s, %s ago",
                     ctl_duration(ctl_number(run, "took"), took, sizeof(took)), ctl_text(run, "key"),
                     ctl_text(run, "watch"), ctl_text(run, "result"),
                     ctl_since(run, "endedAt", ago, sizeof(ago)));
}

static void draw_failing(struct picture *picture, const cJSON *now)
{
        const cJSON *item;
        char next[64];

        line(picture, PLAIN, "%s", "");
        line(picture, REVERSE, "%9s  %s", "FAILING",
             "the worst first: given up, refused by the server, by attempts");
        cJSON_ArrayForEach(item, list(now, "failing"))
                line(picture, ctl_is(item, "permanent") ? RED : PLAIN, "%9s  %s  %s  %" PRIu64 "x: %s",
                     ctl_is(item, "permanent") ? "never" : ctl_until(item, "next", next, sizeof(next)),
                     ctl_text(item, "key"), ctl_text(item, "watch"), ctl_number(item, "attempts"),
                     ctl_text(item, "lastError"));
}

void top_draw(struct picture *picture, const cJSON *now, const cJSON *before, uint64_t usec,
              const char *trouble)
{
        picture->row = 0;
        text_clear(&picture->text);
        if (!now) {
                line(picture, RED, "%s", trouble);
                return;
        }
        draw_head(picture, now);
        draw_sums(picture, now, before, usec);
        draw_watches(picture, now, before, usec);
        draw_slowest(picture, now, rows_left(picture) / 2);
        draw_failing(picture, now);
}
