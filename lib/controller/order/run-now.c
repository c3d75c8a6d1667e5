/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/order/run-now.h"

#include <errno.h>
#include <string.h>

#include "controller/clock.h"
#include "controller/effects.h"
#include "ipc/message-id.h"

struct search {
        struct controller *controller;
        struct watch *watch;
        const char *key;
        bool release;
        size_t found;
};

static int push(const struct search *search, const struct ledger_row *row)
{
        struct queue_item item = {
                .key = row->key,
                .uid = row->uid,
                .kind = ledger_row_kind(row),
                .suspect = ledger_row_is_suspect(row),
                .urgent = !search->release,
                .reason = RUN_REQUESTED,
        };
        unsigned number = (unsigned)(search->watch - search->controller->watch);
        int r = queue_push(search->controller->queue, number, &item, search->controller->now.boottime);

        return r < 0 ? r : 0;
}

static int take_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        struct search *search = userdata;
        struct ledger_row changed = *row;
        int r;

        if (strcmp(row->key, search->key) != 0 || (search->release && row->quarantined_until == 0))
                return 0;
        search->found++;
        changed.next_realtime = ledger_time(search->controller);
        changed.permanent = false;
        if (search->release)
                changed.crashes = changed.crashed_realtime = changed.quarantined_until = 0;
        r = push(search, &changed);
        return r < 0 ? r : ledger_put(search->controller->ledger, watch_name, &changed);
}

#define UIDS_MAX 100 /* of one key: its rows stand together */

int run_now(struct controller *controller, struct watch *watch, const char *key, bool release)
{
        struct search search = {controller, watch, key, release, 0};
        int r = ledger_visit(controller->ledger, watch->config->name, key, "", UIDS_MAX, take_row, &search);

        if (r < 0)
                return r;
        if (search.found > 0)
                controller_log(
                        controller, LOG_NOTICE, release ? MESSAGE_ID_RELEASED : NULL,
                        LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key}),
                        "%s of watch %s %s", key, watch->config->name,
                        release ? "was released from quarantine by hand, and runs as soon as nothing else "
                                  "does"
                                : "runs now, as it was asked for by hand");
        controller_settle_soon(controller);
        return search.found > 0 ? 0 : -ENOENT;
}
