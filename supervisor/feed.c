/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor tells its children: configuration, credentials, a server's wish to be left alone. */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "supervisor/supervisor.h"

static char *finalizer_name(const struct supervisor *supervisor)
{
        char *name;

        return asprintf(&name, "%s/finalizer", supervisor->config->operator_name) < 0 ? NULL : name;
}

static uint64_t shortest_deadline(const struct config *config)
{
        uint64_t shortest = UINT64_MAX;

        for (size_t i = 0; i < config->watch_count; i++)
                if (config->watch[i].deadline_usec < shortest)
                        shortest = config->watch[i].deadline_usec;
        return shortest;
}

static int config_credential(struct child_slot *child)
{
        const struct config *config = child->supervisor->config;
        struct message_config_credential message = {
                .kubeconfig = config->kubeconfig,
                .context = config->context,
                .deadline_usec = shortest_deadline(config),
                .heartbeat_usec = config->heartbeat_interval_usec,
        };

        return channel_send(child->channel, MESSAGE_CONFIG_CREDENTIAL, &message);
}

static struct record_string *to_strings(char *const *text, size_t count)
{
        struct record_string *string = calloc(count ? count : 1, sizeof(*string));

        for (size_t i = 0; string && i < count; i++)
                string[i].value = text[i];
        return string;
}

static int config_watcher(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;
        struct watch *watch = &supervisor->watch[child->index];
        const struct config_watch *config = watch->config;
        const struct watch *owner = config->owner ? watch_find(supervisor, config->owner) : NULL;
        _cleanup_free_ char *scope = NULL, *cluster = NULL, *finalizer = finalizer_name(supervisor);
        _cleanup_free_ struct record_string *namespace =
                to_strings(config->namespace, config->namespace_count);
        struct message_config_watcher message = {
                .operator_name = supervisor->config->operator_name,
                .watch = config->name,
                .api_version = config->api_version,
                .kind = config->kind,
                .namespace = namespace,
                .namespace_count = config->namespace_count,
                .label_selector = config->label_selector,
                .field_selector = config->field_selector,
                .metadata_only = config->metadata_only,
                .required = config->required,
                .isolate = config->on_deadline == ON_DEADLINE_ISOLATE,
                .trigger = (uint64_t)config->trigger,
                .trigger_jq = config->trigger_jq,
                .filter = config->filter,
                .owner_api_version = owner ? owner->config->api_version : "",
                .related = config->is_related,
                .owner_kind = owner ? owner->config->kind : "",
                .store_folder = watch->store_folder,
                .slot_file = supervisor->slots_path,
                .slot = child->index,
                .finalizer = finalizer,
                .deadline_usec = config->deadline_usec,
                .reconnect_first_usec = config->reconnect_first_usec,
                .stall_usec = config->stall_usec,
                .watch_timeout_usec = config->watch_timeout_usec,
                .initial_events_usec = config->initial_events_usec,
                .reconnect_max_usec = config->reconnect_max_usec,
                .page_limit = supervisor->config->page_limit,
                .heartbeat_usec = supervisor->config->heartbeat_interval_usec,
        };
        int r = ledger_scope_get(supervisor->ledger, config->name, &scope, &cluster);

        if (r >= 0 && (!namespace || !finalizer))
                r = -ENOMEM;
        if (r < 0)
                return r;
        message.known_scope = scope;
        message.known_cluster = cluster;
        return channel_send(child->channel, MESSAGE_CONFIG_WATCHER, &message);
}

static void worker_watch(const struct watch *watch, struct record_watch *ret, struct record_string *exec)
{
        const struct config_watch *config = watch->config;

        *ret = (struct record_watch){
                .name = config->name,
                .api_version = config->api_version,
                .kind = config->kind,
                .related = config->is_related,
                .owner = config->owner ? config->owner : "",
                .trigger = (uint64_t)config->trigger,
                .trigger_jq = config->trigger_jq,
                .store_folder = watch->store_folder,
                .handler_kind = (uint64_t)config->handler.kind,
                .finalizer = config->finalizer,
                .ready_condition = config->ready_condition,
                .events = config->events,
                .metadata_only = config->metadata_only,
                .unselected = config->unselected,
                .rollback = config->on_failure == ON_FAILURE_ROLLBACK,
                .wait_usec = config->wait_usec,
                .settle_usec = config->settle_usec,
                .children_force = config->children_force,
                .recycle_runs = config->handler.recycle_runs,
                .recycle_memory = config->handler.recycle_memory,
                .handler_exec = exec,
                .handler_exec_count = config->handler.exec_count,
                .handler_timeout_usec = config->handler.timeout_usec,
                .handler_grace_usec = config->handler.grace_usec,
        };
}

