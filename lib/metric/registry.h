/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Metrics of handlers, as they are shown beside the operator's own. All is bounded: what would be one too
 * many is dropped, and the caller reports that. Watches share the room equally, so that none takes the place
 * of another. A name means one thing, whichever watch uses it: with another action, or other buckets, it is
 * dropped. It is free again when nothing is left of it.
 */
#include "base/text.h"
#include "ipc/message.h"

/* The bounds of all watches together (MAX), of which each watch has an equal share, but at least MIN. */
#define REGISTRY_FAMILIES_MAX 200
#define REGISTRY_FAMILIES_MIN 10
#define REGISTRY_SAMPLES_MAX  10000 /* lines; a histogram has one for each bucket, and three more */
#define REGISTRY_SAMPLES_MIN  100

struct registry;

/* Why something was dropped. */
enum metric_drop {
        METRIC_TAKEN,
        METRIC_CLASH,    /* the name is another metric's */
        METRIC_TOO_MANY, /* names or series */
        METRIC_OVERFLOW, /* the sum would be no number any more */
        METRIC_DROP_COUNT
};
const char *metric_drop_name(enum metric_drop drop); /* as a label */

int registry_new(struct registry **ret); /* 0, -ENOMEM */
void registry_free(struct registry *registry);
DEFINE_CLEANUP(struct registry *, registry_free);

/* How many names, and how many samples, each of so many watches may have (watches > 0). A name counts for the watch that was the
 * first to use it. */
struct registry_share {
        size_t families, samples;
};
struct registry_share registry_share(size_t watches);

/* -EINVAL: it is not as metric-rule.h demands; -ENOMEM; or enum metric_drop. */
int registry_take(struct registry *registry, const char *watch, size_t watches,
                  const struct record_metric *metric);
size_t registry_samples(const struct registry *registry);
void registry_write(const struct registry *registry, struct text *out); /* OpenMetrics, without an end */
