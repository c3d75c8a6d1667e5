/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/count.h"

#include <errno.h>
#include <string.h>

#include "ledger/handle/flush.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/tally.h"

/* Counts changes that are not written yet as well, where they can be written now. */
static int prepare_count(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r < 0 && r != -EBUSY ? r : ledger_tallies_know(ledger);
}

/* *ret: NULL if the watch never had rows. */
static int look_at(struct ledger *ledger, const char *watch, const struct ledger_tally **ret)
{
        int r = prepare_count(ledger);

        *ret = r < 0 ? NULL : ledger_tally_find(ledger, watch);
        return r;
}

int64_t ledger_count(struct ledger *ledger, const char *watch)
{
        const struct ledger_tally *tally;
        int r = look_at(ledger, watch, &tally);

        return tally ? (int64_t)tally->rows : r;
}

int ledger_count_failing(struct ledger *ledger, const char *watch, struct ledger_failing *ret)
{
        const struct ledger_tally *tally;
        int r = look_at(ledger, watch, &tally);

        *ret = tally ? tally->failing : (struct ledger_failing){0};
        return r;
}

int64_t ledger_count_quarantined(struct ledger *ledger, const char *watch)
{
        const struct ledger_tally *tally;
        int r = look_at(ledger, watch, &tally);

        return tally ? (int64_t)tally->quarantined : r;
}

const char *ledger_next_watch(struct ledger *ledger, const char *name)
{
        const char *found = NULL;

        if (prepare_count(ledger) < 0)
                return NULL;
        for (const struct ledger_tally *tally = ledger->tally; tally; tally = tally->next)
                if (strcmp(tally->watch, name) > 0 && (!found || strcmp(tally->watch, found) < 0))
                        found = tally->watch;
        return found;
}
