/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/lookup.h"

#include <errno.h>

#include "ledger/handle/ahead.h"
#include "ledger/handle/flush.h"
#include "ledger/handle/handle.h"

#define DIRTY_MAX 100 /* rows that are written at once; more of them would make a turn of the loop long */

static int load(struct ledger *ledger, struct cached_row *cached)
{
        return ahead_knows_of_none(ledger, cached) ? 0 : ahead_load(ledger, cached);
}

/* Makes room. Rows that cannot be written yet stay in the cache, which is larger than CACHE_ROWS then. */
static int flush_if_possible(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r == -EBUSY ? 0 : r;
}

int ledger_look_up(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   struct cached_row **ret)
{
        struct cached_row *cached = cache_find(&ledger->cache, watch, key, uid);
        int r = 0;

        if (!cached) {
                if (cache_is_full(&ledger->cache)) {
                        r = flush_if_possible(ledger);
                        cache_make_room(&ledger->cache);
                }
                if (r >= 0 && !(cached = cache_add(&ledger->cache, watch, key, uid)))
                        r = -ENOMEM;
                if (r >= 0)
                        r = load(ledger, cached);
                if (r < 0 && cached)
                        cache_forget(&ledger->cache, cached);
        } else {
                ahead_note_use(ledger, cached);
        }
        if (r >= 0)
                *ret = cached;
        return r;
}

int ledger_changed(struct ledger *ledger, struct cached_row *cached)
{
        cache_mark_dirty(&ledger->cache, cached);
        return ledger->cache.dirty_count > DIRTY_MAX ? flush_if_possible(ledger) : 0;
}
