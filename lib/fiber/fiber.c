/* SPDX-License-Identifier: Apache-2.0 */
/* See fiber.h. Compiled without _FORTIFY_SOURCE, whose siglongjmp() takes a jump to another stack for an attack. */
#include "fiber/fiber.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/duration.h"
#include "fiber/checkers.h"

/* ---- stacks */

/*
 * The memory of a fiber's stack: as much address space as the main stack may have, of which only touched pages cost
 * memory, above a guard in which whatever runs over the end faults (SIGSEGV).
 */
struct stack {
        char *guard; /* the lowest byte; NULL if there is none */
        char *bottom;
        size_t size; /* above the guard */
};

#define GUARD      ((size_t)64 << 10)
#define SIZE       ((size_t)8 << 20)
#define SIZE_LEAST ((size_t)256 << 10)

/* As large as the main stack: what runs there today runs in a fiber tomorrow. */
static size_t wanted_size(void)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        struct rlimit limit;

        if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= SIZE)
                return SIZE;
        return limit.rlim_cur <= SIZE_LEAST ? SIZE_LEAST : limit.rlim_cur / page * page;
}

/* -ENOMEM: the kernel refuses. */
static int stack_map(struct stack *ret)
{
        size_t size = wanted_size();
        char *memory = mmap(NULL, GUARD + size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

        if (memory == MAP_FAILED)
                return -ENOMEM;
        if (mprotect(memory, GUARD, PROT_NONE) < 0) {
                munmap(memory, GUARD + size);
                return -ENOMEM;
        }
        /* A huge page would make two megabytes of each stack's first byte. (EINVAL: this kernel has none.) */
        (void)madvise(memory + GUARD, size, MADV_NOHUGEPAGE);
        *ret = (struct stack){.guard = memory, .bottom = memory + GUARD, .size = size};
        checkers_know_stack(ret->bottom, ret->size);
        return 0;
}

static void stack_unmap(struct stack *stack)
{
        int r;

        if (!stack->guard)
                return;
        checkers_forget_stack(stack->bottom, stack->size);
        r = munmap(stack->guard, GUARD + stack->size);
        assert(r == 0);
        *stack = (struct stack){0};
}

/* Bytes from the deepest page that is in memory to the top. */
static size_t stack_used(const struct stack *stack)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        unsigned char there;

        for (size_t at = 0; at < stack->size; at += page)
                if (mincore(stack->bottom + at, page, &there) == 0 && (there & 1))
                        return stack->size - at;
        return 0;
}

/* ---- fibers */

enum fiber_state {
        FIBER_IDLE,      /* a stack without a fiber */
        FIBER_READY,     /* goes on in the next round */
        FIBER_RUNNING,   /* at most one is */
        FIBER_SUSPENDED, /* waits to be woken */
};

struct fiber {
        struct fibers *fibers;
        struct fiber *next; /* in `free`, or in the list of all */
        struct fiber *next_ready;
        enum fiber_state state;
        bool started;   /* its stack has been entered, this time or for another fiber */
        bool woken;     /* while it ran: its next wait ends at once */
        bool ending;    /* it was asked to end, or cancelled */
        bool cancelled; /* it was cancelled, and its next wait must report that */
        const char *name, *why;
        uint64_t since_usec;
        void (*entry)(void *userdata);
        void *userdata;
        sigjmp_buf here; /* where it goes on */
        void *fake;      /* the sanitizer's copy of its frames */
        unsigned valgrind_id;
        struct stack stack;
};

struct fibers {
        sd_event_source *bottom; /* goes off never; asked before the loop sleeps */
        sd_event_source *again;  /* enabled while any is ready: the loop must not sleep */
        struct fiber *all, *free;
        struct fiber *ready, **last_ready;
        size_t count;
        void (*on_switch)(const struct fiber *fiber, void *userdata);
        void *on_switch_userdata;
        sigjmp_buf loop; /* where the round goes on */
        void *fake;
        const void *loop_bottom;
        size_t loop_size;
};

static struct fiber *current;

/* ---- the switch */

static void leave_to_loop(struct fiber *fiber)
{
        struct fibers *fibers = fiber->fibers;

        if (sigsetjmp(fiber->here, 0) == 0) {
                checkers_leave(&fiber->fake, fibers->loop_bottom, fibers->loop_size);
                siglongjmp(fibers->loop, 1);
        }
        checkers_arrive(fiber->fake, &fibers->loop_bottom, &fibers->loop_size);
}

/* makecontext() enters each stack here, and never leaves it: a stack serves one fiber after the other. */
static _noreturn_ void on_stack(void)
{
        struct fiber *fiber = current;

        checkers_arrive(NULL, &fiber->fibers->loop_bottom, &fiber->fibers->loop_size);
        for (;;) {
                fiber->entry(fiber->userdata);
                fiber->state = FIBER_IDLE;
                leave_to_loop(fiber);
        }
}

