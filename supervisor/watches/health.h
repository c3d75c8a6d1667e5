/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The health of a watch, for people: by the word of its watcher, by whether its handler has the access that
 * it needs, and by whether the API server takes its writes (lib/controller/due/watch-refusal.h).
 */
#include <stdbool.h>

struct watch;

int health_review(struct watch *watch); /* one of these has changed. -ENOMEM */
/* A resource that is absent and need not be there counts as in sync. */
bool watch_is_in_sync(const struct watch *watch);
bool watch_is_in_trouble(const struct watch *watch); /* degraded or failed */
