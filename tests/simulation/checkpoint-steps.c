/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of lib/ledger/database/checkpoint.c: no thread, and a gate that the simulation closes. */
#include "tests/simulation/checkpoint-steps.h"

#include <errno.h>
#include <stdlib.h>

#include "ledger/handle/handle.h"

bool checkpoint_gate_closed;

struct checkpointer {
        int unused;
};

int checkpointer_new(const char *path _unused_, struct checkpointer **ret, struct error *error _unused_)
{
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

void checkpointer_start(struct checkpointer *checkpointer _unused_)
{
}

bool checkpointer_enter(struct checkpointer *checkpointer _unused_, bool wait)
{
        return wait || !checkpoint_gate_closed;
}

int checkpointer_leave(struct checkpointer *checkpointer _unused_, bool committed _unused_)
{
        return 0;
}

void checkpointer_free(struct checkpointer *checkpointer)
{
        free(checkpointer);
}

void ledger_abandon(struct ledger *ledger)
{
        if (sqlite3_get_autocommit(ledger->database) == 0)
                (void)sqlite3_exec(ledger->database, "ROLLBACK", NULL, NULL, NULL);
        ledger->in_transaction = false;
        ledger->sums_changed = ledger->small_changed = false;
        cache_clear(&ledger->cache, true);
}
