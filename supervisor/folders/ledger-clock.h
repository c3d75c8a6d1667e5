/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger's clock decides when something on record is due: all times of its rows are by it. This clock
 * begins as CLOCK_REALTIME, goes on as CLOCK_BOOTTIME does, and does not follow when the machine's clock
 * is set: a backoff is as long as it was meant to be, whether the machine's clock goes back or forward
 * meanwhile. Its offset from CLOCK_BOOTTIME is in the state folder, so that the next life in the same
 * boot has the same clock. After another boot it is CLOCK_REALTIME again, but never before its last known
 * value: then all that waits still waits for as long as it did.
 */
#include <stdbool.h>
#include <stdint.h>

struct supervisor;

struct ledger_clock {
        char boot[33];   /* in which `offset` holds; "": unknown */
        uint64_t offset; /* from CLOCK_BOOTTIME */
        uint64_t seen;   /* the time by it when that was last written down */
};

uint64_t ledger_now(const struct supervisor *supervisor);
/* For people, and for other processes of this boot. */
uint64_t ledger_to_realtime(const struct supervisor *supervisor, uint64_t time);
uint64_t ledger_to_boottime(const struct supervisor *supervisor, uint64_t time);
/* left: of the last life; zeros where nothing is known. */
void ledger_clock_begin(struct supervisor *supervisor, const struct ledger_clock *left);
bool ledger_clock_is_stale(const struct supervisor *supervisor); /* it should be written down again */
