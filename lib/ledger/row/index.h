/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The columns of a row that an index of the database has. A row in which none of them has changed is written
 * at half the cost. */
#include "ledger/row/row.h"

#define IF_INDEXED_PLAIN(part)
#define IF_INDEXED_INDEXED(part)                        part
#define INDEX_WIDE(kind, index, number, column, field)  IF_INDEXED_##index(LEDGER_WIDE_##kind(field))
#define INDEX_SMALL(kind, index, number, column, field) IF_INDEXED_##index(LEDGER_SMALL_##kind(field))
struct row_index {
        LEDGER_STATE(INDEX_WIDE)
        LEDGER_STATE(INDEX_SMALL)
};

struct row_index row_index(const struct ledger_row *row);
bool row_index_is_same(const struct row_index *a, const struct row_index *b);
