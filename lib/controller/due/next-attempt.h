/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* When an object is due again. */
#include "controller/controller.h"

#define BEHIND_LONG_USEC    USEC_PER_SEC
#define BEHIND_USEC         (20 * UINT64_C(1000)) /* the watch usually needs less to show our own write */
/* Up to this a delay waits in the queue; above, only in the ledger, where it costs no memory. */
#define DELAY_IN_QUEUE_USEC (60 * UINT64_C(1000000))

uint64_t retry_delay(struct controller *controller, const struct config_watch *config, uint64_t attempts);
/* A little longer than `held_usec`, so that not all runs come at once. */
uint64_t held_delay(struct controller *controller, uint64_t held_usec);
uint64_t throttle_units(uint64_t number); /* of retry.throttle: Fibonacci, up to 610 */
/* The time of the next resync, by the ledger's clock; the time in `row`, where that serves as well. */
uint64_t resync_time(struct watch *watch, const struct ledger_row *row, uint64_t now);
