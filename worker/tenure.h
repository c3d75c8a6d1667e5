/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * With several replicas: a write of the leader before us may still be on its way, if its lead was not released. It carries the
 * version that it is meant for, so it fails once the object has another one. So the first run of an object under our lead writes
 * to it, and to each of its children before that is applied, though it changes nothing else: the annotation OPERATOR/epoch
 * becomes our epoch.
 */
#include "worker/run-state.h"

/* A step of write.c, before all others: whether it must be written (1, 0), and that. */
int tenure_is_unmarked(struct run *run);
_warn_unused_ int tenure_mark(struct run *run) _suspends_;

/* The same for a child as it is in `json`, and the merge patch for it. -ENOMEM. */
bool tenure_child_is_unmarked(const struct run *run, const char *json);
int tenure_child_body(const struct run *run, const char *uid, const char *version, struct text *out);
