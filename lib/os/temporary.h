/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Folders of one `reconciledctl`, with what it and the handlers that it runs need meanwhile. Its process
 * holds a lock on the folder until it ends: one without a lock was left by a process that was killed.
 */
#include <stdbool.h>

#include "base/error.h"

/* A folder in $TMPDIR or /tmp that nobody else can look into, or in memory if there is a tmpfs; *ret is owned
 * by the caller. Folders that were left over are removed first. */
int temporary_folder_new(bool in_memory, char **ret, struct error *error);
void temporary_folder_remove(const char *path); /* with all that is in it */
/* Removes those of this user that were left: they may hold credentials. */
void temporary_folders_sweep(void);
