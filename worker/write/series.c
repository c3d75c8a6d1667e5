/* SPDX-License-Identifier: Apache-2.0 */
/* See series.h. A few hundred entries, looked through one by one: an Event is rare and costs a request. */
#include "worker/write/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object/keyed-hash.h"

/* The spam guard's bucket of one object, or one namespace. */
struct bucket {
        uint64_t whose, tokens, refilled, last;
};

struct series_table {
        struct series series[SERIES_MAX];
        struct bucket bucket[SERIES_MAX], of_place[SERIES_MAX];
};

int series_table_new(struct series_table **ret)
{
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

void series_table_free(struct series_table *table)
{
        free(table);
}

/* Never 0, which marks a free entry. */
static uint64_t identity_of(const char *const *part, size_t count)
{
        struct siphash hash = keyed_hash_of(HASHED_EVENT);

        for (size_t i = 0; i < count; i++)
                keyed_hash_add(&hash, part[i], strlen(part[i]));
        return keyed_hash_end(hash, NULL, 0);
}

/* How much may come at once, and how soon one more may. */
struct pace {
        uint64_t burst, refill_usec;
};

/* The bucket of an object or a namespace, filled by the time that has passed; a new one replaces the one that was not used
 * for longest. */
static struct bucket *find_bucket(struct bucket table[SERIES_MAX], const struct pace *pace, uint64_t whose,
                                  uint64_t now)
{
        struct bucket *found = NULL, *oldest = &table[0];
        uint64_t earned;

        for (size_t i = 0; i < SERIES_MAX && !found; i++) {
                if (table[i].whose == whose)
                        found = &table[i];
                if (table[i].last < oldest->last)
                        oldest = &table[i];
        }
        if (!found) {
                *oldest = (struct bucket){.whose = whose, .tokens = pace->burst, .refilled = now};
                found = oldest;
        }
        earned = now > found->refilled ? (now - found->refilled) / pace->refill_usec : 0;
        found->last = now;
        found->refilled = now < found->refilled ? now : found->refilled + earned * pace->refill_usec;
        found->tokens = found->tokens + earned < pace->burst ? found->tokens + earned : pace->burst;
        return found;
}

static bool take_token(struct series_table *table, uint64_t place, uint64_t object, uint64_t now)
{
        static const struct pace of_object = {SERIES_BURST, SERIES_REFILL_USEC},
                                 of_place = {SERIES_NAMESPACE_BURST, SERIES_NAMESPACE_REFILL_USEC};
        struct bucket *own = find_bucket(table->bucket, &of_object, object, now),
                      *common = find_bucket(table->of_place, &of_place, place, now);

        if (own->tokens == 0 || common->tokens == 0)
                return false;
        own->tokens--;
        common->tokens--;
        return true;
}

static struct series *look_up(struct series_table *table, uint64_t identity)
{
        for (size_t i = 0; i < SERIES_MAX; i++)
                if (table->series[i].identity == identity)
                        return &table->series[i];
        return NULL;
}

static struct series *replace_oldest(struct series_table *table, uint64_t object, uint64_t identity)
{
        struct series *oldest = &table->series[0];

        for (size_t i = 0; i < SERIES_MAX; i++)
                if (table->series[i].last < oldest->last)
                        oldest = &table->series[i];
        *oldest = (struct series){.object = object, .identity = identity};
        return oldest;
}

static bool is_due(const struct series *series, uint64_t now)
{
        return series->count > series->written && now > series->last_written + SERIES_REFRESH_USEC;
}

uint64_t series_place(const char *key)
{
        const char *slash = strchr(key, '/');

        return keyed_hash_end(keyed_hash_of(HASHED_EVENT), key, slash ? (size_t)(slash - key) : 0);
}

uint64_t series_object(const char *uid)
{
        return identity_of(&uid, 1);
}

uint64_t series_identity(const char *uid, const char *type, const char *reason, const char *action,
                         const char *about)
{
        const char *const part[] = {uid, type, reason, action, about};

        return identity_of(part, ELEMENTS(part));
}

struct series *series_find(struct series_table *table, uint64_t identity, uint64_t now)
{
        struct series *series = look_up(table, identity);

        return series && series->count > 0 && now <= series->last + SERIES_FINISH_USEC ? series : NULL;
}

enum series_verdict series_note(struct series_table *table, uint64_t place, uint64_t object,
                                uint64_t identity, uint64_t count, uint64_t now, struct series **ret)
{
        struct series *series = look_up(table, identity);
        bool is_new;

        *ret = NULL;
        if (series && series->count > 0 && now > series->last + SERIES_FINISH_USEC)
                *series = (struct series){.object = object, .identity = identity};
        is_new = !series || series->count == 0;
        /* Repeats lead to few writes anyway: only new series could be spam. */
        if (is_new && !take_token(table, place, object, now))
                return SERIES_DROPPED;
        if (!series)
                series = replace_oldest(table, object, identity);
        series->last = now;
        series->count += count;
        *ret = series;
        if (is_new)
                return SERIES_CREATE;
        return series->count >= 2 * series->written || is_due(series, now) ? SERIES_WRITE : SERIES_COUNTED;
}

struct series *series_due(struct series_table *table, uint64_t now)
{
        for (size_t i = 0; i < SERIES_MAX; i++)
                if (table->series[i].identity != 0 && is_due(&table->series[i], now))
                        return &table->series[i];
        return NULL;
}

void series_written(struct series *series, uint64_t now)
{
        series->written = series->count;
        series->last_written = now;
}

void series_forget(struct series_table *table, const char *namespace_name, const char *name)
{
        for (size_t i = 0; i < SERIES_MAX; i++)
                if (strcmp(table->series[i].name, name) == 0 &&
                    strcmp(table->series[i].namespace_name, namespace_name) == 0)
                        table->series[i] = (struct series){0};
}
