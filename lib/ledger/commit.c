/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/commit.h"

#include <errno.h>

#include "ledger/handle/flush.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/transaction.h"

int ledger_commit(struct ledger *ledger)
{
        return ledger_end(ledger, ledger_flush(ledger));
}

int ledger_try_commit(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r == -EBUSY && !ledger->in_transaction ? r : ledger_end(ledger, r);
}

int ledger_hold(struct ledger *ledger)
{
        int r = ledger_try_begin(ledger);

        return r == -EBUSY ? 0 : r;
}

int ledger_try_hold(struct ledger *ledger)
{
        int r = ledger_try_begin(ledger);

        return r < 0 ? r : ledger_try_flush(ledger);
}

#define WEIGHT_MAX 600

bool ledger_is_full(const struct ledger *ledger)
{
        return ledger->weight >= WEIGHT_MAX;
}

bool ledger_dirty(const struct ledger *ledger)
{
        return ledger->in_transaction || ledger->cache.dirty || ledger->history.first;
}
