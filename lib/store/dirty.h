/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The dirty index: keys that are not announced yet, in the order in which they became dirty, and namespaces
 * in turns: 10,000 keys of one do not hold up one key of another. One entry for the update of a key, one for
 * each UID of it that was deleted or unselected, or owns what has changed. A key marked twice keeps its
 * place with the newest data, but for what an owner owns: there it keeps all versions ("10.-15"), as many as
 * there is room for, or none. The end of an object comes before the update of the next object of that name.
 * 0 or a negative errno; writes go into the writer's transaction.
 */
#include "ipc/message.h"

struct store;

#define DIRTY_VERSIONS_MAX 560 /* bytes, of what an owner owns */

int store_dirty_add(struct store *store, const struct record_change *change); /* sequence is assigned */
/* Takes the next `max` entries out, calling for each with what it may borrow; the last `spare`
 * of them only where the turn goes to another namespace than before. A negative return ends it
 * and is returned. */
typedef int (*store_dirty_t)(const struct record_change *change, void *userdata);
int store_dirty_take(struct store *store, size_t max, size_t spare, store_dirty_t visit, void *userdata);
bool store_dirty_turns(
        struct store *store); /* the next one is of another namespace than the last one taken */
uint64_t store_dirty_count(const struct store *store);
