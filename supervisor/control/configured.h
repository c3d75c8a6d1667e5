/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger's rows of configured watches. It keeps those of removed ones, in case a watch of that name
 * comes back: nothing of these runs, so none of their objects is in trouble.
 */
#include "base/text.h"
#include "ledger/ledger.h"

struct supervisor;

/* Visits at most `limit` objects in quarantine, by watch. 0, or negative errno. */
int configured_visit_quarantined(const struct supervisor *supervisor, size_t limit, ledger_visit_t visit,
                                 void *userdata);
uint64_t configured_count_quarantined(const struct supervisor *supervisor);
/* Visits at most `limit` objects that fail, the worst first. Returns how many, or negative errno. */
int configured_visit_worst(const struct supervisor *supervisor, size_t limit, ledger_visit_t visit,
                           void *userdata);
/* The removed watches, for the status: {watch, objects, failing}, each. */
void configured_write_removed(const struct supervisor *supervisor, struct text *json);
