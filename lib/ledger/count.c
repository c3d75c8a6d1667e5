/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/count.h"

#include <errno.h>
#include <string.h>

#include "ledger/handle/flush.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/tally.h"

/* Counts changes that are not written yet as well, where they can be written now. */
static int prepare(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r < 0 && r != -EBUSY ? r : ledger_tallies_know(ledger);
}

int64_t ledger_count(struct ledger *ledger, const char *watch)
{
        int r = prepare(ledger);
        const struct ledger_tally *tally = r < 0 ? NULL : ledger_tally_find(ledger, watch);

        return r < 0 ? r : tally ? (int64_t)tally->rows : 0;
}

int ledger_count_failing(struct ledger *ledger, const char *watch, struct ledger_failing *ret)
{
        int r = prepare(ledger);
        const struct ledger_tally *tally = r < 0 ? NULL : ledger_tally_find(ledger, watch);

        if (r >= 0)
                *ret = tally ? (struct ledger_failing){tally->failing, tally->permanent, tally->throttled}
                             : (struct ledger_failing){0};
        return r;
}

int64_t ledger_count_quarantined(struct ledger *ledger, const char *watch)
{
        int r = prepare(ledger);
        const struct ledger_tally *tally = r < 0 ? NULL : ledger_tally_find(ledger, watch);

        return r < 0 ? r : tally ? (int64_t)tally->quarantined : 0;
}

const char *ledger_next_watch(struct ledger *ledger, const char *name)
{
        const char *found = NULL;

        if (prepare(ledger) < 0)
                return NULL;
        for (size_t i = 0; i < ledger->tally_count; i++)
                if (strcmp(ledger->tally[i].watch, name) > 0 &&
                    (!found || strcmp(ledger->tally[i].watch, found) < 0))
                        found = ledger->tally[i].watch;
        return found;
}
