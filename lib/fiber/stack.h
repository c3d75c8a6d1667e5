/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of a fiber's stack: as much address space as the main stack may have, of which only touched pages cost
 * memory, above a guard in which whatever runs over the end faults (SIGSEGV). Private to fiber/.
 */
#include <stddef.h>

struct stack {
        char *guard; /* the lowest byte; NULL: none */
        char *bottom;
        size_t size; /* above the guard */
};

/* -ENOMEM: the kernel refuses. */
int stack_map(struct stack *ret);
void stack_unmap(struct stack *stack);
/* Bytes from the deepest page that is in memory to the top. */
size_t stack_used(const struct stack *stack);
