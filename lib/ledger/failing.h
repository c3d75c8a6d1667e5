/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pages of rows for people: those that fail, are in quarantine, or wait for their time. While the ledger
 * cannot be written, the rows are those of the last commit. Each returns how many rows were found, at most
 * `limit`, or a negative errno.
 */
#include <stdint.h>

#include "ledger/row/row.h"

struct ledger;

/* The place after which a page begins; "" and 0 start. */
struct ledger_place {
        uint64_t next_realtime; /* usec of the ledger's clock; for ledger_list_waiting() */
        const char *watch, *key, *uid;
};
/* Rows of the place's watch, by key and UID. */
int ledger_list_failing(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                        ledger_visit_t visit, void *userdata);
int ledger_list_quarantined(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                            ledger_visit_t visit, void *userdata);
/* Likewise those that are in quarantine, or would run alone (ledger_row_is_suspect()). */
int ledger_list_crashed(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                        ledger_visit_t visit, void *userdata);
/* Rows of all watches that have a time, by time, watch, key and UID. */
int ledger_list_waiting(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                        ledger_visit_t visit, void *userdata);

/* Whether a watch of this name is configured: rows of others are kept, but are no trouble. */
struct ledger_known {
        bool (*is_known)(const char *watch, const void *userdata);
        const void *userdata;
};
/* The rows of all watches that fail, given-up ones first, then throttled ones, then by attempts.
 * `known` NULL: with watches that are not configured. */
int ledger_visit_worst(struct ledger *ledger, size_t limit, const struct ledger_known *known,
                       ledger_visit_t visit, void *userdata);

/*
 * How many rows a watch has, and how many of them fail; no question to the database. Without a row of the
 * watch: 0. While the ledger cannot be written, the counts are those of the last commit. Errors: a negative
 * errno.
 */

/* Rows that have failed since their last success. */
struct ledger_failing {
        uint64_t failing;
        uint64_t permanent; /* failing rows that are given up until a change */
        uint64_t throttled; /* failing rows with unrecoverable answers to our writes; never permanent */
};

int64_t ledger_count(struct ledger *ledger, const char *watch);
int64_t ledger_count_quarantined(struct ledger *ledger, const char *watch);
int64_t ledger_count_crashed(struct ledger *ledger, const char *watch); /* as ledger_list_crashed() */
int ledger_count_failing(struct ledger *ledger, const char *watch, struct ledger_failing *ret);

/* The watch that follows `name` in the order of names, of those that have or had rows; "" starts. NULL:
 * there is none. Borrowed until rows are written. */
const char *ledger_next_watch(struct ledger *ledger, const char *name);
