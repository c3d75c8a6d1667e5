/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The election, from the first credential on. */
#include "lease/lease.h"

void elect_begin(struct lease *lease);
/* What must outlive our lead: it is written after the claim. -ENOMEM, -EPROTO. */
int elect_keep(struct lease *lease, const struct message_lasting *lasting);
/* Nothing of this replica runs: it gives the lead up, to `successor` first ("": to any), and the process ends. late: a write of
 * ours may still be on its way. */
void elect_release(struct lease *lease, const char *successor, bool late);
void elect_done(struct lease *lease);
