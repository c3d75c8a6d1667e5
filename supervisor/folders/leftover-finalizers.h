/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kinds of objects that may carry a finalizer of ours, in a file of the state folder that outlives the
 * configuration: a line for each watch that puts one on, "FINALIZER KIND APIVERSION WATCH". When no watch of
 * that kind is configured any more, the watch has another id, or the operator has another name, no watch takes
 * it off and no such object can go. Each start and reload logs that, until an administrator has removed the line.
 */
#include "base/text.h"

struct supervisor;

int leftover_finalizers_review(struct supervisor *supervisor); /* negative: the file is not written */
void leftover_finalizers_free(struct supervisor *supervisor);
void leftover_finalizers_write_status(const struct supervisor *supervisor, struct text *json);
