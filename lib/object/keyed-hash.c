/* SPDX-License-Identifier: Apache-2.0 */
/* See keyed-hash.h. The key belongs to the process: nobody ever has two. */
#include "object/keyed-hash.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

static struct siphash process_key; /* a hash of nothing, which has taken the key */
static bool has_key;

int keyed_hash_begin(const void *key, size_t size)
{
        if (size != SIPHASH_KEY_SIZE)
                return -EPROTO;
        process_key = siphash_begin(key);
        has_key = true;
        return 0;
}

struct siphash keyed_hash_of(enum hashed hashed)
{
        struct siphash hash = process_key;

        assert(has_key);
        siphash_word(&hash, hashed);
        return hash;
}

/* The size comes first, so that no input is a prefix of another. */
void keyed_hash_add(struct siphash *hash, const void *bytes, size_t size)
{
        uint64_t last;

        siphash_word(hash, size);
        last = siphash_words(hash, bytes, size);
        if (size % 8 > 0)
                siphash_word(hash, last);
}

uint64_t keyed_hash_end(struct siphash hash, const void *bytes, size_t size)
{
        uint64_t number;

        keyed_hash_add(&hash, bytes, size);
        number = siphash_finish(&hash).low;
        return number ? number : 1;
}

uint64_t keyed_hash_key_name(void)
{
        return keyed_hash_end(keyed_hash_of(HASHED_KEY_NAME), NULL, 0);
}
