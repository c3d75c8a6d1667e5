/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer's `metrics`: the operator shows them beside its own. Names, labels and bounds are those of metric/metric-rule.h. */
#include "worker/run-state.h"

/* 0, or -EINVAL with the place of what is wrong. */
int metrics_check(const cJSON *list, struct error *error);
/* One of them, for the supervisor: what metrics_check() has accepted, registry_take() knows. Strings of `ret` belong to the list and
 * to the two texts. 0, -ENOMEM. */
int measured_read(const cJSON *item, struct record_metric *ret, struct text *labels, struct text *buckets);
/* Tells the supervisor what the run's answer has, if anything. 0, or what child_send() returned. */
int measured_tell(const struct run *run);
