/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/watches/health.h"

#include <errno.h>

#include "base/text.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/supervisor.h"

/* Logs one line for each change; the journal's catalog says what to do. */
static void tell_trouble(const struct watch *watch, const char *key, const char *namespace_name,
                         bool in_part)
{
        static const struct {
                int level;
                const char *message_id, *text;
        } trouble[WATCH_HEALTH_COUNT] = {
                [WATCH_DEGRADED] = {LOG_WARNING, MESSAGE_ID_WATCH_DEGRADED,
                                    "does not work for now and is retried"},
                [WATCH_ABSENT] = {LOG_NOTICE, MESSAGE_ID_WATCH_ABSENT,
                                  "waits until the server serves its resource (required: false)"},
                [WATCH_FAILED] = {LOG_ERR, MESSAGE_ID_WATCH_FAILED,
                                  "is past its deadline and has failed alone; it keeps trying"},
        };

        log_write(trouble[watch->health].level, trouble[watch->health].message_id,
                  LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key},
                             {"RECONCILED_NAMESPACE", namespace_name}),
                  "watch %s %s: %s", watch->config->name,
                  in_part && watch->health == WATCH_DEGRADED
                          ? "does not work in one of its namespaces for now and is retried"
                          : trouble[watch->health].text,
                  watch_place_of(watch)->degraded_reason);
}

bool watch_is_in_sync(const struct watch *watch)
{
        return watch->health == WATCH_ABSENT || (watch->synced && watch->health == WATCH_HEALTHY);
}

bool watch_is_in_trouble(const struct watch *watch)
{
        return watch->health == WATCH_DEGRADED || watch->health == WATCH_FAILED;
}

/* The watcher's trouble comes first: where it cannot read, nothing is written either; and where the handler
 * cannot run, nothing is. */
static const struct watch_trouble *first_trouble(const struct watch *watch)
{
        const struct access_state *access = access_of(watch);

        if (watch_place_of(watch)->heard.health != WATCH_HEALTHY)
                return &watch_place_of(watch)->heard;
        return access && access->trouble.health != WATCH_HEALTHY ? &access->trouble
                                                                 : &watch->refusal.trouble;
}

int health_review(struct watch *watch)
{
        const struct watch_trouble *trouble = first_trouble(watch);
        const struct refusal *refusal = trouble == &watch->refusal.trouble ? &watch->refusal : NULL;
        const char *namespace_name =
                trouble == &watch_place_of(watch)->heard ? watch_place_of(watch)->heard_namespace : NULL;
        bool was_well = watch->health == WATCH_HEALTHY;

        watch->health = trouble->health;
        if (trouble->health == WATCH_HEALTHY) {
                if (!was_well)
                        log_write(LOG_INFO, MESSAGE_ID_WATCH_RECOVERED,
                                  LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                                  "watch %s works again", watch->config->name);
                if (!was_well && watch->synced)
                        watch->synced_realtime = watch->controller->now.realtime;
                return 0;
        }
        if (text_replace(&watch_place_of(watch)->degraded_reason, trouble->reason) < 0)
                return -ENOMEM;
        watch_place_of(watch)->degraded_realtime = trouble->since_realtime;
        watch_place_of(watch)->failures = trouble->failures;
        tell_trouble(watch, refusal ? refusal->key : NULL, namespace_name,
                     refusal ? refusal->in != NULL : namespace_name && namespace_name[0]);
        return 0;
}
