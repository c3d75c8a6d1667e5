/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many rows a watch has, and how many of them fail; no question to the database. Without a row of the
 * watch: 0. While the ledger cannot be written, the counts are those of the last commit. Errors: a negative
 * errno.
 */
#include <stdint.h>

struct ledger;

/* Rows that have failed since their last success. */
struct ledger_failing {
        uint64_t failing;
        uint64_t permanent; /* failing rows that are given up until a change */
        uint64_t throttled; /* failing rows with unrecoverable answers to our writes; never permanent */
};

int64_t ledger_count(struct ledger *ledger, const char *watch);
int64_t ledger_count_quarantined(struct ledger *ledger, const char *watch);
int ledger_count_failing(struct ledger *ledger, const char *watch, struct ledger_failing *ret);

/* The watch that follows `name` in the order of names, of those that have or had rows; "" starts. NULL:
 * there is none. Borrowed until rows are written. */
const char *ledger_next_watch(struct ledger *ledger, const char *name);
