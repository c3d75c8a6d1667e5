/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series are in the list of their family, as that is how they are written, and in a hash table, in which a
 * run finds them. Nothing of a family changes but its series, and it goes with the last of them. What a
 * watch has is counted; a watch that was taken out of the configuration keeps what it has until the next
 * start.
 */
#include "metric/registry.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/short-hash.h"
#include "metric/metric-rule.h"

#define PLACES 4096 /* of the hash table */

struct holder {
        struct holder *next;
        struct registry_share has;
        char watch[];
};

struct series {
        struct holder *holder;
        struct series *chain;           /* in its place of the table */
        struct series *next, *previous; /* of its family */
        uint64_t hash, count;
        double value;     /* of a histogram the sum */
        uint64_t *bucket; /* of a histogram, not cumulative; NULL */
        char labels[];    /* with that of the watch */
};

struct family {
        struct family *next;
        struct holder *holder;          /* was the first to use it */
        char name[METRIC_NAME_MAX + 1]; /* of a counter without _total */
        enum metric_action action;
        double bound[METRIC_BUCKETS_MAX];
        size_t bound_count;
        struct series *first, *last;
};

struct registry {
        struct family *first; /* in the order in which they came */
        struct holder *holder;
        size_t samples;
        struct series *place[PLACES];
};

/* As client libraries of Prometheus have them, for durations in seconds. */
#define DEFAULT_BUCKETS "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10"

const char *metric_drop_name(enum metric_drop drop)
{
        static const char *const name[] = {"", "clash", "too_many", "overflow"};

        assert(drop < METRIC_DROP_COUNT);
        return name[drop];
}

