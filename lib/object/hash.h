/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* XXH3, with the widest vectors that this processor has where the library can choose among them: the same
 * sums, of an object's bytes in a third of the time. */
#ifdef RECONCILED_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
