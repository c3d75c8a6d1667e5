/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Restricts the files that a process may use once it is set up. */
#include <stdbool.h>

/* From now on this thread, and what it starts, writes, makes or removes nothing but these files and what is
 * below these folders, and executes nothing (Landlock); descriptors that are open stay as they are. reads: it
 * also reads nothing but that and what libraries need; NULL: it reads what it likes. Both end
 * with NULL; what does not exist is left out. A folder, not a file, is what still counts when a file has been
 * replaced. -EOPNOTSUPP: the kernel has none, or whoever started us forbids it. */
int landlock_restrict(const char *const *writes, const char *const *reads);
bool landlock_exists(void); /* false: landlock_restrict() would return -EOPNOTSUPP */
