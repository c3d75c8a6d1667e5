/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The environment of a handler: what is passed on of ours, what the watch configures, and what tells the
 * handler about its run. No credential of ours, and no socket of systemd, is in it.
 */
#include "worker/run-state.h"

/* Without what belongs to a single run; the watch owns it. NULL: no memory. */
char *const *environment_of_watch(struct worker_watch *watch);
void environment_of_watch_free(struct worker_watch *watch);
/* The watch's environment and the variables of this run; freed with environment_free(). The strings of
 * the watch are shared. NULL: no memory. */
char *const *environment_build(const struct run *run);
void environment_free(const struct worker_watch *watch, char *const *environment);
