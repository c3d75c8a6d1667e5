/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The runs that took longest in the last ten minutes, for `reconciledctl top`: one for each key, few, in
 * memory only. A pure data structure: it is told the time (any clock, usec).
 */
#include <stddef.h>
#include <stdint.h>

#define SLOWEST_MAX         20
#define SLOWEST_WINDOW_USEC (600 * UINT64_C(1000000))

struct slow_run {
        char *key;
        unsigned watch;
        const char *result; /* static */
        uint64_t took_usec, ended;
};

struct slowest {
        struct slow_run run[SLOWEST_MAX]; /* the longest first */
        size_t count;
};

/* 0 or -ENOMEM. */
int slowest_note(struct slowest *slowest, unsigned watch, const char *key, const char *result,
                 uint64_t took_usec, uint64_t now);
void slowest_forget(struct slowest *slowest, uint64_t now); /* what is too old */
void slowest_done(struct slowest *slowest);