static int config_worker(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;
        _cleanup_free_ struct record_watch *watch = calloc(supervisor->watch_count, sizeof(*watch));
        _cleanup_free_ char *finalizer = finalizer_name(supervisor);
        struct message_config_worker message = {
                .operator_name = supervisor->config->operator_name,
                .finalizer = finalizer,
                .watch = watch,
                .watch_count = supervisor->watch_count,
                .heartbeat_usec = supervisor->config->heartbeat_interval_usec,
        };
        int r = watch && finalizer ? 0 : -ENOMEM;

        for (size_t i = 0; i < supervisor->watch_count && r >= 0; i++) {
                const struct config_handler *handler = &supervisor->watch[i].config->handler;
                struct record_string *exec = to_strings(handler->exec, handler->exec_count);

                if (exec)
                        worker_watch(&supervisor->watch[i], &watch[i], exec);
                else
                        r = -ENOMEM;
        }
        if (r >= 0)
                r = channel_send(child->channel, MESSAGE_CONFIG_WORKER, &message);
        for (size_t i = 0; watch && i < supervisor->watch_count; i++)
                free((void *)(uintptr_t)watch[i].handler_exec);
        return r;
}

static int config_gateway(struct child_slot *child)
{
        const struct config *config = child->supervisor->config;
        struct message_config_gateway message = {
                .listen = config->gateway_listen,
                .token_file = config->gateway_token_file,
                .deadline_usec = config->heartbeat_deadline_usec,
                .heartbeat_usec = config->heartbeat_interval_usec,
        };

        return channel_send(child->channel, MESSAGE_CONFIG_GATEWAY, &message);
}

int feed_config(struct child_slot *child)
{
        switch (child->kind) {
        case KIND_CREDENTIAL:
                return config_credential(child);
        case KIND_WATCHER:
                return config_watcher(child);
        case KIND_WORKER:
                return config_worker(child);
        case KIND_GATEWAY:
                return config_gateway(child);
        case KIND_COUNT:
                break;
        }
        return -EINVAL;
}

static bool talks_to_server(const struct child_slot *child)
{
        return (child->kind == KIND_WATCHER || child->kind == KIND_WORKER) && child->state == CHILD_RUNNING;
}

static void send_credential(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;

        if (supervisor->credential && talks_to_server(child))
                (void)channel_send(child->channel, MESSAGE_CREDENTIAL, &supervisor->credential->credential);
}

void feed_ready(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;
        struct watch *watch;
        int r = child->kind == KIND_WATCHER ? doubt_feed(&supervisor->watch[child->index]) : 0;

        if (r < 0) {
                ledger_failed(supervisor, r);
                return;
        }
        /* Nothing is read before this. */
        send_credential(child);
        if (child->kind == KIND_WATCHER) {
                watch = &supervisor->watch[child->index];
                watch->credit_given = CREDIT_LIMIT;
                (void)channel_send(
                        child->channel, MESSAGE_CREDIT,
                        &(struct message_credit){.watch = watch->config->name, .amount = CREDIT_LIMIT});
        }
        if (child->kind == KIND_GATEWAY)
                metrics_push(supervisor);
        turn_settle_soon(supervisor);
}

int feed_credential(struct supervisor *supervisor, struct message **message)
{
        message_free(supervisor->credential);
        supervisor->credential = TAKE_PTR(*message);
        for (size_t i = 0; i < supervisor->child_count; i++)
                send_credential(&supervisor->child[i]);
        return 0;
}

void feed_throttle(struct child_slot *from, const struct message_throttle *throttle)
{
        struct supervisor *supervisor = from->supervisor;

        if (throttle->until_boottime <= supervisor->throttle_until)
                return;
        supervisor->throttle_until = throttle->until_boottime;
        for (size_t i = 0; i < supervisor->child_count; i++) {
                struct child_slot *child = &supervisor->child[i];

                if (child != from && talks_to_server(child))
                        (void)channel_send(child->channel, MESSAGE_THROTTLE, throttle);
        }
}

void feed_refresh(struct supervisor *supervisor, const struct message_refresh *refresh)
{
        struct child_slot *credential = &supervisor->child[0];

        if (credential->state == CHILD_RUNNING)
                (void)channel_send(credential->channel, MESSAGE_REFRESH, refresh);
}
