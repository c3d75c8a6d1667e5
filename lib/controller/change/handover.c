/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object has left a watch, and another watch of its kind has it from now on. What that one knows of an
 * earlier time (it had the object before) says nothing of what the first one's handler has done since: it
 * runs again. With the list of children it takes over what is owed to them: should the object be deleted
 * before its first run, it must be told, so that they are deleted.
 *
 * The row of the watch that was left goes in the same commit. If we die before that, that watch is told
 * again, and comes here again.
 */
#include "controller/change/handover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/change/push.h"

/* Twice the same kind does no harm. */
static int join_kinds(struct ledger_row *row, const char *kinds)
{
        char *joined;

        if (!kinds[0] || strstr(row->kinds, kinds))
                return 0;
        if (asprintf(&joined, "%s%s%s", row->kinds, row->kinds[0] ? "," : "", kinds) < 0)
                return -ENOMEM;
        free(row->kinds);
        row->kinds = joined;
        return 0;
}

/* Whether the other one has run since this one had the object. A run that was tried twice, or was under way
 * when we died, may have given the list away before. */
static bool is_of_before(const struct ledger_row *theirs, const struct ledger_row *left)
{
        return left->handled_realtime == 0 || theirs->handled_realtime <= left->handled_realtime ||
               left->attempts > 0 || ledger_row_is_suspect(left);
}

static int make_due(struct watch *watch, struct ledger_row *row)
{
        const struct record_change change = {.key = row->key, .uid = row->uid, .resource_version = ""};
        struct controller *controller = watch->controller;
        int r;

        ledger_row_unknown(row);
        r = ledger_put(controller->ledger, watch->config->name, row);
        if (r < 0 || controller->uninstall.active || row->attempts > 0)
                return r; /* a failure runs when its backoff is over */
        return change_push(watch, &change, CHANGE_UPDATED, row, RUN_TAKEN_OVER, 0);
}

/* One that has a finalizer hears of the end by that. */
static int tell_one(struct watch *watch, const struct ledger_row *left, bool is_heir)
{
        struct controller *controller = watch->controller;
        struct ledger_row row = {0};
        int r = 0;

        if (is_heir && !watch->config->finalizer)
                r = ledger_owe(controller->ledger, watch->config->name, left->key, left->uid);
        if (r >= 0)
                r = ledger_get(controller->ledger, watch->config->name, left->key, left->uid, &row);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (is_heir)
                r = join_kinds(&row, left->kinds);
        if (r >= 0 && !row.deleting && !row.unselected && (is_heir || is_of_before(&row, left)))
                r = make_due(watch, &row);
        ledger_row_done(&row);
        return r;
}

int handover_tell(struct watch *watch, const struct ledger_row *row, const char *heir)
{
        if (watch->config->owner)
                return 0;
        FOREACH_WATCH(other, watch->controller) {
                int r;

                if (other == watch || other->leaving || other->config->owner ||
                    !config_is_of_kind(other->config, watch->config))
                        continue;
                r = tell_one(other, row, strcmp(other->config->name, heir) == 0);
                if (r < 0)
                        return r;
        }
        return 0;
}
