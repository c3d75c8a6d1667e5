/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See epoch.h. The watcher keeps the number in its store, and this file keeps the last one that it was told in
 * a row of the scopes, under a name that no watch has. Whatever is lost between the two, be it the store, or
 * the ledger's last commits, they differ, and the next message says so again.
 */
#include "controller/change/epoch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "controller/controller-watch.h"
#include "controller/due/due.h"
#include "controller/effects.h"
#include "ledger/ledger-scope.h"
#include "ledger/rows.h"

#define EPOCH_ROW "%s/epoch" /* no watch has a slash in its name */

static int epoch_row_name(const struct watch *watch, char **ret)
{
        *ret = format_string(EPOCH_ROW, watch->config->name);
        return *ret ? 0 : -ENOMEM;
}

int epoch_load(struct watch *watch)
{
        _cleanup_free_ char *name = NULL, *epoch = NULL, *since = NULL;
        uint64_t now = ledger_time(watch->controller);
        int r = watch->config->owner ? 0 : epoch_row_name(watch, &name);

        if (r < 0 || !name)
                return r;
        r = ledger_scope_get(watch->controller->ledger, name, &epoch, &since);
        if (r < 0)
                return r;
        watch->epoch = strtoull(epoch, NULL, 10);
        watch->epoch_since = strtoull(since, NULL, 10);
        /* A clock that was set back meanwhile must not make all to come a part of the past. */
        if (watch->epoch_since > now)
                watch->epoch_since = now;
        return 0;
}

static int save_epoch(const struct watch *watch)
{
        _cleanup_free_ char *name = NULL;
        char epoch[24], since[24];
        int r = watch->config->owner ? 0 : epoch_row_name(watch, &name);

        if (r < 0 || !name)
                return r;
        snprintf(epoch, sizeof(epoch), "%" PRIu64, watch->epoch);
        snprintf(since, sizeof(since), "%" PRIu64, watch->epoch_since);
        return ledger_scope_set(watch->controller->ledger, name, epoch, since);
}

int epoch_take(struct watch *watch, uint64_t epoch)
{
        if (epoch == watch->epoch)
                return 0;
        watch->epoch = epoch;
        watch->epoch_since = ledger_time(watch->controller);
        /* A restore may bring an object back whose due work was dropped when another one took its name. */
        marks_forget(&watch->finalized);
        ledger_due_again(watch->controller->ledger);
        due_arm(watch->controller);
        return save_epoch(watch);
}
