/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/configured.h"

#include "supervisor/supervisor.h"

int configured_visit_quarantined(const struct supervisor *supervisor, size_t limit, ledger_visit_t visit,
                                 void *userdata)
{
        int r = 0;

        FOREACH_WATCH(watch, &supervisor->controller) {
                struct ledger_place begin = {.watch = watch->config->name, .key = "", .uid = ""};

                if (limit == 0)
                        continue;
                r = ledger_list_quarantined(supervisor->controller.ledger, &begin, limit, visit, userdata);
                if (r < 0)
                        break;
                limit -= (size_t)r;
        }
        return r < 0 ? r : 0;
}

uint64_t configured_count_quarantined(const struct supervisor *supervisor)
{
        uint64_t sum = 0;

        FOREACH_WATCH(watch, &supervisor->controller) {
                int64_t count = ledger_count_quarantined(supervisor->controller.ledger, watch->config->name);

                sum += count > 0 ? (uint64_t)count : 0;
        }
        return sum;
}

static bool is_configured(const char *watch, const void *userdata)
{
        const struct supervisor *supervisor = userdata;

        return watch_find(&supervisor->controller, watch) != NULL;
}

int configured_visit_worst(const struct supervisor *supervisor, size_t limit, ledger_visit_t visit,
                           void *userdata)
{
        const struct ledger_known known = {is_configured, supervisor};

        return ledger_visit_worst(supervisor->controller.ledger, limit, &known, visit, userdata);
}

void configured_write_removed(const struct supervisor *supervisor, struct text *json)
{
        const char *name = "";

        while ((name = ledger_next_watch(supervisor->controller.ledger, name))) {
                int64_t rows = watch_find(&supervisor->controller, name)
                                       ? 0
                                       : ledger_count(supervisor->controller.ledger, name);
                struct ledger_failing failing = {0};

                if (rows <= 0 || ledger_count_failing(supervisor->controller.ledger, name, &failing) < 0)
                        continue;
                text_append_string(json, "{");
                json_string(json, "watch", name);
                json_uint64(json, "objects", (uint64_t)rows);
                json_uint64(json, "failing", failing.failing);
                json_close(json, "},");
        }
}
