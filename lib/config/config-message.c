/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration messages of the children. Everything is borrowed from the configuration. */
#include "config/config-message.h"

#include <errno.h>
#include <string.h>

#include "config/access.h"
#include "config/config-watch.h"

bool config_needs_memory(const struct config *config)
{
        if (config_gives_access(config))
                return true;
        for (size_t i = 0; i < config->watch_count; i++)
                if (config->watch[i].confidential || config->watch[i].on_failure == ON_FAILURE_ROLLBACK)
                        return true;
        return false;
}

struct record_string *config_strings(char *const *text, size_t count)
{
        struct record_string *string = calloc(count ? count : 1, sizeof(*string));

        for (size_t i = 0; string && i < count; i++)
                string[i].value = text[i];
        return string;
}

static struct record_pair *pairs(const struct config_pair *pair, size_t count)
{
        struct record_pair *record = calloc(count ? count : 1, sizeof(*record));

        for (size_t i = 0; record && i < count; i++)
                record[i] = (struct record_pair){.name = pair[i].name, .value = pair[i].value};
        return record;
}

/* Frees also what is half made. */
static void carried_kinds_done(const struct record_kind *kind, size_t count)
{
        for (size_t i = 0; kind && i < count; i++)
                free((void *)(uintptr_t)kind[i].namespace);
        free((void *)(uintptr_t)kind);
}

static bool carry_kind(struct record_kind *list, size_t *count, const struct config_owned *kind,
                       char *const *namespace, size_t namespace_count)
{
        struct record_kind record = {
                .api_version = kind->api_version,
                .kind = kind->kind,
                .namespace = config_strings(namespace, namespace_count),
                .namespace_count = namespace_count,
        };

        list[(*count)++] = record;
        return record.namespace;
}

/* What the handlers of the watch may write beside their object. */
static bool list_kinds(const struct config_watch *config, struct record_watch *ret)
{
        size_t children = config->owns_count + config->answers_count, count = 0;
        struct record_kind *child = calloc(children + 1, sizeof(*child)),
                           *patched = calloc(config->patches_count + 1, sizeof(*patched));
        bool done = child && patched;

        for (size_t i = 0; i < children && done; i++)
                done = carry_kind(child, &count,
                                  i < config->owns_count ? &config->owns[i]
                                                         : &config->answers[i - config->owns_count],
                                  config->child_namespace, config->child_namespace_count);
        ret->child_kinds = child;
        ret->child_kinds_count = count;
        count = 0;
        for (size_t i = 0; i < config->patches_count && done; i++)
                done = carry_kind(patched, &count, &config->patches[i], config->patches[i].namespace,
                                  config->patches[i].namespace_count);
        ret->patched_kinds = patched;
        ret->patched_kinds_count = count;
        return done;
}

/* The operator whose notes are no reason to run; "": a run knows its own writes. A run knows neither the
 * writes of another watch nor those of a run in which a replica died: the epoch that it wrote would end the
 * backoff of an object that kills all. */
static const char *notes_of(const struct config *config, const struct config_watch *watch)
{
        return watch->shared || config->replicas ? config->operator_name : "";
}

/* A condition names the generation that it is about: if the spec changes and changes back, the condition
 * must be written again. */
static enum trigger told_trigger(const struct config_watch *watch)
{
        return watch->trigger == TRIGGER_ESSENCE && watch->ready_condition && watch->ready_condition[0]
                       ? TRIGGER_GENERATION
                       : watch->trigger;
}

void config_watcher_message(const struct config *config, const struct config_watch *watch,
                            const struct config_watch *owner, struct message_config_watcher *ret)
{
        *ret = (struct message_config_watcher){
                .operator_name = config->operator_name,
                .watch = watch->name,
                .api_version = watch->api_version,
                .kind = watch->kind,
                .own_name = watch->own_name ? watch->own_name : "",
                .own_action = config_own_action(watch),
                .namespace_count = watch->namespace_count,
                .label_selector = watch->label_selector,
                .field_selector = watch->field_selector,
                .metadata_only = watch->metadata_only,
                .memory_max = watch->confidential ? config->secrets_memory : 0,
                .required = watch->required,
                .isolate = watch->on_deadline == ON_DEADLINE_ISOLATE,
                .trigger = told_trigger(watch),
                .trigger_jq = watch->trigger_jq,
                .filter = watch->filter,
                .owner_api_version = owner ? owner->api_version : "",
                .related = watch->is_related,
                .owner_kind = owner ? owner->kind : "",
                .finalizers = watch->finalizers,
                .shared = notes_of(config, watch),
                .conditions = watch->conditions,
                .holds = watch->finalizer,
                .releases = config_releases(watch),
                .slot_file = "",
                .known_scope = "",
                .known_cluster = "",
                .deadline_usec = watch->deadline_usec,
                .reconnect_first_usec = watch->reconnect_first_usec,
                .stall_usec = watch->stall_usec,
                .watch_timeout_usec = watch->watch_timeout_usec,
                .initial_events_usec = watch->initial_events_usec,
                .reconnect_max_usec = watch->reconnect_max_usec,
                .page_limit = config->page_limit,
                .heartbeat_usec = config->heartbeat_interval_usec,
        };
}

