/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects that a watcher has died or hung over: its slot says which. From the first time on the next
 * watcher gets past it: a jq program that never ends or crashes is not run on it for the time of the
 * quarantine (it counts as selected, and its content without status stands in for the yield of the
 * trigger), so that it is served as all others are; where our own code died, nothing of it is read. With
 * each further death that time is doubled (lib/controller/due/doubt.h).
 */

struct watch;

int doubtful_tell(struct watch *watch); /* its watcher; negative errno: of the ledger, or of the channel */
/* By hand. -ENOENT: no object of this key is doubtful. */
int doubtful_release(struct watch *watch, const char *key);
