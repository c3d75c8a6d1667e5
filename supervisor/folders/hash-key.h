/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The key of lib/object/keyed-hash.h: hash.key of the state folder, made at the first start, and on the disk before the first
 * hash is. It goes to watchers and workers with their configuration, and nowhere else.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct supervisor;

/* Reads or makes it; the ledger is open. A key that is lost or damaged, while the ledger has hashes, is replaced and that is
 * logged: objects that were handled count as changed. So do they with the key of another state folder, which is logged, too. Else a negative errno with a text. */
int hash_key_begin(struct supervisor *supervisor, struct error *error);
void hash_key_wipe(struct supervisor *supervisor);
