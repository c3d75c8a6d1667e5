/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Everything that descends from this process, whatever session or process group it has made for itself: a
 * subreaper has them all below it. Found in /proc by parents (the kernel's own list of children is an
 * option that not every kernel is built with).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DESCENDANTS_ANY ((uid_t)-1) /* user */

/* Spares this child, its descendants and its process group as long as it lives: it goes on while others are
 * ended. What it leaves behind is not spared. user: the user it runs as; orphans of this user keep no other
 * user's handler waiting. Negative errno without memory. */
int descendants_spare(pid_t child, uid_t user);
void descendants_spare_no_more(pid_t child);

/* Whether this process is one of them; true also if that cannot be found out, as for a process that has ended. */
bool descendants_may_include(pid_t pid);

/* KILL to each; returns how many there are (zombies do not count) that may be of this user's, or negative errno. */
ssize_t descendants_kill(uid_t user);
/* Reaps what has ended. Returns whether children are left, alive or not yet reapable, that may be of this user's. True as well
 * if, beside one that is spared, such a one was reaped just now: it may have left a child. */
bool descendants_reap_of(uid_t user);
bool descendants_reap(void); /* of any user */
/* Reaps what has ended, up to the first that is spared, without a look at /proc: a zombie is a place in the
 * machine's table of processes. */
void descendants_reap_ended(void);
/* KILL to all, again and again until none is left or `usec` is over. Blocks: for the end of a process. */
void descendants_end(uint64_t usec);
