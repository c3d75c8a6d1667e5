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
