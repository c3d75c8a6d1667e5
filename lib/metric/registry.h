/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Metrics of handlers, as they are shown beside the operator's own. All is bounded: what would be one too many is dropped, and
 * the caller tells of it. A name means one thing, whichever watch uses it: with another action, or other buckets, it is dropped.
 */
#include "base/text.h"
#include "ipc/message.h"

#define REGISTRY_FAMILIES_MAX 200
#define REGISTRY_SAMPLES_MAX  10000 /* lines; a histogram has one for each bucket, and three more */

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

/* -EINVAL: it is not as metric-rule.h demands; -ENOMEM; or enum metric_drop. */
int registry_take(struct registry *registry, const char *watch, const struct record_metric *metric);
size_t registry_samples(const struct registry *registry);
void registry_write(const struct registry *registry, struct text *out); /* OpenMetrics, without an end */
