/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A reload, on SIGHUP. The new file is judged first, and a wrong one changes nothing. Watches are added,
 * removed and changed one by one (apply.h). Where something changes that concerns the whole operator, a
 * reload is a restart in place: runs may finish, the children end in order, and the supervisor begins
 * anew, as the same process, so that to systemd and to the kubelet the operator never went away. It reads
 * the file once more then; if that has become wrong meanwhile, what the reload accepted is taken. Watches
 * go on from their stores then, without a LIST; queued objects are announced again. Another version of
 * the program cannot begin that way: the supervisor can execute nothing (children/spawner-life.h). Then
 * it ends in order, to be started again by the service manager.
 */
#include <stdbool.h>
#include <stddef.h>

struct supervisor;

void reload(struct supervisor *supervisor);
/* Whether the configuration can be read, which is kept for the restart then; else why not. */
bool reload_can_restart(struct supervisor *supervisor, char *why, size_t size);
void reload_by_restart(struct supervisor *supervisor, const char *why);
