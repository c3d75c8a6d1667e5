/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our finalizer comes off one object without a cleanup, because somebody answers for it. A worker does it,
 * as a run of its own that starts no handler; the log keeps who asked, and why. All objects: uninstall.c.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "controller/effects.h"
#include "controller/order/release.h"
#include "ipc/message-id.h"

struct search {
        struct controller *controller;
        struct watch *watch;
        const char *key;
        size_t found;
};

static int take_row(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        struct search *search = userdata;
        struct queue_item item = {.key = row->key,
                                  .uid = row->uid,
                                  .kind = CHANGE_UPDATED,
                                  .urgent = true,
                                  .reason = RUN_RELEASE};
        unsigned number = (unsigned)(search->watch - search->controller->watch);
        int r;

        if (strcmp(row->key, search->key) != 0)
                return 0;
        search->found++;
        r = queue_push(search->controller->queue, number, &item, search->controller->now.boottime);
        return r < 0 ? r : 0;
}

#define UIDS_MAX 100 /* of one key: its rows stand together */

int release_finalizer(struct controller *controller, struct watch *watch, const char *key, const char *why,
                      uint64_t user)
{
        struct search search = {controller, watch, key, 0};
        char name[24];
        int r = ledger_visit(controller->ledger, watch->config->name, key, "", UIDS_MAX, take_row, &search);

        if (r < 0)
                return r;
        if (search.found == 0)
                return -ENOENT;
        snprintf(name, sizeof(name), "%llu", (unsigned long long)user);
        controller_log(
                controller, LOG_WARNING, MESSAGE_ID_FINALIZER_RELEASED,
                LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key},
                           {"RECONCILED_USER", name}, {"RECONCILED_WHY", why}),
                "our finalizer of %s of watch %s is taken off by hand (user %s): %s; what its handler has "
                "made may be left over",
                key, watch->config->name, name, why);
        controller_settle_soon(controller);
        return 0;
}
