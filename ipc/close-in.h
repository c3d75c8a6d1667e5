/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How each process gives up what it does not need (lib/os/sandbox/sandbox.h), and what is said where the kernel has
 * no such thing: that is no reason to serve nobody. */
#include "os/sandbox/sandbox.h"

/* who: for the log, "the watcher of watch widgets". writes: all that it writes; reads: what it reads beside
 * that; NULL: all files (landlock_restrict()). Negative errno if the kernel can restrict the process, but that
 * failed. */
int close_in(const char *who, const char *const *writes, const char *const *reads,
             const struct sandbox *sandbox);
/* The same for a process that asks an API server: it reads how names are resolved, and by whom (in threads),
 * and writes this folder (NULL: none) and nothing else. */
int close_in_client(const char *who, const char *folder);
