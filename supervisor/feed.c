/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor tells its children: configuration, credentials, a server's wish to be left alone. */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "supervisor/supervisor.h"

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

static int config_watcher(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;
        struct watch *watch = &supervisor->watch[child->index];
        const struct config_watch *config = watch->config;
        const struct watch *owner = config->owner ? watch_find(supervisor, config->owner) : NULL;
        _cleanup_free_ char *scope = NULL, *cluster = NULL,
                            *finalizer = config_finalizer(supervisor->config);
        _cleanup_free_ struct record_string *namespace =
                config_strings(config->namespace, config->namespace_count);
        struct message_config_watcher message;
        int r = ledger_scope_get(supervisor->ledger, config->name, &scope, &cluster);

        if (r >= 0 && (!namespace || !finalizer))
                r = -ENOMEM;
        if (r < 0)
                return r;
        config_watcher_message(supervisor->config, config, owner ? owner->config : NULL, &message);
        message.namespace = namespace;
        message.finalizer = finalizer;
        message.store_folder = watch->store_folder;
        message.slot_file = supervisor->slots_path;
        message.slot = child->index;
        message.known_scope = scope;
        message.known_cluster = cluster;
        return channel_send(child->channel, MESSAGE_CONFIG_WATCHER, &message);
}

static int config_worker(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;
        _cleanup_free_ struct record_watch *watch = calloc(supervisor->watch_count, sizeof(*watch));
        _cleanup_free_ char *finalizer = config_finalizer(supervisor->config);
        struct message_config_worker message = {
                .operator_name = supervisor->config->operator_name,
                .finalizer = finalizer,
                .record_folder = supervisor->options->record ? supervisor->options->record
                                                             : supervisor->config->record,
                .trace_file = "",
                .group_folder = supervisor->delegation.folder,
                .group_controllers = supervisor->delegation.controllers,
                .watch = watch,
                .watch_count = supervisor->watch_count,
                .heartbeat_usec = supervisor->config->heartbeat_interval_usec,
        };
        int r = watch && finalizer ? 0 : -ENOMEM;

        for (size_t i = 0; i < supervisor->watch_count && r >= 0; i++) {
                const struct config_handler *handler = &supervisor->watch[i].config->handler;
                struct record_string *exec = config_strings(handler->exec, handler->exec_count);

                if (exec)
                        config_worker_watch(supervisor->watch[i].config, supervisor->watch[i].store_folder,
                                            exec, &watch[i]);
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
                .certificate_file = config->gateway_certificate_file,
                .key_file = config->gateway_key_file,
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
