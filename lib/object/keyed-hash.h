/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hashes of what users write: objects, children, lists of them. Where two hashes are the same, we do nothing; so nobody may be
 * able to make two contents of one hash. The key is a secret of the state folder (supervisor/folders/hash-key.h), which watchers
 * and workers get with their configuration.
 *
 * Why that is enough. Without the key, SipHash is as good as random: a content that was not hashed before has a hash that does
 * not depend on how it was chosen. Nobody who writes objects sees a hash, either; they are in the ledger, the stores and
 * `reconciledctl explain`. So there is nothing to search offline, and no birthday: a content is compared with the one that the
 * handler has seen, not with all others. What is left is to write objects to the API server and hope, at 2^-64 each time: with
 * 100,000 writes a second for a hundred years, one in 58,000. So 64 bits are kept and compared. More would help only against one
 * who has the key; he has read the state folder, and nothing is promised against him.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/siphash.h"

/* What for: the same bytes have another hash for another purpose. The numbers are kept in the state folder with the hashes. */
enum hashed {
        HASHED_KEY_NAME = 1,
        HASHED_OBJECT,
        HASHED_OBJECT_SUM,
        HASHED_VERSION,
        HASHED_PROGRAM_RESULT,
        HASHED_RELATED,
        HASHED_CHILD,
        HASHED_BODY,
        HASHED_STATE,
        HASHED_CHILD_LIST,
        HASHED_EVENT,
};

/* Must be called before the other functions, once in the life of a process. -EPROTO: that is no key. */
int keyed_hash_begin(const void *key, size_t size);
struct siphash keyed_hash_of(enum hashed hashed);
/* Parts are kept apart: "a" and "bc" are not "ab" and "c". */
void keyed_hash_add(struct siphash *hash, const void *bytes, size_t size);
/* Adds the bytes and returns the hash of all that was added, never 0. */
uint64_t keyed_hash_end(struct siphash hash, const void *bytes, size_t size);
/* A number by which two keys can be told apart, and that reveals nothing about them. */
uint64_t keyed_hash_key_name(void);
