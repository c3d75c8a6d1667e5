/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many bytes of contents the tombstones hold, for each namespace and in all. Private to store/. Whoever may create and
 * delete objects makes as many tombstones as they like, and a tombstone stays until the cleanup has succeeded; so contents
 * have a bound, and beyond it a tombstone is the identity alone. The counts are rows of TABLE_BURIED, and belong to the
 * transaction of the tombstones that they count. 0 or a negative errno; -EBADMSG: damaged.
 */
#include "store/internal.h"

/* A namespace may take this part of what the store can still hold, and all of them together that part; what it can hold
 * counts up to the maximum. As these are parts of what is left, stores that share a disk never fill it with tombstones. */
#define BURIED_NAMESPACE_PART 16
#define BURIED_STORE_PART     4
#define BURIED_ROOM_MAX       ((uint64_t)16 << 30)

/* Counts that a tombstone of this key ("namespace/name") had contents of `before` bytes, and has `after`. */
int buried_change(struct store *store, const char *key, uint64_t before, uint64_t after);
/* Whether contents of so many bytes may be buried besides: 1 or 0. */
int buried_has_room(struct store *store, const char *key, uint64_t size);
