/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole state as one JSON document, for reconciledctl. Members are documented in reconciledctl(1). */
#include "base/text.h"
#include "ledger/ledger.h"

struct assignment;
struct supervisor;

int status_write(struct supervisor *supervisor, struct text *json); /* negative: no memory, or no ledger */
/* Parts of it, each with a comma after it (base/text.h). */
void status_write_watch(const struct supervisor *supervisor, size_t index, struct text *json);
/* Writes a worker with this run of it; NULL: with the one whose handler is at work. */
void status_write_worker(const struct supervisor *supervisor, size_t index, const struct assignment *given,
                         struct text *json);
/* Writes an object in trouble. */
void status_write_row(const struct supervisor *supervisor, const char *watch, const struct ledger_row *row,
                      struct text *json);
void status_write_doubt(const struct supervisor *supervisor, const struct ledger_doubt *doubt,
                        struct text *json);
