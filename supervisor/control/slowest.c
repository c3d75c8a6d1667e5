/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/slowest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller-watch.h"

static void slowest_drop(struct slowest *slowest, size_t index)
{
        free(slowest->run[index].key);
        slowest->count--;
        memmove(&slowest->run[index], &slowest->run[index + 1],
                (slowest->count - index) * sizeof(slowest->run[0]));
}

void slowest_forget(struct slowest *slowest, uint64_t now)
{
        for (size_t i = slowest->count; i-- > 0;)
                if (now - slowest->run[i].ended > SLOWEST_WINDOW_USEC)
                        slowest_drop(slowest, i);
}

/* The index of an earlier run of the same key; the count if there is none. */
static size_t find_slow_run(const struct slowest *slowest, unsigned watch, const char *key)
{
        size_t i = 0;

        while (i < slowest->count &&
               (slowest->run[i].watch != watch || strcmp(slowest->run[i].key, key) != 0))
                i++;
        return i;
}

int slowest_note(struct slowest *slowest, unsigned watch, const char *key, const char *result,
                 uint64_t took_usec, uint64_t now)
{
        struct slow_run run = {.watch = watch, .result = result, .took_usec = took_usec, .ended = now};
        size_t place;

        slowest_forget(slowest, now);
        /* Nearly every run ends here. */
        if (slowest->count == SLOWEST_MAX && took_usec <= slowest->run[SLOWEST_MAX - 1].took_usec)
                return 0;
        place = find_slow_run(slowest, watch, key);
        if (place < slowest->count && slowest->run[place].took_usec >= took_usec)
                return 0;
        run.key = strdup(key);
        if (!run.key)
                return -ENOMEM;
        if (place < slowest->count)
                slowest_drop(slowest, place);
        else if (slowest->count == SLOWEST_MAX)
                slowest_drop(slowest, SLOWEST_MAX - 1);
        for (place = slowest->count; place > 0 && slowest->run[place - 1].took_usec < took_usec; place--)
                slowest->run[place] = slowest->run[place - 1];
        slowest->run[place] = run;
        slowest->count++;
        return 0;
}

void slowest_done(struct slowest *slowest)
{
        while (slowest->count > 0)
                slowest_drop(slowest, slowest->count - 1);
}
