/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"

static const struct unit {
        const char *name;
        uint64_t usec;
} unit[] = {
        {"d", 24 * USEC_PER_HOUR}, {"h", USEC_PER_HOUR},  {"m", USEC_PER_MINUTE},
        {"s", USEC_PER_SEC},       {"ms", USEC_PER_MSEC}, {"us", 1},
};

static const struct unit *unit_find(const char *name, size_t length)
{
        for (size_t i = 0; i < ELEMENTS(unit); i++)
                if (strlen(unit[i].name) == length && memcmp(unit[i].name, name, length) == 0)
                        return &unit[i];
        return NULL;
}

/* One <number><unit>; *position moves past it. The fraction is kept in millionths. */
static int parse_part(const char **position, uint64_t *total)
{
        const char *p = *position, *name;
        const struct unit *u;
        uint64_t whole = 0, fraction = 0, scale = 1000000, part;

        if (!is_digit(*p))
                return -EINVAL;
        for (; is_digit(*p); p++)
                if (__builtin_mul_overflow(whole, UINT64_C(10), &whole) ||
                    __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
                        return -ERANGE;
        if (*p == '.') {
                if (!is_digit(*++p))
                        return -EINVAL;
                for (; is_digit(*p); p++) {
                        scale /= 10;
                        fraction += scale * (uint64_t)(*p - '0');
                }
        }
        for (name = p; *p >= 'a' && *p <= 'z'; p++)
                ;
        u = unit_find(name, (size_t)(p - name));
        if (!u)
                return -EINVAL;
        if (__builtin_mul_overflow(whole, u->usec, &part) ||
            __builtin_add_overflow(part, fraction * (u->usec / 1000) / 1000, &part) ||
            __builtin_add_overflow(*total, part, total) || *total == USEC_INFINITY)
                return -ERANGE;
        *position = p;
        return 0;
}

int duration_parse(const char *string, uint64_t *ret_usec)
{
        uint64_t total = 0;

        if (strcmp(string, "0") == 0) {
                *ret_usec = 0;
                return 0;
        }
        do {
                int r = parse_part(&string, &total);

                if (r < 0)
                        return r;
        } while (*string);
        *ret_usec = total;
        return 0;
}

const char *duration_format(uint64_t usec, char *buffer, size_t size)
{
        size_t used = 0;

        if (usec == 0 || usec == USEC_INFINITY) {
                snprintf(buffer, size, "%s", usec == 0 ? "0s" : "never");
                return buffer;
        }
        for (size_t i = 0; i < ELEMENTS(unit) && usec > 0 && used < size; i++) {
                uint64_t count = usec / unit[i].usec;

                if (count == 0)
                        continue;
                usec %= unit[i].usec;
                used += (size_t)snprintf(buffer + used, size - used, "%llu%s", (unsigned long long)count,
                                         unit[i].name);
        }
        return buffer;
}

static uint64_t clock_usec(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_boottime_usec(void)
{
        return clock_usec(CLOCK_BOOTTIME);
}

uint64_t clock_monotonic_usec(void)
{
        return clock_usec(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_usec(void)
{
        return clock_usec(CLOCK_REALTIME);
}

const uint64_t histogram_bound_usec[HISTOGRAM_BUCKETS] = {
        100,     1000,    5000,     10000,    50000,    100000,    500000,
        1000000, 5000000, 10000000, 30000000, 60000000, 300000000, 600000000,
};

void histogram_add(struct histogram *histogram, uint64_t usec)
{
        histogram->count++;
        histogram->sum_usec += usec;
        for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
                if (usec <= histogram_bound_usec[i]) {
                        histogram->bucket[i]++;
                        return;
                }
}
