/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A reload, on SIGHUP. The new file is judged first, and a wrong one changes nothing. If the configuration has
 * not changed, only the files that it names are read again: credentials, certificates, tokens, the programs of
 * handlers. Any change is a restart in place: no run begins, running handlers may finish for `stop.grace`, the
 * children end in order, and the supervisor begins again as the same process, so that to systemd and to the
 * kubelet the operator never went away. What was cut off is counted as no failure and runs again. The
 * supervisor reads the file once more then; if it has become wrong meanwhile, the configuration that the
 * reload accepted is taken. Watches go on from their stores, without a LIST; queued objects are announced
 * again. A reload is no start: `onStart: all` runs nothing, and `restarts` does not count it.
 *
 * Another version of the program cannot begin that way: the supervisor can execute nothing
 * (children/spawner-life.h). Then it ends in order, to be started again by the service manager.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

struct options;
struct supervisor;

/* Reads and judges the configuration. Every problem is printed (for --check) or logged; `first` gets the first
 * one. Negative errno. */
int config_load_and_tell(const struct options *options, struct config **ret, char *first, size_t size);

/* What a restart in place hands to the life after it. */
struct reload_life {
        struct config *config; /* accepted; NULL: a start, whose file has to be right */
        uint64_t since;        /* CLOCK_MONOTONIC: no run has begun since then; 0: a start */
        uint64_t started;      /* as struct controller has it */
        bool startup_over;     /* no `startup` runs before the next start, though this reload may add one */
        bool voids_ledger;     /* another replica has led: what the ledger says is void */
        struct registry *measured; /* metrics of handlers, which supervisor_init() takes over; NULL */
};

void reload(struct supervisor *supervisor);
/* Whether the configuration can be read: it is kept for the restart then; else `why` has the reason. */
bool reload_can_restart(struct supervisor *supervisor, char *why, size_t size);
void reload_by_restart(struct supervisor *supervisor, const char *why);
/* All children are up: after a restart in place, tells how long that took. */
void reload_over(struct supervisor *supervisor);
