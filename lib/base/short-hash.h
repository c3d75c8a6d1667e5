/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* XXH3 for what is short: names, words, single numbers. The same sums as by a call of the library, of which
 * the call would be the larger part. */
#define XXH_INLINE_ALL
#include <xxhash.h>
