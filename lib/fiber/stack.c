/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/stack.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fiber/checkers.h"

#define GUARD      ((size_t)64 << 10)
#define SIZE       ((size_t)8 << 20)
#define SIZE_LEAST ((size_t)256 << 10)

/* As the main stack: what runs there today runs in a fiber tomorrow. */
static size_t wanted_size(void)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        struct rlimit limit;

        if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= SIZE)
                return SIZE;
        return limit.rlim_cur <= SIZE_LEAST ? SIZE_LEAST : limit.rlim_cur / page * page;
}

int stack_map(struct stack *ret)
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

void stack_unmap(struct stack *stack)
{
        int r;

        if (!stack->guard)
                return;
        checkers_forget_stack(stack->bottom, stack->size);
        r = munmap(stack->guard, GUARD + stack->size);
        assert(r == 0);
        *stack = (struct stack){0};
}

size_t stack_used(const struct stack *stack)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        unsigned char there;

        for (size_t at = 0; at < stack->size; at += page)
                if (mincore(stack->bottom + at, page, &there) == 0 && (there & 1))
                        return stack->size - at;
        return 0;
}