static void fiber_enter(struct fiber *fiber)
{
        struct fibers *fibers = fiber->fibers;
        ucontext_t context;

        assert(!current && fiber->state == FIBER_READY);
        fiber->state = FIBER_RUNNING;
        current = fiber;
        if (sigsetjmp(fibers->loop, 0) == 0) {
                checkers_leave(&fibers->fake, fiber->stack.bottom, fiber->stack.size);
                if (fiber->started)
                        siglongjmp(fiber->here, 1);
                fiber->started = true;
                if (getcontext(&context) < 0)
                        abort();
                context.uc_stack.ss_sp = fiber->stack.bottom;
                context.uc_stack.ss_size = fiber->stack.size;
                context.uc_link = NULL;
                makecontext(&context, on_stack, 0);
                (void)setcontext(&context);
                abort();
        }
        checkers_arrive(fibers->fake, NULL, NULL);
        assert(fiber == current && fiber->state != FIBER_RUNNING);
        current = NULL;
}

/* ---- rounds */

static void fiber_make_ready(struct fiber *fiber)
{
        struct fibers *fibers = fiber->fibers;
        int r;

        fiber->state = FIBER_READY;
        fiber->next_ready = NULL;
        *fibers->last_ready = fiber;
        fibers->last_ready = &fiber->next_ready;
        r = sd_event_source_set_enabled(fibers->again, SD_EVENT_ON);
        assert(r >= 0 ||
               r == -ESTALE); /* the loop is over: what is left of it has rounds of fibers_turn() */
}

static void unlink_fiber(struct fiber *fiber)
{
        struct fiber **link = &fiber->fibers->all;

        while (*link != fiber)
                link = &(*link)->next;
        *link = fiber->next;
        fiber->fibers->count--;
}

void fibers_turn(struct fibers *fibers)
{
        struct fiber *fiber = fibers->ready;

        fibers->ready = NULL;
        fibers->last_ready = &fibers->ready;
        while (fiber) {
                struct fiber *next = fiber->next_ready;

                if (fibers->on_switch)
                        fibers->on_switch(fiber, fibers->on_switch_userdata);
                fiber_enter(fiber);
                if (fibers->on_switch)
                        fibers->on_switch(NULL, fibers->on_switch_userdata);
                if (fiber->state == FIBER_IDLE) {
                        unlink_fiber(fiber);
                        fiber->next = fibers->free;
                        fibers->free = fiber;
                }
                fiber = next;
        }
}

/* A turn of its own for each round would cost as much as a short run. An exit that a fiber has asked for is not looked at
 * before the next turn, so the loop must not sleep then either. */
