/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/row/index.h"

#define INDEX_OF_PLAIN(field)
#define INDEX_OF_INDEXED(field)                      .field = row->field,
#define INDEX_OF(kind, index, number, column, field) INDEX_OF_##index(field)

struct row_index row_index(const struct ledger_row *row)
{
        return (struct row_index){LEDGER_STATE(INDEX_OF)};
}

#define SAME_PLAIN(field)
#define SAME_INDEXED(field)                      &&a->field == b->field
#define SAME(kind, index, number, column, field) SAME_##index(field)

bool row_index_is_same(const struct row_index *a, const struct row_index *b)
{
        return true LEDGER_STATE(SAME);
}
