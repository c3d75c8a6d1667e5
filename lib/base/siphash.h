/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SipHash-1-3 with 128 bits (Aumasson and Bernstein), a keyed function: without the key nobody can predict a
 * hash, nor whether two inputs have the same one. It is in a header because most inputs are a few words. The
 * test has the vectors of the reference implementation too, which are for 2 and 4 rounds. With 2 and 4
 * rounds a watcher would take 11 % longer for the event of a 2 KB object than with XXH3, with 1 and 3 rounds
 * it takes 6 % longer.
 */
#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIPHASH_KEY_SIZE 16

#ifndef SIPHASH_ROUNDS
#define SIPHASH_ROUNDS      1 /* of each word */
#define SIPHASH_LAST_ROUNDS 3
#endif

struct siphash {
        uint64_t v0, v1, v2, v3;
};

struct siphash_sum {
        uint64_t low, high; /* as little-endian bytes, low before high: what the reference gives */
};

static inline uint64_t siphash_rotate(uint64_t word, unsigned bits)
{
        return word << bits | word >> (64 - bits);
}

static inline void siphash_rounds(struct siphash *s, int count)
{
        for (int i = 0; i < count; i++) {
                s->v0 += s->v1;
                s->v2 += s->v3;
                s->v1 = siphash_rotate(s->v1, 13) ^ s->v0;
                s->v3 = siphash_rotate(s->v3, 16) ^ s->v2;
                s->v0 = siphash_rotate(s->v0, 32) + s->v3;
                s->v2 += s->v1;
                s->v1 = siphash_rotate(s->v1, 17) ^ s->v2;
                s->v3 = siphash_rotate(s->v3, 21) ^ s->v0;
                s->v2 = siphash_rotate(s->v2, 32);
        }
}

static inline void siphash_word(struct siphash *s, uint64_t word)
{
        s->v3 ^= word;
        siphash_rounds(s, SIPHASH_ROUNDS);
        s->v0 ^= word;
}

static inline uint64_t siphash_read(const void *bytes)
{
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        return le64toh(word);
}

/* Hashes all words but the last one, which has less than 8 bytes and is returned. */
static inline uint64_t siphash_words(struct siphash *s, const void *bytes, size_t size)
{
        const uint8_t *next = bytes ? bytes : "", *end = next + size;
        uint64_t last = 0;

        for (; end - next >= 8; next += 8)
                siphash_word(s, siphash_read(next));
        if (size >= 8 && next < end)
                return siphash_read(end - 8) >> (64 - 8 * (end - next));
        while (next < end)
                last = last << 8 | *--end;
        return last;
}

static inline struct siphash siphash_begin(const uint8_t key[SIPHASH_KEY_SIZE])
{
        const uint64_t low = siphash_read(key), high = siphash_read(key + 8);

        return (struct siphash){low ^ 0x736f6d6570736575, high ^ 0x646f72616e646f6d ^ 0xee,
                                low ^ 0x6c7967656e657261, high ^ 0x7465646279746573};
}

/* `hash` may not be used any more. */
static inline struct siphash_sum siphash_finish(struct siphash *hash)
{
        struct siphash_sum sum;

        hash->v2 ^= 0xee;
        siphash_rounds(hash, SIPHASH_LAST_ROUNDS);
        sum.low = hash->v0 ^ hash->v1 ^ hash->v2 ^ hash->v3;
        hash->v1 ^= 0xdd;
        siphash_rounds(hash, SIPHASH_LAST_ROUNDS);
        sum.high = hash->v0 ^ hash->v1 ^ hash->v2 ^ hash->v3;
        return sum;
}

/* Hashes the bytes alone, as the reference implementation does. */
static inline struct siphash_sum siphash_of(const uint8_t key[SIPHASH_KEY_SIZE], const void *bytes,
                                            size_t size)
{
        struct siphash s = siphash_begin(key);
        uint64_t last = siphash_words(&s, bytes, size);

        siphash_word(&s, last | (uint64_t)size << 56);
        return siphash_finish(&s);
}
