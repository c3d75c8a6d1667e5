/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The election, from the first credential on. */
#include "lease/lease.h"

void elect_begin(struct lease *lease);
/* Nothing of this replica runs: it gives the lead up, to `successor` first ("": to any), and the process ends. */
void elect_release(struct lease *lease, const char *successor);
void elect_done(struct lease *lease);
