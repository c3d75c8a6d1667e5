/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules for names of handlers' metrics, and how labels and bounds are written. A worker checks them to
 * tell the handler's author what is wrong. The supervisor checks them again, because a worker reads foreign
 * input.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "ipc/message.h"

#define METRIC_ITEMS_MAX   100 /* in one answer */
#define METRIC_NAME_MAX    100
#define METRIC_LABELS_MAX  8   /* of one series, beside `watch` */
#define METRIC_LABELS_SIZE 512 /* of all labels, as they are written */
#define METRIC_BUCKETS_MAX 30

/* Why a metric may not have this name; NULL if it may. */
const char *metric_name_problem(const char *name, enum metric_action action);
const char *metric_label_problem(const char *name);
/* Appends `name="value"` with the escapes of the text format, after a comma if the text is not empty. */
void metric_label_write(struct text *out, const char *name, const char *value);
/* Whether the text is a list of labels as metric_label_write() makes it, within the bounds. */
bool metric_labels_are_right(const char *labels);

/* Appends the shortest form that is read as the same number. */
void metric_number_write(struct text *out, double value);
/* Bounds of buckets, with a blank between them: finite, and each above the one before. Returns how many, 0 if they are
 * none. */
size_t metric_buckets_read(const char *buckets, double *ret, size_t max);
