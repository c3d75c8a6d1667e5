/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a process has allocated and nothing points to any more when it ends: what LeakSanitizer tells, for
 * processes that may neither be looked into nor start a thread, and without its price.
 *
 * Nothing here allocates; each function may be called from any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void leaks_note(void *address, size_t size, uint64_t serial);
void leaks_forget(void *address);

void leaks_trace(void); /* from now on each allocation remembers where it came from */
void leaks_stop(void);  /* for good: this process is not looked at */

struct leaks {
        uint64_t blocks, bytes;
        bool known; /* false: there were more blocks than there is room for, or the search was impossible */
};

/* At the end of a process, when main() has returned: its frames are no roots. Says on standard error what it
 * finds. */
struct leaks leaks_find(void);
