/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger that was lost (set aside, or taken away) while the stores were not. It knew what had been handed
 * to handlers; until everything that exists has been handed out again, an object that it does not know
 * counts as handed out: its deletion is told, once too often rather than never. That outlives restarts, in a
 * row of the scopes under a name that no watch has.
 */
#include "controller/run/lost-ledger.h"

#include <stdlib.h>

#include "controller/effects.h"
#include "queue/look.h"

#define LOST_ROW "" /* no watch has this name */

int ledger_lost_load(struct controller *controller, bool lost)
{
        _cleanup_free_ char *mark = NULL, *cluster = NULL;
        int r;

        if (lost) {
                controller->ledger_lost = true;
                r = ledger_scope_set(controller->ledger, LOST_ROW, "lost", "");
                return r < 0 ? r : ledger_commit(controller->ledger); /* the next start sees a ledger */
        }
        r = ledger_scope_get(controller->ledger, LOST_ROW, &mark, &cluster);
        if (r >= 0)
                controller->ledger_lost = mark[0] != '\0';
        return r;
}

void ledger_lost_review(struct controller *controller)
{
        int r;

        if (!controller->ledger_lost || queue_count_all(controller->queue).queued > 0)
                return;
        FOREACH_WATCH(watch, controller)
                if (!watch->synced || !watch->swept || watch->paused_realtime > 0)
                        return;
        r = ledger_scope_set(controller->ledger, LOST_ROW, "", "");
        if (r < 0) {
                ledger_failed(controller, r);
                return;
        }
        controller->ledger_lost = false;
        controller_settle_soon(controller);
}
