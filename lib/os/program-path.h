/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a program of ours is: in $RECONCILED_LIBEXECDIR (tests), else in the build folder when we run from
 * there (folder: of the source tree, "watcher"), else where it was installed. The caller owns the path; NULL
 * on lack of memory.
 */
char *program_path(const char *folder, const char *name);
