/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tells whether the handler of a watch is another one than at the last start. Objects that were given up get
 * one more attempt then (lib/controller/due/retry-kept.h), and after each reload.
 *
 * The stamp covers: our own version, the kind of the handler, its arguments, size and mtime of those that are
 * regular files, the names of its environment, `handler.version`, and what its answers may write: `owns`,
 * `children.kinds`, `children.namespaces` and `patches` of the watch. It covers no value of the environment,
 * which may be secret, and no inode, which another node gives to the same image. What a program loads by
 * itself is unknown here.
 */
#include <stdbool.h>

#include "config/config.h"

struct supervisor;
struct watch;

uint64_t handler_stamp(const struct config_watch *config); /* never 0 */
/* Whether the handler's files have changed since its process started: a process that serves, and a worker
 * that has loaded a plugin, have the program of their start. The files are looked at, and nothing is
 * kept. */
bool handler_is_stale(const struct watch *watch);
/* Called when a reload takes this configuration: for each watch, a walk over what was given up begins in the
 * ledger. */
void handlers_reload(struct supervisor *supervisor, const struct config *config);
/* A watch goes on with the walk that the ledger has; with another handler one begins. Negative errno. */
int handler_take_up(struct watch *watch);
void handlers_take_up(struct supervisor *supervisor); /* all watches */
