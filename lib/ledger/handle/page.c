/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/page.h"

#include <errno.h>
#include <string.h>

#include "ledger/database/result.h"
#include "ledger/handle/handle.h"
#include "ledger/row/read.h"

int ledger_visit_page(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata)
{
        struct page {
                char *watch;
                struct ledger_row row;
        } *page = calloc(limit, sizeof(*page));
        size_t count = 0;
        int code = SQLITE_DONE, r = 0;

        if (!page)
                return -ENOMEM;
        while (r >= 0 && count < limit && (code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct ledger_row row;

                r = ledger_borrow_row(statement, &row);
                if (r >= 0)
                        r = ledger_row_copy(&row, &page[count].row);
                if (r < 0)
                        break;
                page[count].watch = strdup(ledger_column(statement, 0));
                count++;
        }
        if (r >= 0)
                r = ledger_errno(ledger->database, code);
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);

        for (size_t i = 0; i < count; i++) {
                if (r >= 0)
                        r = page[i].watch ? visit(page[i].watch, &page[i].row, userdata) : -ENOMEM;
                free(page[i].watch);
                ledger_row_done(&page[i].row);
        }
        free(page);
        return r < 0 ? r : (int)count;
}
