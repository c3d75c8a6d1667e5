/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of the configuration. man/reconciled.yaml.5 repeats it for people. */
#include "config/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"

#define TABLE(name, ...)                                                                                    \
        static const struct key name##_key[] = {__VA_ARGS__};                                               \
        static const struct key_table name = {name##_key, ELEMENTS(name##_key)}

#define DURATION(name, offset, min, max)                                                                    \
        {                                                                                                   \
                name, KEY_DURATION, offset, min, max, NULL, false, NULL                                     \
        }
#define IN_WATCH(field)  offsetof(struct config_watch, field)
#define IN_CONFIG(field) offsetof(struct config, field)

#define IN_OWNED(field) offsetof(struct config_owned, field)

TABLE(owned_table, {"apiVersion", KEY_TEXT, IN_OWNED(api_version), 0, 0, NULL, true, NULL},
      {"kind", KEY_TEXT, IN_OWNED(kind), 0, 0, NULL, true, NULL},
      {"labelSelector", KEY_TEXT, IN_OWNED(label_selector), 0, 0, NULL, false, NULL},
      {"names", KEY_TEXT, IN_OWNED(names), 0, 0, NULL, false, NULL},
      {"confidential", KEY_BOOL, IN_OWNED(confidential), 0, 0, NULL, false, NULL},
      {"metadataOnly", KEY_BOOL, IN_OWNED(metadata_only), 0, 0, NULL, false, NULL});

TABLE(answered_table, {"apiVersion", KEY_TEXT, IN_OWNED(api_version), 0, 0, NULL, true, NULL},
      {"kind", KEY_TEXT, IN_OWNED(kind), 0, 0, NULL, true, NULL});

TABLE(patched_table, {"apiVersion", KEY_TEXT, IN_OWNED(api_version), 0, 0, NULL, true, NULL},
      {"kind", KEY_TEXT, IN_OWNED(kind), 0, 0, NULL, true, NULL},
      {"namespaces", KEY_TEXTS, IN_OWNED(namespace), 0, 0, NULL, false, NULL});

TABLE(recycle_table,
      {"runs", KEY_UNSIGNED, IN_WATCH(handler.recycle_runs), 1, 1000000000, NULL, false, NULL},
      {"memory", KEY_SIZE, IN_WATCH(handler.recycle_memory), 1, UINT64_C(1) << 50, NULL, false, NULL});

TABLE(batch_table, {"max", KEY_UNSIGNED, IN_WATCH(handler.batch_max), 2, WINDOW_MAX, NULL, true, NULL},
      DURATION("wait", IN_WATCH(handler.batch_wait_usec), 0, USEC_PER_SEC));

static const char *const cpu_word[] = {"CPUs", NULL};
static const char *const run_word[] = {"runs", NULL};

TABLE(limits_table,
      {"memory", KEY_SIZE, IN_WATCH(handler.limit_memory), 1 << 20, UINT64_C(1) << 50, NULL, false, NULL},
      {"pids", KEY_UNSIGNED, IN_WATCH(handler.limit_pids), 1, 4194304, NULL, false, NULL},
      {"cpu", KEY_MILLI, IN_WATCH(handler.limit_cpu), 10, 1000000, NULL, false, cpu_word});

TABLE(rate_table, {"perSecond", KEY_MILLI, IN_WATCH(handler.rate_milli), 1, 100000000, NULL, true, run_word},
      {"burst", KEY_UNSIGNED, IN_WATCH(handler.rate_burst), 1, 1000000, NULL, false, NULL});

TABLE(kubernetes_table, {"kubeconfig", KEY_TEXT, IN_WATCH(handler.kubernetes_file), 0, 0, NULL, false, NULL},
      {"serviceAccount", KEY_TEXT, IN_WATCH(handler.kubernetes_account), 0, 0, NULL, false, NULL},
      {"namespace", KEY_TEXT, IN_WATCH(handler.kubernetes_namespace), 0, 0, NULL, false, NULL});

TABLE(handler_table, {"exec", KEY_TEXTS, IN_WATCH(handler.exec), 0, 0, NULL, false, NULL},
      {"serve", KEY_TEXTS, IN_WATCH(handler.serve), 0, 0, NULL, false, NULL},
      {"plugin", KEY_TEXT, IN_WATCH(handler.plugin), 0, 0, NULL, false, NULL},
      {"dryRun", KEY_BOOL, IN_WATCH(handler.dry_run), 0, 0, NULL, false, NULL},
      {"environment", KEY_PAIRS, IN_WATCH(handler.environment), 0, 0, NULL, false, NULL},
      {"credentials", KEY_PAIRS, IN_WATCH(handler.credentials), 0, 0, NULL, false, NULL},
      {"kubernetes", KEY_MAPPING, IN_WATCH(handler.kubernetes), 0, 0, &kubernetes_table, false, NULL},
      {"recycle", KEY_MAPPING, 0, 0, 0, &recycle_table, false, NULL},
      {"parallel", KEY_UNSIGNED, IN_WATCH(handler.parallel), 1, WINDOW_MAX, NULL, false, NULL},
      {"batch", KEY_MAPPING, 0, 0, 0, &batch_table, false, NULL},
      {"rate", KEY_MAPPING, 0, 0, 0, &rate_table, false, NULL},
      DURATION("timeout", IN_WATCH(handler.timeout_usec), USEC_PER_MSEC, 24 * USEC_PER_HOUR),
      DURATION("grace", IN_WATCH(handler.grace_usec), 0, USEC_PER_HOUR),
      {"user", KEY_TEXT, IN_WATCH(handler.user), 0, 0, NULL, false, NULL},
      {"version", KEY_TEXT, IN_WATCH(handler.version), 0, 0, NULL, false, NULL},
      {"requestLimit", KEY_SIZE, IN_WATCH(handler.request_max), 4 << 20, UINT64_C(1) << 34, NULL, false,
       NULL},
      {"limits", KEY_MAPPING, 0, 0, 0, &limits_table, false, NULL});

TABLE(retry_table, DURATION("first", IN_WATCH(retry_first_usec), USEC_PER_MSEC, 24 * USEC_PER_HOUR),
      DURATION("max", IN_WATCH(retry_max_usec), USEC_PER_MSEC, 24 * USEC_PER_HOUR),
      {"attempts", KEY_UNSIGNED, IN_WATCH(retry_attempts), 1, 1000000000, NULL, false, NULL},
      DURATION("throttle", IN_WATCH(retry_throttle_usec), USEC_PER_MSEC, USEC_PER_HOUR));

TABLE(reconnect_table, DURATION("first", IN_WATCH(reconnect_first_usec), USEC_PER_MSEC, USEC_PER_HOUR),
      DURATION("max", IN_WATCH(reconnect_max_usec), USEC_PER_MSEC, USEC_PER_HOUR),
      DURATION("stall", IN_WATCH(stall_usec), 10 * USEC_PER_MSEC, USEC_PER_HOUR),
      DURATION("watchTimeout", IN_WATCH(watch_timeout_usec), USEC_PER_SEC, USEC_PER_HOUR),
      DURATION("initialEvents", IN_WATCH(initial_events_usec), 10 * USEC_PER_MSEC, USEC_PER_HOUR));

TABLE(quarantine_table, {"after", KEY_UNSIGNED, IN_WATCH(quarantine_after), 1, 1000, NULL, false, NULL},
      DURATION("duration", IN_WATCH(quarantine_usec), USEC_PER_MSEC, 3650 * 24 * USEC_PER_HOUR));

TABLE(trigger_table, {"jq", KEY_TEXT, IN_WATCH(trigger_jq), 0, 0, NULL, true, NULL});

static const char *const prune_choice[] = {"after", "before", NULL};
static const char *const heirs_choice[] = {"listed", "marked", NULL};

TABLE(children_table, {"force", KEY_BOOL, IN_WATCH(children_force), 0, 0, NULL, false, NULL},
      {"adopt", KEY_BOOL, IN_WATCH(children_adopt), 0, 0, NULL, false, NULL},
      {"events", KEY_BOOL, IN_WATCH(children_events), 0, 0, NULL, false, NULL},
      {"heirs", KEY_CHOICE, IN_WATCH(children_heirs), 0, 0, NULL, false, heirs_choice},
      {"prune", KEY_CHOICE, IN_WATCH(children_prune), 0, 0, NULL, false, prune_choice},
      DURATION("wait", IN_WATCH(wait_usec), 0, 24 * USEC_PER_HOUR),
      {"kinds", KEY_KINDS, IN_WATCH(answers), 0, 0, &answered_table, false, NULL},
      {"namespaces", KEY_TEXTS, IN_WATCH(child_namespace), 0, 0, NULL, false, NULL},
      DURATION("settle", IN_WATCH(settle_usec), USEC_PER_MSEC, USEC_PER_HOUR));

static const char *const on_deadline_choice[] = {"fatal", "isolate", NULL};
static const char *const on_unrecoverable_choice[] = {"throttle", "crash", NULL};
static const char *const on_failure_choice[] = {"keep", "rollback", NULL};
static const char *const on_start_choice[] = {"changed", "all", NULL};

static const struct key watch_key[] = {
        {"name", KEY_TEXT, IN_WATCH(name), 0, 0, NULL, true, NULL},
        {"id", KEY_TEXT, IN_WATCH(id), 0, 0, NULL, false, NULL},
        {"apiVersion", KEY_TEXT, IN_WATCH(api_version), 0, 0, NULL, true, NULL},
        {"kind", KEY_TEXT, IN_WATCH(kind), 0, 0, NULL, true, NULL},
        {"namespaces", KEY_TEXTS, IN_WATCH(namespace), 0, 0, NULL, false, NULL},
        {"labelSelector", KEY_TEXT, IN_WATCH(label_selector), 0, 0, NULL, false, NULL},
        {"fieldSelector", KEY_TEXT, IN_WATCH(field_selector), 0, 0, NULL, false, NULL},
        {"trigger", KEY_TRIGGER, IN_WATCH(trigger), 0, 0, &trigger_table, false, NULL},
        {"filter", KEY_TEXT, IN_WATCH(filter), 0, 0, NULL, false, NULL},
        {"concurrency", KEY_UNSIGNED, IN_WATCH(concurrency), 1, 64 * WINDOW_MAX, NULL, false, NULL},
        {"handler", KEY_MAPPING, 0, 0, 0, &handler_table, true, NULL},
        {"finalizer", KEY_BOOL, IN_WATCH(finalizer), 0, 0, NULL, false, NULL},
        DURATION("resync", IN_WATCH(resync_usec), 0, 3650 * 24 * USEC_PER_HOUR),
        {"retry", KEY_MAPPING, 0, 0, 0, &retry_table, false, NULL},
        DURATION("deadline", IN_WATCH(deadline_usec), USEC_PER_MSEC, 365 * 24 * USEC_PER_HOUR),
        {"reconnect", KEY_MAPPING, 0, 0, 0, &reconnect_table, false, NULL},
        {"metadataOnly", KEY_BOOL, IN_WATCH(metadata_only), 0, 0, NULL, false, NULL},
        {"confidential", KEY_BOOL, IN_WATCH(confidential), 0, 0, NULL, false, NULL},
        {"previous", KEY_BOOL, IN_WATCH(previous), 0, 0, NULL, false, NULL},
        {"required", KEY_BOOL, IN_WATCH(required), 0, 0, NULL, false, NULL},
        {"onDeadline", KEY_CHOICE, IN_WATCH(on_deadline), 0, 0, NULL, false, on_deadline_choice},
        {"onUnrecoverable", KEY_CHOICE, IN_WATCH(on_unrecoverable), 0, 0, NULL, false,
         on_unrecoverable_choice},
        {"onFailure", KEY_CHOICE, IN_WATCH(on_failure), 0, 0, NULL, false, on_failure_choice},
        {"onStart", KEY_CHOICE, IN_WATCH(on_start), 0, 0, NULL, false, on_start_choice},
        {"unselected", KEY_BOOL, IN_WATCH(unselected), 0, 0, NULL, false, NULL},
        {"allowFatal", KEY_BOOL, IN_WATCH(allow_fatal), 0, 0, NULL, false, NULL},
        {"readyCondition", KEY_TEXT, IN_WATCH(ready_condition), 0, 0, NULL, false, NULL},
        {"owns", KEY_KINDS, IN_WATCH(owns), 0, 0, &owned_table, false, NULL},
        {"related", KEY_KINDS, IN_WATCH(related), 0, 0, &owned_table, false, NULL},
        {"events", KEY_BOOL, IN_WATCH(events), 0, 0, NULL, false, NULL},
        {"quarantine", KEY_MAPPING, 0, 0, 0, &quarantine_table, false, NULL},
        {"children", KEY_MAPPING, 0, 0, 0, &children_table, false, NULL},
        {"patches", KEY_KINDS, IN_WATCH(patches), 0, 0, &patched_table, false, NULL},
};
const struct key_table watch_table = {watch_key, ELEMENTS(watch_key)};

static const char *const on_missed_choice[] = {"once", "skip", NULL};
static const char *const startup_failure_choice[] = {"retry", "fatal", NULL};

#define CRON_KEYS                                                                                           \
        {"cron", KEY_TEXT, IN_WATCH(cron), 0, 0, NULL, true, NULL},                                         \
                {"timeZone", KEY_TEXT, IN_WATCH(time_zone), 0, 0, NULL, false, NULL},                       \
        {                                                                                                   \
                "onMissed", KEY_CHOICE, IN_WATCH(on_missed), 0, 0, NULL, false, on_missed_choice            \
        }
#define RELATED_NAMESPACES                                                                                  \
        {                                                                                                   \
                "namespaces", KEY_TEXTS, IN_WATCH(related_namespace), 0, 0, NULL, false, NULL               \
        }
#define STARTUP_FAILURE                                                                                     \
        {                                                                                                   \
                "onFailure", KEY_CHOICE, IN_WATCH(startup_failure), 0, 0, NULL, false,                      \
                        startup_failure_choice                                                              \
        }
/* What their watches have in common with those of `watches`. */
#define OWN_KEYS                                                                                            \
        {"handler", KEY_MAPPING, 0, 0, 0, &handler_table, true, NULL},                                      \
                {"related", KEY_KINDS, IN_WATCH(related), 0, 0, &owned_table, false, NULL},                 \
                {"children", KEY_MAPPING, 0, 0, 0, &children_table, false, NULL},                           \
                {"retry", KEY_MAPPING, 0, 0, 0, &retry_table, false, NULL},                                 \
                {"events", KEY_BOOL, IN_WATCH(events), 0, 0, NULL, false, NULL},                            \
                DURATION("deadline", IN_WATCH(deadline_usec), USEC_PER_MSEC, 365 * 24 * USEC_PER_HOUR),     \
        {                                                                                                   \
                "onDeadline", KEY_CHOICE, IN_WATCH(on_deadline), 0, 0, NULL, false, on_deadline_choice      \
        }

static const struct key schedule_key[] = {
        {"name", KEY_TEXT, IN_WATCH(name), 0, 0, NULL, true, NULL},
        {"quarantine", KEY_MAPPING, 0, 0, 0, &quarantine_table, false, NULL},
        CRON_KEYS,
        RELATED_NAMESPACES,
        OWN_KEYS};
static const struct key_table schedule_table = {schedule_key, ELEMENTS(schedule_key)};

static const struct key startup_key[] = {STARTUP_FAILURE, RELATED_NAMESPACES, OWN_KEYS};
const struct key_table startup_table = {startup_key, ELEMENTS(startup_key)};

static const struct key due_key[] = {CRON_KEYS, STARTUP_FAILURE, RELATED_NAMESPACES};
const struct key_table due_table = {due_key, ELEMENTS(due_key)};

TABLE(cluster_table, {"kubeconfig", KEY_TEXT, IN_CONFIG(kubeconfig), 0, 0, NULL, false, NULL},
      {"context", KEY_TEXT, IN_CONFIG(context), 0, 0, NULL, false, NULL});

TABLE(tls_table, {"certificateFile", KEY_TEXT, IN_CONFIG(gateway_certificate_file), 0, 0, NULL, true, NULL},
      {"keyFile", KEY_TEXT, IN_CONFIG(gateway_key_file), 0, 0, NULL, true, NULL});

TABLE(gateway_table, {"listen", KEY_TEXT, IN_CONFIG(gateway_listen), 0, 0, NULL, false, NULL},
      {"tokenFile", KEY_TEXT, IN_CONFIG(gateway_token_file), 0, 0, NULL, false, NULL},
      {"tls", KEY_MAPPING, 0, 0, 0, &tls_table, false, NULL});

TABLE(heartbeat_table,
      DURATION("interval", IN_CONFIG(heartbeat_interval_usec), 10 * USEC_PER_MSEC, USEC_PER_HOUR),
      DURATION("deadline", IN_CONFIG(heartbeat_deadline_usec), 50 * USEC_PER_MSEC, USEC_PER_HOUR));

TABLE(secrets_table,
      {"memory", KEY_SIZE, IN_CONFIG(secrets_memory), 1 << 20, UINT64_C(1) << 36, NULL, false, NULL},
      {"allowDisk", KEY_BOOL, IN_CONFIG(secrets_allow_disk), 0, 0, NULL, false, NULL});

TABLE(previous_table,
      {"total", KEY_SIZE, IN_CONFIG(previous_total), 1 << 20, UINT64_C(1) << 40, NULL, false, NULL});

TABLE(stop_table, DURATION("grace", IN_CONFIG(stop_grace_usec), 0, 24 * USEC_PER_HOUR));

TABLE(replicas_table, {"lease", KEY_TEXT, IN_CONFIG(replicas_lease), 0, 0, NULL, false, NULL},
      {"namespace", KEY_TEXT, IN_CONFIG(replicas_namespace), 0, 0, NULL, false, NULL},
      DURATION("duration", IN_CONFIG(replicas_duration_usec), 5 * USEC_PER_SEC, USEC_PER_HOUR),
      {"compatible", KEY_BOOL, IN_CONFIG(replicas_compatible), 0, 0, NULL, false, NULL});

static const struct key config_key[] = {
        {"operator", KEY_TEXT, IN_CONFIG(operator_name), 0, 0, NULL, false, NULL},
        {"formerNames", KEY_TEXTS, IN_CONFIG(former), 0, 0, NULL, false, NULL},
        {"cluster", KEY_MAPPING, 0, 0, 0, &cluster_table, false, NULL},
        {"workers", KEY_UNSIGNED, IN_CONFIG(workers), 1, WORKERS_MAX, NULL, false, NULL},
        {"window", KEY_UNSIGNED, IN_CONFIG(window), 1, WINDOW_MAX, NULL, false, NULL},
        {"pageLimit", KEY_UNSIGNED, IN_CONFIG(page_limit), 1, 10000, NULL, false, NULL},
        {"heartbeat", KEY_MAPPING, 0, 0, 0, &heartbeat_table, false, NULL},
        {"stop", KEY_MAPPING, 0, 0, 0, &stop_table, false, NULL},
        {"namespace", KEY_TEXT, IN_CONFIG(namespace), 0, 0, NULL, false, NULL},
        {"watches", KEY_WATCHES, 0, 0, 0, &watch_table, false, NULL},
        {"schedules", KEY_WATCHES, 0, 0, 0, &schedule_table, false, NULL},
        {"startup", KEY_WATCH, 0, 0, 0, &startup_table, false, NULL},
        {"gateway", KEY_MAPPING, IN_CONFIG(gateway), 0, 0, &gateway_table, false, NULL},
        {"secrets", KEY_MAPPING, 0, 0, 0, &secrets_table, false, NULL},
        {"previous", KEY_MAPPING, 0, 0, 0, &previous_table, false, NULL},
        {"record", KEY_TEXT, IN_CONFIG(record), 0, 0, NULL, false, NULL},
        {"replicas", KEY_MAPPING, IN_CONFIG(replicas), 0, 0, &replicas_table, false, NULL},
};
const struct key_table config_table = {config_key, ELEMENTS(config_key)};

static void texts_done(char **text, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(text[i]);
        free((void *)text);
}

static void pairs_done(struct config_pair *pair, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                free(pair[i].name);
                if (pair[i].value)
                        explicit_bzero(pair[i].value, strlen(pair[i].value));
                free(pair[i].value);
        }
        free(pair);
}

static void kinds_done(const struct key_table *table, struct config_owned *kind, size_t count)
{
        for (size_t i = 0; i < count; i++)
                table_done(table, &kind[i]);
        free(kind);
}

void table_done(const struct key_table *table, void *target)
{
        for (const struct key *key = table->key; key < table->key + table->count; key++) {
                void **place = (void *)((char *)target + key->offset);
                const size_t *count = (const void *)(place + 1); /* of a list */

                switch (key->kind) {
                case KEY_TEXT:
                        free(*place);
                        break;
                case KEY_TEXTS:
                        texts_done(*place, *count);
                        break;
                case KEY_PAIRS:
                        pairs_done(*place, *count);
                        break;
                case KEY_KINDS:
                        kinds_done(key->keys, *place, *count);
                        break;
                case KEY_TRIGGER:
                case KEY_MAPPING:
                        table_done(key->keys, target);
                        break;
                default:
                        break;
                }
        }
}
