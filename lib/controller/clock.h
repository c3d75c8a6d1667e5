/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The time that the caller has told, and the ledger's clock, which nobody sets. All times in microseconds. */
#include "controller/controller.h"

/* Before each input. */
void controller_tell_time(struct controller *controller, const struct controller_now *now);
uint64_t ledger_time(const struct controller *controller); /* the ledger's clock now */
/* 0: before this boot. */
uint64_t ledger_time_to_boottime(const struct controller *controller, uint64_t time);
