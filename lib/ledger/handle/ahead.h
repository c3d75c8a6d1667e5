/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reading rows from the database into the cache, and those behind them with them: see ahead.c. */
#include <stdbool.h>

#include "ledger/row/cache.h"

struct ledger;

/* Whether it is known, without a question to the database, that the row is not there. */
bool ahead_knows_of_none(struct ledger *ledger, const struct cached_row *cached);
/* Reads the row, or that it is not there; perhaps also rows behind it. 0 or a negative errno. */
int ahead_load(struct ledger *ledger, struct cached_row *cached);
void ahead_note_use(struct ledger *ledger, struct cached_row *cached); /* the row was asked for */
void ahead_forget(struct ledger *ledger); /* forgets where there are no rows: one was added. Frees, too. */
