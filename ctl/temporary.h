/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/error.h"

/* A folder in $TMPDIR or /tmp that nobody else can look into; *ret is owned by the caller. */
int temporary_folder_new(char **ret, struct error *error);
void temporary_folder_remove(const char *path); /* with all that is in it */
