/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tells AddressSanitizer, its search for leaks, and valgrind about stacks that they have not made. Builds
 * without them do nothing here; valgrind's requests are a few instructions without an effect. Private to
 * fiber/.
 */
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKERS_ADDRESS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CHECKERS_ADDRESS 1
#endif

#ifdef CHECKERS_ADDRESS
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>

/* Memory that only a suspended fiber points to is no leak. */
static inline void checkers_know_stack(const void *bottom, size_t size)
{
        __lsan_register_root_region(bottom, size);
}

static inline void checkers_forget_stack(const void *bottom, size_t size)
{
        __lsan_unregister_root_region(bottom, size);
}

/* Called before a switch to this stack. *own is kept for the way back. */
static inline void checkers_leave(void **own, const void *bottom, size_t size)
{
        __sanitizer_start_switch_fiber(own, bottom, size);
}

/* Called after a switch. Returns where the stack is that was left. */
static inline void checkers_arrive(void *own, const void **left_bottom, size_t *left_size)
{
        __sanitizer_finish_switch_fiber(own, left_bottom, left_size);
}
#else
#define checkers_know_stack(bottom, size)            ((void)0)
#define checkers_forget_stack(bottom, size)          ((void)0)
#define checkers_leave(own, bottom, size)            ((void)(own), (void)(bottom), (void)(size))
#define checkers_arrive(own, left_bottom, left_size) ((void)(own), (void)(left_bottom), (void)(left_size))
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(start, end) 0
#define VALGRIND_STACK_DEREGISTER(id)       ((void)(id))
#endif