void config_worker_watch_done(struct record_watch *watch)
{
        free((void *)(uintptr_t)watch->handler_exec);
        free((void *)(uintptr_t)watch->environment);
        free((void *)(uintptr_t)watch->credentials_folder);
        free((void *)(uintptr_t)watch->previous_folder);
        watch->handler_exec = NULL;
        watch->credentials_folder = watch->previous_folder = NULL;
        watch->environment = NULL;
        free((void *)(uintptr_t)watch->namespace);
        watch->namespace = NULL;
        carried_kinds_done(watch->child_kinds, watch->child_kinds_count);
        carried_kinds_done(watch->patched_kinds, watch->patched_kinds_count);
        watch->child_kinds = watch->patched_kinds = NULL;
}

int config_worker_watch(const struct config *whole, const struct config_watch *config,
                        const char *store_folder, const char *access_folder, struct record_watch *ret)
{
        char *credentials =
                config_has_access(config) ? format_string("%s/%s", access_folder, config->name) : strdup("");
        char *previous = config->previous ? format_string("%s/previous", store_folder) : strdup("");

        *ret = (struct record_watch){
                .name = config->name,
                .api_version = config->api_version,
                .kind = config->kind,
                .own_action = config_own_action(config),
                .related = config->is_related,
                .related_names = config->related_names,
                .owner = config->owner ? config->owner : "",
                .trigger = told_trigger(config),
                .trigger_jq = config->trigger_jq,
                .store_folder = store_folder,
                .handler_kind = config->handler.kind,
                .finalizer = config->finalizer,
                .id = config->id,
                .finalizer_key = config->finalizer_key,
                .finalizers = config->finalizers,
                .children_key = config->children_key,
                .patched_key = config->patched_key,
                .shared = notes_of(whole, config),
                .conditions = config->conditions,
                .namespace = config_strings(config->namespace, config->shared ? config->namespace_count : 0),
                .namespace_count = config->shared ? config->namespace_count : 0,
                .label_selector = config->shared ? config->label_selector : "",
                .field_selector = config->shared ? config->field_selector : "",
                .filter = config->shared ? config->filter : "",
                .releases = config_releases(config),
                .ready_condition = config->ready_condition,
                .events = config->events,
                .metadata_only = config->metadata_only,
                .confidential = config->confidential,
                .unselected = config->unselected,
                .rollback = config->on_failure == ON_FAILURE_ROLLBACK,
                .wait_usec = config->wait_usec,
                .settle_usec = config->settle_usec,
                .children_force = config->children_force,
                .children_adopt = config->children_adopt,
                .children_events = config->children_events,
                .children_heirs = config->children_heirs == HEIRS_MARKED,
                .prune_before = config->children_prune == PRUNE_BEFORE,
                .parallel = config->handler.parallel,
                .batch_max = config->handler.batch_max,
                .batch_wait_usec = config->handler.batch_wait_usec,
                .recycle_runs = config->handler.recycle_runs,
                .recycle_memory = config->handler.recycle_memory,
                .user = config->handler.user,
                .home = config->handler.home,
                .uid = config->handler.uid,
                .gid = config->handler.gid,
                .limit_memory = config->handler.limit_memory,
                .request_max = config->handler.request_max,
                .user_pids = config->handler.user_pids,
                .limit_pids = config->handler.limit_pids,
                .limit_cpu_milli = config->handler.limit_cpu,
                .handler_exec = config_strings(config->handler.exec, config->handler.exec_count),
                .handler_exec_count = config->handler.exec_count,
                .environment = pairs(config->handler.environment, config->handler.environment_count),
                .environment_count = config->handler.environment_count,
                .credentials_folder = credentials,
                .previous_folder = previous,
                .previous_max = whole->previous_total,
                .kubernetes = config->handler.kubernetes,
                .handler_timeout_usec = config->handler.timeout_usec,
                .handler_grace_usec = config->handler.grace_usec,
        };
        if (list_kinds(config, ret) && ret->handler_exec && ret->environment && ret->namespace &&
            credentials && previous)
                return 0;
        config_worker_watch_done(ret);
        return -ENOMEM;
}
