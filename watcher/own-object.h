/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ConfigMap of a schedule or of `startup`, which the operator makes where it is missing, also when somebody has deleted it. It
 * is created, and never applied: what others put on it is theirs, and what workers note on it stays.
 */
#include "watcher/watcher.h"

/* Makes sure of the object from now on; does nothing if the watch needs no such object, or has begun
 * already. */
void own_object_keep(struct watcher *watcher);
