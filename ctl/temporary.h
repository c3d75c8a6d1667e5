/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

#include "base/error.h"

/* A folder in $TMPDIR or /tmp that nobody else can look into, or in memory, where there is some; *ret is
 * owned by the caller. */
int temporary_folder_new(bool in_memory, char **ret, struct error *error);
void temporary_folder_remove(const char *path); /* with all that is in it */
