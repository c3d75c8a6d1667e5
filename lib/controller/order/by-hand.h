/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What people order for one object, all UIDs of its key. -ENOENT: there is no such object. */
#include "controller/controller.h"

/* Makes the object run now; release: takes it out of quarantine, and it runs as soon as nothing else does. */
int run_now(struct watch *watch, const char *key, bool release);
/* Our finalizer comes off without a cleanup, because somebody answers for it; the log keeps who, and why. A worker
 * does it, by a run of its own that starts no handler. All objects: uninstall.h. */
int release_finalizer(struct watch *watch, const char *key, const char *why, uint64_t user);

/* Watches that somebody has paused. */
int pause_load(struct watch *watch);
/* 0 if it was so already, 1 if it is new. */
int pause_watch(struct watch *watch, const char *reason, uint64_t user);
int pause_resume(struct watch *watch, uint64_t user);
/* Takes a pause over that was ordered while another replica led. */
int pause_take(struct watch *watch, const struct ledger_pause *pause);
