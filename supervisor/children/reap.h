/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Children that have ended: their slots are freed, and an end without an order is fatal. */

struct supervisor;

void children_reap(struct supervisor *supervisor); /* on SIGCHLD */
