/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What `previous: true` keeps of a watch (store/previous.h), in the folder of its store. It is written without syncs, so what a
 * power loss leaves is not to be read: the file STATE names the boot in which it is written, or says that the operator has ended
 * in order. Anything else is removed at the start, and is absent from requests then.
 */
#include <stdbool.h>

struct config_watch;
struct supervisor;
struct watch;

/* Called before the first worker. false: nothing can be kept there, which is reported: the watch does
 * without. */
bool previous_folder_begin(const struct supervisor *supervisor, const struct config_watch *config,
                           const char *store_folder);
/* A process died over files of this watch. */
void previous_folder_suspect(const struct watch *watch);
/* Called after the last worker: brings what is there to the disk. */
void previous_folders_end(struct supervisor *supervisor);
