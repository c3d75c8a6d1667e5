/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Folders that are no more than memory (tmpfs, ramfs), for what must not lie on a disk. */
#include <stdbool.h>

/* Whether what is written below this folder stays in memory. (Swap is the machine's affair.) */
bool memory_holds(const char *path);

#define MEMORY_SHARED "/dev/shm" /* where a machine without a runtime directory in memory has some */

/* Removes a folder with all that is in it, and stops at the first failure. 0, or its negative errno. */
int folder_remove(const char *path);
