/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests that valgrind slows down or cannot follow. */
#include <stdbool.h>
#include <stdlib.h>

/* `meson test --setup valgrind` says so (tests/valgrind/meson.build). */
static inline bool under_valgrind(void)
{
        return getenv("RECONCILED_VALGRIND") != NULL;
}

/* How many times slower than alone a test may be: RECONCILED_TEST_SLOWNESS (./check), and valgrind. */
static inline unsigned slowness(void)
{
        const char *text = getenv("RECONCILED_TEST_SLOWNESS");
        unsigned long number = text ? strtoul(text, NULL, 10) : 1;

        return (unsigned)(number > 0 && number < 1000 ? number : 1) * (under_valgrind() ? 5 : 1);
}