int registry_new(struct registry **ret)
{
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

static void series_free(struct series *series)
{
        free(series->bucket);
        free(series);
}

void registry_free(struct registry *registry)
{
        if (!registry)
                return;
        while (registry->first) {
                struct family *family = registry->first;

                while (family->first) {
                        struct series *series = family->first;

                        family->first = series->next;
                        series_free(series);
                }
                registry->first = family->next;
                free(family);
        }
        while (registry->holder) {
                struct holder *next = registry->holder->next;

                free(registry->holder);
                registry->holder = next;
        }
        free(registry);
}

/* ---- what watches have */

static size_t share_part(size_t max, size_t min, size_t watches)
{
        return max / watches > min ? max / watches : min;
}

struct registry_share registry_share(size_t watches)
{
        assert(watches > 0);
        return (struct registry_share){
                .families = share_part(REGISTRY_FAMILIES_MAX, REGISTRY_FAMILIES_MIN, watches),
                .samples = share_part(REGISTRY_SAMPLES_MAX, REGISTRY_SAMPLES_MIN, watches),
        };
}

static struct holder *holder_for(struct registry *registry, const char *watch)
{
        struct holder *holder = registry->holder;
        size_t size = strlen(watch) + 1;

        while (holder && strcmp(holder->watch, watch) != 0)
                holder = holder->next;
        if (holder)
                return holder;
        holder = calloc(1, sizeof(*holder) + size);
        if (!holder)
                return NULL;
        memcpy(holder->watch, watch, size);
        holder->next = registry->holder;
        registry->holder = holder;
        return holder;
}

/* ---- families */

/* What the samples of such a family have after its name; the first is "", as the name itself is taken too. */
static const char *const *ends_of(enum metric_action action)
{
        static const char *const gauge[] = {"", NULL}, *const counter[] = {"", "_total", NULL},
                                 *const histogram[] = {"", "_bucket", "_count", "_sum", NULL};

        return action == METRIC_ADD ? counter : action == METRIC_OBSERVE ? histogram : gauge;
}

static bool is_same_span(const char *a, size_t a_size, const char *a_end, const char *b, size_t b_size,
                         const char *b_end)
{
        size_t a_more = strlen(a_end), b_more = strlen(b_end), size = a_size + a_more;

        if (size != b_size + b_more)
                return false;
        /* The longer name ends in what the other one has as its end. */
        if (a_size >= b_size)
                return memcmp(a, b, b_size) == 0 && strncmp(a + b_size, b_end, a_size - b_size) == 0 &&
                       strcmp(a_end, b_end + (a_size - b_size)) == 0;
        return is_same_span(b, b_size, b_end, a, a_size, a_end);
}

/* Two families would have samples of one name. */
static bool clash(const struct family *family, const char *name, size_t size, enum metric_action action)
{
        size_t its_size = strlen(family->name);

        for (const char *const *a = ends_of(family->action); *a; a++)
                for (const char *const *b = ends_of(action); *b; b++)
                        if (is_same_span(family->name, its_size, *a, name, size, *b))
                                return true;
        return false;
}

/* A counter's name has no _total here. */
static size_t family_name_size(const char *name)
{
        size_t size = strlen(name), total = strlen("_total");

        return size > total && strcmp(name + size - total, "_total") == 0 ? size - total : size;
}

static struct family *family_find(const struct registry *registry, const char *name, size_t size)
{
        struct family *family = registry->first;

        while (family && (strncmp(family->name, name, size) != 0 || family->name[size] != '\0'))
                family = family->next;
        return family;
}

/* With METRIC_TAKEN the caller adds a series, or family_drop(). */
static int family_add(struct registry *registry, struct holder *holder, size_t max,
                      const struct record_metric *metric, size_t size, struct family **ret)
{
        const char *buckets = metric->buckets[0] ? metric->buckets : DEFAULT_BUCKETS;
        struct family *family, **end = &registry->first;

        for (; *end; end = &(*end)->next)
                if (clash(*end, metric->name, size, metric->action))
                        return METRIC_CLASH;
        if (holder->has.families >= max)
                return METRIC_TOO_MANY;
        family = calloc(1, sizeof(*family));
        if (!family)
                return -ENOMEM;
        memcpy(family->name, metric->name, size);
        family->action = metric->action;
        if (metric->action == METRIC_OBSERVE)
                family->bound_count = metric_buckets_read(buckets, family->bound, METRIC_BUCKETS_MAX);
        family->holder = holder;
        holder->has.families++;
        *ret = *end = family;
        return METRIC_TAKEN;
}

static void family_drop(struct registry *registry, struct family *family)
{
        struct family **place = &registry->first;

        assert(!family->first);
        while (*place != family)
                place = &(*place)->next;
        *place = family->next;
        family->holder->has.families--;
        free(family);
}

/* Without buckets those of the family are meant. */
static bool fits(const struct family *family, const struct record_metric *metric)
{
        double bound[METRIC_BUCKETS_MAX];
        size_t count = metric_buckets_read(metric->buckets, bound, METRIC_BUCKETS_MAX);

        return family->action == metric->action &&
               (count == 0 || (count == family->bound_count &&
                               memcmp(bound, family->bound, count * sizeof(bound[0])) == 0));
}

static int family_for(struct registry *registry, struct holder *holder, size_t max,
                      const struct record_metric *metric, struct family **ret)
{
        size_t size = family_name_size(metric->name);

        *ret = family_find(registry, metric->name, size);
        if (*ret)
                return fits(*ret, metric) ? METRIC_TAKEN : METRIC_CLASH;
        return family_add(registry, holder, max, metric, size, ret);
}

/* ---- series */

static size_t samples_of(const struct family *family)
{
        return family->action == METRIC_OBSERVE ? family->bound_count + 3 : 1;
}

static uint64_t hash_of_series(const struct family *family, const char *labels)
{
        return XXH3_64bits_withSeed(labels, strlen(labels), (uint64_t)(uintptr_t)family);
}

static struct series **registry_find(struct registry *registry, const struct family *family,
                                     const char *labels)
{
        uint64_t hash = hash_of_series(family, labels);
        struct series **place = &registry->place[hash % PLACES];

        while (*place && ((*place)->hash != hash || strcmp((*place)->labels, labels) != 0))
                place = &(*place)->chain;
        return place;
}

static int series_add(struct registry *registry, struct family *family, struct holder *holder, size_t max,
                      const char *labels, struct series **place)
{
        size_t size = strlen(labels) + 1;
        struct series *series;

        if (holder->has.samples + samples_of(family) > max)
                return METRIC_TOO_MANY;
        series = calloc(1, sizeof(*series) + size);
        if (series && family->action == METRIC_OBSERVE)
                series->bucket = calloc(family->bound_count, sizeof(uint64_t));
        if (!series || (family->action == METRIC_OBSERVE && !series->bucket)) {
                free(series);
                return -ENOMEM;
        }
        memcpy(series->labels, labels, size);
        series->hash = hash_of_series(family, labels);
        series->previous = family->last;
        *(family->last ? &family->last->next : &family->first) = series;
        family->last = series;
        *place = series;
        series->holder = holder;
        holder->has.samples += samples_of(family);
        registry->samples += samples_of(family);
        return METRIC_TAKEN;
}

static void series_remove(struct registry *registry, struct family *family, struct series **place)
{
        struct series *series = *place;

        *place = series->chain;
        *(series->previous ? &series->previous->next : &family->first) = series->next;
        *(series->next ? &series->next->previous : &family->last) = series->previous;
        series->holder->has.samples -= samples_of(family);
        registry->samples -= samples_of(family);
        series_free(series);
        if (!family->first)
                family_drop(registry, family);
}

static int count(const struct family *family, struct series *series, double value)
{
        double sum = series->value + value;

        if (family->action == METRIC_SET)
                sum = value;
        if (!isfinite(sum))
                return METRIC_OVERFLOW;
        series->value = sum;
        series->count++;
        for (size_t i = 0; i < family->bound_count; i++)
                if (value <= family->bound[i]) {
                        series->bucket[i]++;
                        break;
                }
        return METRIC_TAKEN;
}

/* ---- from outside */

static double value_of(const struct record_metric *metric)
{
        double value;

        memcpy(&value, &metric->value, sizeof(value));
        return value;
}

static bool is_right(const struct record_metric *metric)
{
        double value = value_of(metric), bound[METRIC_BUCKETS_MAX];

        return !metric_name_problem(metric->name, metric->action) &&
               metric_labels_are_right(metric->labels) && isfinite(value) &&
               (metric->action == METRIC_SET || metric->action == METRIC_REMOVE || value >= 0) &&
               (!metric->buckets[0] ||
                (metric->action == METRIC_OBSERVE &&
                 metric_buckets_read(metric->buckets, bound, METRIC_BUCKETS_MAX) > 0));
}

static int take_away(struct registry *registry, const char *name, const char *labels)
{
        struct family *family = family_find(registry, name, family_name_size(name));
        struct series **place = family ? registry_find(registry, family, labels) : NULL;

        if (place && *place)
                series_remove(registry, family, place);
        return METRIC_TAKEN;
}

static int take_value(struct registry *registry, struct holder *holder, struct registry_share share,
                      const struct record_metric *metric, const char *labels)
{
        struct series **place;
        struct family *family;
        int r = family_for(registry, holder, share.families, metric, &family);

        if (r != METRIC_TAKEN)
                return r;
        place = registry_find(registry, family, labels);
        if (!*place)
                r = series_add(registry, family, holder, share.samples, labels, place);
        if (r == METRIC_TAKEN)
                return count(family, *place, value_of(metric));
        if (!family->first)
                family_drop(registry, family);
        return r;
}

int registry_take(struct registry *registry, const char *watch, size_t watches,
                  const struct record_metric *metric)
{
        _cleanup_text_ struct text labels = TEXT_EMPTY;
        struct holder *holder;

        if (!is_right(metric))
                return -EINVAL;
        metric_label_write(&labels, "watch", watch);
        text_printf(&labels, "%s%s", metric->labels[0] ? "," : "", metric->labels);
        if (labels.failed)
                return -ENOMEM;
        if (metric->action == METRIC_REMOVE)
                return take_away(registry, metric->name, labels.data);
        holder = holder_for(registry, watch);
        return holder ? take_value(registry, holder, registry_share(watches), metric, labels.data) : -ENOMEM;
}

size_t registry_samples(const struct registry *registry)
{
        return registry->samples;
}

static void write_histogram_series(const struct family *family, const struct series *series,
                                   struct text *out)
{
        uint64_t below = 0;

        for (size_t i = 0; i < family->bound_count; i++) {
                below += series->bucket[i];
                text_printf(out, "%s_bucket{%s,le=\"", family->name, series->labels);
                metric_number_write(out, family->bound[i]);
                text_printf(out, "\"} %" PRIu64 "\n", below);
        }
        text_printf(out, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n%s_count{%s} %" PRIu64 "\n%s_sum{%s} ",
                    family->name, series->labels, series->count, family->name, series->labels, series->count,
                    family->name, series->labels);
        metric_number_write(out, series->value);
        text_append_string(out, "\n");
}

static void write_series(const struct family *family, const struct series *series, struct text *out)
{
        if (family->action == METRIC_OBSERVE) {
                write_histogram_series(family, series, out);
                return;
        }
        text_printf(out, "%s%s{%s} ", family->name, family->action == METRIC_ADD ? "_total" : "",
                    series->labels);
        metric_number_write(out, series->value);
        text_append_string(out, "\n");
}

void registry_write(const struct registry *registry, struct text *out)
{
        for (const struct family *family = registry->first; family; family = family->next) {
                text_printf(out, "# TYPE %s %s\n# HELP %s Of a handler.\n", family->name,
                            family->action == METRIC_ADD       ? "counter"
                            : family->action == METRIC_OBSERVE ? "histogram"
                                                               : "gauge",
                            family->name);
                for (const struct series *series = family->first; series; series = series->next)
                        write_series(family, series, out);
        }
}