static int before_sleep(sd_event_source *source _unused_, void *userdata)
{
        struct fibers *fibers = userdata;
        bool any = fibers->ready != NULL;

        if (!any)
                return 0;
        fibers_turn(fibers);
        any = fibers->ready || sd_event_get_exit_code(sd_event_source_get_event(fibers->again), NULL) >= 0;
        return sd_event_source_set_enabled(fibers->again, any ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int on_next_round(sd_event_source *source, void *userdata)
{
        const struct fibers *fibers = userdata;

        return fibers->ready ? 0 : sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static int on_never(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata _unused_)
{
        return 0;
}

int fibers_new(sd_event *event, struct fibers **ret)
{
        _cleanup_(fibers_free_pointer) struct fibers *fibers = calloc(1, sizeof(*fibers));
        int r;

        if (!fibers)
                return -ENOMEM;
        fibers->last_ready = &fibers->ready;
        r = sd_event_add_defer(event, &fibers->again, on_next_round, fibers);
        if (r >= 0)
                r = sd_event_source_set_enabled(fibers->again, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(event, &fibers->bottom, CLOCK_MONOTONIC, UINT64_MAX, 0, on_never,
                                      fibers);
        if (r >= 0)
                r = sd_event_source_set_prepare(fibers->bottom, before_sleep);
        if (r >= 0)
                r = sd_event_source_set_description(fibers->bottom, "fibers");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(fibers);
        return 0;
}

void fibers_free(struct fibers *fibers)
{
        if (!fibers)
                return;
        assert(!fibers->all && !current);
        fibers_trim(fibers);
        sd_event_source_disable_unref(fibers->bottom);
        sd_event_source_disable_unref(fibers->again);
        free(fibers);
}

void fibers_trim(struct fibers *fibers)
{
        struct fiber *fiber;

        while ((fiber = fibers->free)) {
                fibers->free = fiber->next;
                VALGRIND_STACK_DEREGISTER(fiber->valgrind_id);
                stack_unmap(&fiber->stack);
                free(fiber);
        }
}

void fibers_on_switch(struct fibers *fibers, void (*on_switch)(const struct fiber *fiber, void *userdata),
                      void *userdata)
{
        fibers->on_switch = on_switch;
        fibers->on_switch_userdata = userdata;
}

size_t fibers_count(const struct fibers *fibers)
{
        return fibers->count;
}

/* ---- a fiber */

static int take_stack(struct fibers *fibers, struct fiber **ret)
{
        struct fiber *fiber = fibers->free;
        int r;

        if (fiber) {
                fibers->free = fiber->next;
                *ret = fiber;
                return 0;
        }
        fiber = calloc(1, sizeof(*fiber));
        if (!fiber)
                return -ENOMEM;
        fiber->fibers = fibers;
        r = stack_map(&fiber->stack);
        if (r < 0) {
                free(fiber);
                return r;
        }
        fiber->valgrind_id =
                VALGRIND_STACK_REGISTER(fiber->stack.bottom, fiber->stack.bottom + fiber->stack.size);
        *ret = fiber;
        return 0;
}

int fiber_start(struct fibers *fibers, const char *name, void (*entry)(void *userdata), void *userdata,
                struct fiber **ret)
{
        struct fiber *fiber;
        int r = take_stack(fibers, &fiber);

        if (r < 0)
                return r;
        assert(fiber->state == FIBER_IDLE && name && entry);
        fiber->name = name;
        fiber->entry = entry;
        fiber->userdata = userdata;
        fiber->why = NULL;
        fiber->woken = fiber->ending = fiber->cancelled = false;
        fiber->next = fibers->all;
        fibers->all = fiber;
        fibers->count++;
        fiber_make_ready(fiber);
        if (ret)
                *ret = fiber;
        return 0;
}

struct fiber *fiber_current(void)
{
        return current;
}

int fiber_suspend(const char *why)
{
        struct fiber *fiber = current;

        assert(fiber && fiber->state == FIBER_RUNNING && why);
        if (!fiber->woken && !fiber->cancelled) {
                fiber->why = why;
                fiber->since_usec = clock_boottime_usec();
                fiber->state = FIBER_SUSPENDED;
                leave_to_loop(fiber);
                fiber->why = NULL;
        }
        fiber->woken = false;
        if (!fiber->cancelled)
                return 0;
        fiber->cancelled = false;
        return -ECANCELED;
}

void fiber_wake(struct fiber *fiber)
{
        assert(fiber->state != FIBER_IDLE);
        if (fiber->state == FIBER_SUSPENDED)
                fiber_make_ready(fiber);
        else if (fiber->state == FIBER_RUNNING)
                fiber->woken = true;
}

void fiber_ask_to_end(struct fiber *fiber)
{
        assert(fiber->state != FIBER_IDLE);
        fiber->ending = true;
}

void fiber_cancel(struct fiber *fiber)
{
        fiber_ask_to_end(fiber);
        fiber->cancelled = true;
        fiber_wake(fiber);
}

bool fiber_is_ending(const struct fiber *fiber)
{
        return fiber->ending;
}

void fibers_cancel(struct fibers *fibers)
{
        for (struct fiber *fiber = fibers->all; fiber; fiber = fiber->next)
                fiber_cancel(fiber);
}

void fiber_end_sleep(struct fiber **sleeper)
{
        if (*sleeper)
                fiber_wake(TAKE_PTR(*sleeper));
}

static int on_slept(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        fiber_end_sleep(userdata);
        return 0;
}

int fiber_sleep_at_most(uint64_t usec, const char *why, struct fiber **sleeper)
{
        sd_event_source *timer = NULL;
        int r;

        assert(current);
        *sleeper = current;
        r = sd_event_add_time_relative(sd_event_source_get_event(current->fibers->again), &timer,
                                       CLOCK_BOOTTIME, usec, 1, on_slept, sleeper);
        while (r >= 0 && *sleeper)
                r = fiber_suspend(why);
        *sleeper = NULL;
        sd_event_source_disable_unref(timer);
        return r < 0 ? r : 0;
}

int fiber_sleep(uint64_t usec, const char *why)
{
        struct fiber *sleeper;

        return fiber_sleep_at_most(usec, why, &sleeper);
}

/* ---- for people */

const char *fiber_name(const struct fiber *fiber)
{
        return fiber->name;
}

const char *fiber_waits_for(const struct fiber *fiber, uint64_t *ret_since_usec)
{
        if (fiber->state != FIBER_SUSPENDED)
                return NULL;
        *ret_since_usec = fiber->since_usec;
        return fiber->why;
}

size_t fiber_stack_used(const struct fiber *fiber, size_t *ret_size)
{
        *ret_size = fiber->stack.size;
        return stack_used(&fiber->stack);
}
