/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Folders of our own. What others can put there is not used: neither the folder nor what is found in it, nor
 * any folder above it in which they could put another one into its place.
 */
#include <stddef.h>

#include "base/error.h"

/* Makes the folder (0700) if it is not there, and looks at each part of its path, and of where links in it
 * lead. Each must be ours or root's, and writable for nobody else but (as the folder above /tmp/x) with the
 * sticky bit; a group that we are in may write where it is let, and into the root of a volume everybody, as
 * containers have it. *ret: the path without links, for all that follows. -EPERM, -ENOTDIR: it is not to be
 * used; anything else: it cannot be made. */
int folder_own(const char *path, char **ret, struct error *error);

/* Of a folder of our own: what is there under this name must have been made by us (or root), all that is in
 * it as well, and be no link. 0 as well where there is nothing. */
int folder_check_entry(const char *folder, const char *name, struct error *error);
