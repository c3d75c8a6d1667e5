/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* XXH3 for short input: names, words, single numbers. The sums are those of the library, whose call would cost
 * more than the hash. */
#define XXH_INLINE_ALL
#include <xxhash.h>
