/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After the machine went down, or where the note of what was in flight is lost: a row may say what was
 * handled before the last run of its object, and that object may have been changed back since. An object
 * whose resourceVersion is the one that its last run has read, or that our last write has made, cannot have
 * been. Each other one runs once, after all else, as its watch announces it.
 *
 * How often that has happened is counted in a row of the scopes under a name that no watch has; up to which
 * of these times all that a watch has was looked through, in another one. So it outlives restarts, also for
 * a watch that is not configured now.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "controller/change/unsure.h"
#include "controller/effects.h"
#include "ipc/message-id.h"

#define TIMES_ROW "/unsure" /* no watch has a slash in its name */
#define WATCH_ROW "%s/unsure"

static int read_times(struct controller *controller, const char *name, uint64_t *ret, bool *ret_exists)
{
        _cleanup_free_ char *times = NULL, *cluster = NULL;
        int r = ledger_scope_get(controller->ledger, name, &times, &cluster);

        if (r < 0)
                return r;
        *ret = strtoull(times, NULL, 10);
        if (ret_exists)
                *ret_exists = times[0] != '\0';
        return 0;
}

static int write_times(struct controller *controller, const char *name, uint64_t times)
{
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, times);
        return ledger_scope_set(controller->ledger, name, text, "");
}

int unsure_begun(struct controller *controller, bool *ret)
{
        return read_times(controller, TIMES_ROW, &controller->unsure_times, ret);
}

int unsure_begin(struct controller *controller, const char *why)
{
        bool exists;
        int r = unsure_begun(controller, &exists);

        if (r < 0 || (exists && !why))
                return r;
        controller->unsure_times += why != NULL;
        r = write_times(controller, TIMES_ROW, controller->unsure_times);
        if (r >= 0)
                r = ledger_commit(controller->ledger);
        if (r >= 0 && why)
                controller_log(
                        controller, LOG_WARNING, MESSAGE_ID_UNSURE, NULL,
                        "%s: objects whose resourceVersion changed while we were down run once, at low "
                        "priority: they may have been changed and reverted",
                        why);
        return r;
}

static int watch_row(const struct watch *watch, char **ret)
{
        *ret = format_string(WATCH_ROW, watch->config->name);
        return *ret ? 0 : -ENOMEM;
}

int unsure_load(struct watch *watch)
{
        struct controller *controller = watch->controller;
        _cleanup_free_ char *name = NULL;
        uint64_t times = 0;
        int r = controller->unsure_times == 0 || watch->config->owner ? 0 : watch_row(watch, &name);

        if (r >= 0 && name)
                r = read_times(controller, name, &times, NULL);
        watch->unsure = r >= 0 && name && times < controller->unsure_times;
        return r;
}

void unsure_over(struct watch *watch)
{
        struct controller *controller = watch->controller;
        _cleanup_free_ char *name = NULL;
        int r;

        if (!watch->unsure)
                return;
        r = watch_row(watch, &name);
        if (r >= 0)
                r = write_times(controller, name, controller->unsure_times);
        if (r < 0) {
                ledger_failed(controller, r);
                return;
        }
        watch->unsure = false;
        controller_log(controller, LOG_INFO, NULL, LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                       "watch %s was searched for objects that may have been changed and reverted",
                       watch->config->name);
}

struct look {
        const char *version;
        uint64_t since; /* CLOCK_REALTIME; no older run counts */
        bool is_same;
};

static int see_run(const struct ledger_run *run, void *userdata)
{
        struct look *look = userdata;

        look->is_same = run->ended_realtime > look->since && strcmp(run->version, look->version) == 0;
        return 0;
}

/* A run that has not succeeded leaves no time by the ledger's clock. If the machine's clock was set since, its object may run
 * once for nothing. */
static uint64_t epoch_realtime(const struct watch *watch)
{
        uint64_t lasts = ledger_time(watch->controller) - watch->epoch_since,
                 now = watch->controller->now.realtime;

        return lasts < now ? now - lasts : 0;
}

int unsure_is_same(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        /* In another epoch the same version may have been other content. */
        struct look look = {
                .version = change->resource_version,
                .since = row->handled_realtime > watch->epoch_since ? 0 : epoch_realtime(watch),
                .is_same = row->written_realtime > watch->epoch_since &&
                           strcmp(row->written_version, change->resource_version) == 0,
        };
        int r = 0;

        if (!look.is_same)
                r = ledger_run_see(watch->controller->ledger, watch->config->name, change->key, change->uid,
                                   see_run, &look);
        return r < 0 ? r : look.is_same;
}
