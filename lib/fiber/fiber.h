/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Code that waits, written straight down: a fiber is a function with a stack of its own. Where it waits, it gives the
 * processor back to the event loop, and goes on from there when something wakes it. One thread, one loop; no fiber is
 * ever interrupted.
 *
 * One place resumes: the bottom of the loop, before it sleeps, all that were ready when the round began. So no callback
 * of libcurl, of a source or of a store is ever below a fiber's frames: a callback stores its result and wakes. What a fiber has
 * borrowed (from a store, a list, errno) it must not keep over a wait. A function that may wait is marked _suspends_,
 * and so is each that calls it.
 *
 * The semantics are those of systemd's sd-fiber; this folder goes when Debian's libsystemd has it. The switch is
 * QEMU's: makecontext() once for a stack, then sigsetjmp() and siglongjmp(), which ask the kernel nothing. A process
 * with fibers must not have a shadow stack (-fcf-protection=return has no effect without one).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"

#define _suspends_

struct fiber;
struct fibers; /* those of one loop, and the stacks that wait for the next ones */

int fibers_new(sd_event *event, struct fibers **ret);
/* None may be left. NULL is fine. */
void fibers_free(struct fibers *fibers);
DEFINE_CLEANUP(struct fibers *, fibers_free);
/* Called when a fiber goes on, and with NULL when it has given the processor back. */
void fibers_on_switch(struct fibers *fibers, void (*on_switch)(const struct fiber *fiber, void *userdata),
                      void *userdata);
size_t fibers_count(const struct fibers *fibers);
/* A round out of the loop, for a process that ends: cancelled fibers unwind, and free what they hold. */
void fibers_turn(struct fibers *fibers);
/* Gives the stacks that no fiber uses back to the kernel: for a process at rest, beside malloc_trim(). */
void fibers_trim(struct fibers *fibers);

/*
 * entry is called in a later turn, even if the fiber is cancelled before: it owns what userdata holds. `name` is for
 * people, borrowed, and must live as long. *ret is valid until entry returns, which is the fiber's end; NULL is fine.
 * -ENOMEM: there is no room for its stack; nothing was started, and fewer at once may do.
 */
int fiber_start(struct fibers *fibers, const char *name, void (*entry)(void *userdata), void *userdata,
                struct fiber **ret);

/* The one that runs; NULL if none does. */
struct fiber *fiber_current(void);
/*
 * Suspends the current fiber until somebody wakes it. It may be woken for nothing, so what was waited for is asked
 * again in a loop. `why` is for people, borrowed. 0; -ECANCELED, once for each fiber_cancel(): cleaning up may wait.
 */
_warn_unused_ int fiber_suspend(const char *why) _suspends_;
/* Suspends the current fiber for this time (CLOCK_BOOTTIME). 0; -ECANCELED; another error if there is no timer. */
_warn_unused_ int fiber_sleep(uint64_t usec, const char *why) _suspends_;
/* Likewise; fiber_end_sleep(sleeper) ends the sleep early. *sleeper is NULL once it is over. */
_warn_unused_ int fiber_sleep_at_most(uint64_t usec, const char *why, struct fiber **sleeper) _suspends_;
void fiber_end_sleep(struct fiber **sleeper); /* *sleeper may be NULL */
/* The fiber goes on in a later round. If it runs now, its next wait ends at once. */
void fiber_wake(struct fiber *fiber);

/*
 * A fiber ends in two steps, and always by returning. Asked to end, it begins nothing new: what starts something and
 * waits for it looks at fiber_is_ending() first, and returns -ECANCELED. What is in flight may come to its end.
 * Cancelled, it does not wait for that either: the wait itself returns -ECANCELED.
 */
void fiber_ask_to_end(struct fiber *fiber);
void fiber_cancel(struct fiber *fiber);
bool fiber_is_ending(const struct fiber *fiber); /* after either */
void fibers_cancel(struct fibers *fibers);       /* all of them */

/* For tests and for a look into a core: the fiber's name, and what it waits for since when (CLOCK_BOOTTIME);
 * NULL if it does not wait. */
const char *fiber_name(const struct fiber *fiber);
const char *fiber_waits_for(const struct fiber *fiber, uint64_t *ret_since_usec);
/* How much of its stack was ever touched, of how much there is, in bytes. */
size_t fiber_stack_used(const struct fiber *fiber, size_t *ret_size);
