/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/run/twin.h"

#include <errno.h>

#include "config/config-watch.h"
#include "controller/due/doubt.h"
#include "controller/due/push.h"
#include "object/identity.h"

/* The next one after `last`; NULL begins and ends. */
static struct watch *twin_next(const struct watch *watch, const struct watch *last)
{
        struct watch *twin;

        while ((twin = watch_next(watch->controller, last))) {
                if (twin != watch && !twin->config->owner && !watch->config->owner &&
                    config_is_of_kind(twin->config, watch->config))
                        return twin;
                last = twin;
        }
        return NULL;
}

/* Whether the row's watch has run only before the object left it: the object is selected again, or we have made it due, and
 * its run is still to come. A failure counts as that run. */
static bool is_yet_to_run(const struct ledger_row *row)
{
        return row->handled_realtime > 0 && row->fingerprint == 0 && row->attempts == 0 && !row->permanent;
}

bool twin_owes(const struct watch *watch, const char *key, const char *uid)
{
        struct ledger *ledger = watch->controller->ledger;
        const struct ledger_row *row;

        for (const struct watch *twin = NULL; (twin = twin_next(watch, twin));)
                if (ledger_look(ledger, twin->config->name, key, uid, &row) >= 0 && !row->unselected &&
                    !is_yet_to_run(row))
                        return true;
        return false;
}

bool twin_is_doubtful(const struct watch *watch, const char *key, const char *uid)
{
        for (const struct watch *twin = NULL; (twin = twin_next(watch, twin));)
                if (doubt_is(twin, key, uid))
                        return true;
        return false;
}

void twin_written(const struct watch *watch, const char *key, const char *uid,
                  char version[TWIN_VERSION_SIZE])
{
        const struct ledger_row *row;

        for (const struct watch *twin = NULL; (twin = twin_next(watch, twin));)
                if (ledger_look(watch->controller->ledger, twin->config->name, key, uid, &row) >= 0 &&
                    row->written_realtime > twin->epoch_since &&
                    resource_version_number(row->written_version) > resource_version_number(version))
                        snprintf(version, TWIN_VERSION_SIZE, "%s", row->written_version);
}

/* What the twin handled earlier proves nothing about what the handler of the other watch has done since. That
 * handler has also run since its last success if it failed later, or was in flight when we died. */
static bool is_of_before(const struct ledger_row *row, const struct ledger_row *left)
{
        return !row->deleting && !row->unselected &&
               (left->handled_realtime == 0 || row->handled_realtime <= left->handled_realtime ||
                left->attempts > 0 || ledger_row_is_suspect(left));
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

int twin_rerun(const struct watch *watch, const struct ledger_row *left)
{
        int r = 0;

        for (struct watch *twin = NULL; r >= 0 && (twin = twin_next(watch, twin));) {
                struct ledger_row row = {0};

                r = ledger_get(watch->controller->ledger, twin->config->name, left->key, left->uid, &row);
                if (r >= 0 && is_of_before(&row, left))
                        r = make_due(twin, &row);
                ledger_row_done(&row);
                r = r == -ENOENT ? 0 : r;
        }
        return r;
}
