/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/configure.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config/access.h"
#include "config/config-message.h"
#include "config/config-watch.h"
#include "supervisor/folders/secrets.h"
#include "supervisor/reload/kept-port.h"
#include "supervisor/supervisor.h"

/* How long no credential may be had: the credential process fails after that. */
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
        const struct supervisor *supervisor = child->supervisor;
        const struct config *config = supervisor->config;
        struct record_access *access = NULL;
        size_t count = 0;
        int r = config_access(config, supervisor->access.folder, &access, &count);

        if (r >= 0)
                r = channel_send(child->process.channel, MESSAGE_CONFIG_CREDENTIAL,
                                 &(struct message_config_credential){
                                         .kubeconfig = config->kubeconfig,
                                         .context = config->context,
                                         .access_folder = count > 0 ? supervisor->access.folder : "",
                                         .access = access,
                                         .access_count = count,
                                         .deadline_usec = shortest_deadline(config),
                                         .heartbeat_usec = config->heartbeat_interval_usec,
                                 });
        config_access_done(access, count);
        return r;
}

/* The message to a watcher, with the memory that it refers to. */
struct watcher_told {
        struct message_config_watcher message;
        struct record_string *namespace;
        char *store_folder;
};

static void watcher_told_done(struct watcher_told *told)
{
        free(told->namespace);
        free(told->store_folder);
}

/* All but the slot, and the members that only the ledger knows. */
static int tell_watcher(const struct supervisor *supervisor, const struct config *config,
                        const struct config_watch *watch, struct watcher_told *ret)
{
        config_watcher_message(config, watch, watch->owner ? config_watch_find(config, watch->owner) : NULL,
                               &ret->message);
        ret->message.namespace = ret->namespace = config_strings(watch->namespace, watch->namespace_count);
        ret->message.store_folder = ret->store_folder = secrets_store_folder(supervisor, watch);
        return ret->namespace && ret->store_folder ? 0 : -ENOMEM;
}

static int config_watcher(struct child_slot *child)
{
        const struct supervisor *supervisor = child->supervisor;
        const struct config_watch *config = supervisor->controller.watch[child->index].config;
        _cleanup_free_ char *scope = NULL, *cluster = NULL;
        _cleanup_(watcher_told_done) struct watcher_told told = {0};
        int r = ledger_scope_get(supervisor->controller.ledger, config->name, &scope, &cluster);

        if (r >= 0)
                r = tell_watcher(supervisor, supervisor->config, config, &told);
        if (r < 0)
                return r;
        told.message.hash_key = supervisor->hash_key;
        told.message.hash_key_size = sizeof(supervisor->hash_key);
        told.message.slot_file = supervisor->slots_path;
        told.message.slot = child_slot_number(child);
        told.message.searches = supervisor->controller.ledger_lost && config->finalizer &&
                                !supervisor->controller.uninstall.active;
        told.message.known_scope = scope;
        told.message.known_cluster = cluster;
        return channel_send(child->process.channel, MESSAGE_CONFIG_WATCHER, &told.message);
}

static int watcher_packet(const struct supervisor *supervisor, const struct config *config,
                          const struct config_watch *watch, struct text *ret)
{
        _cleanup_(watcher_told_done) struct watcher_told told = {0};
        int r = tell_watcher(supervisor, config, watch, &told);

        return r < 0 ? r : message_encode(MESSAGE_CONFIG_WATCHER, &told.message, ret);
}

/* All that there are, also one whose watcher is not up yet. */
static int tell_worker_of(const struct supervisor *supervisor, const struct config *config,
                          const struct config_watch *watch, struct record_watch *ret)
{
        const struct watch *known = watch_find(&supervisor->controller, watch->name);
        char *folder = secrets_store_folder(supervisor, watch);
        int r = folder ? config_worker_watch(config, watch, folder, supervisor->access.folder, ret)
                       : -ENOMEM;

        if (r < 0) {
                free(folder);
                return r;
        }
        if (known && !watch_place_of(known)->keeps_previous) {
                free((void *)(uintptr_t)ret->previous_folder);
                ret->previous_folder = NULL;
        }
        return 0;
}

/* Encoded: the configuration is not needed any longer. */
static int worker_packet(const struct supervisor *supervisor, const struct config *config, size_t slot,
                         struct text *ret)
{
        _cleanup_free_ struct record_watch *watch = calloc(config->watch_count, sizeof(*watch));
        _cleanup_free_ char *kept = secrets_kept_folder(supervisor);
        struct message_config_worker message = {
                .operator_name = config->operator_name,
                .former_names = config->former_names,
                .events_shared = config->workers > 1,
                .record_folder = supervisor->options->record ? supervisor->options->record : config->record,
                .trace_file = "",
                .tell_dry_run = supervisor->options->tell_dry_run,
                .group_folder = supervisor->delegation.folder,
                .group_controllers = supervisor->delegation.controllers,
                .clock_offset = supervisor->clock.offset,
                .kept_folder = kept,
                .window = config->window,
                .slot_file = supervisor->slots_path,
                .slot = slot,
                .hash_key = supervisor->hash_key,
                .hash_key_size = sizeof(supervisor->hash_key),
                .watch = watch,
                .watch_count = config->watch_count,
                .heartbeat_usec = config->heartbeat_interval_usec,
        };
        int r = watch && kept ? 0 : -ENOMEM;

        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                r = tell_worker_of(supervisor, config, &config->watch[i], &watch[i]);
        if (r >= 0)
                r = message_encode(MESSAGE_CONFIG_WORKER, &message, ret);
        for (size_t i = 0; watch && i < config->watch_count; i++) {
                if (!watch[i].handler_exec)
                        break;
                config_worker_watch_done(&watch[i]);
                free((void *)(uintptr_t)watch[i].store_folder);
        }
        return r;
}

static int config_worker(struct child_slot *child)
{
        const struct supervisor *supervisor = child->supervisor;
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        int r = worker_packet(supervisor, supervisor->config, child_slot_number(child), &packet);

        return r < 0 ? r
                     : channel_forward(child->process.channel, MESSAGE_CONFIG_WORKER, packet.data,
                                       packet.size);
}

int configure_can_tell(const struct supervisor *supervisor, const struct config *config, struct error *error)
{
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        int r = worker_packet(supervisor, config, 0, &packet);

        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                r = watcher_packet(supervisor, config, &config->watch[i], &packet);
        if (r >= 0)
                return 0;
        return error_set(
                error, r, "%s",
                r == -EMSGSIZE
                        ? "the configuration is too large: the commands, selectors and jq programs of all "
                          "watches may have 200 KiB together"
                : r == -EINVAL ? "a text from the environment is not UTF-8"
                               : strerror(-r));
}

static int config_gateway(struct child_slot *child)
{
        const struct config *config = child->supervisor->config;
        struct message_config_gateway message = {
                .listen = config->gateway_listen,
                .kept = kept_port_is(config->gateway_listen),
                .token_file = config->gateway_token_file,
                .certificate_file = config->gateway_certificate_file,
                .key_file = config->gateway_key_file,
                .deadline_usec = config->heartbeat_deadline_usec,
                .heartbeat_usec = config->heartbeat_interval_usec,
        };

        return channel_send(child->process.channel, MESSAGE_CONFIG_GATEWAY, &message);
}

static int config_lease(struct child_slot *child)
{
        const struct config *config = child->supervisor->config;
        char who[128] = "";

        (void)gethostname(who, sizeof(who) - 1);
        utf8_clean(who);
        return channel_send(child->process.channel, MESSAGE_CONFIG_LEASE,
                            &(struct message_config_lease){
                                    .operator_name = config->operator_name,
                                    .namespace_name = config->replicas_namespace,
                                    .record = config->replicas_lease,
                                    .member = child->supervisor->lead.member,
                                    .who = who,
                                    .compatible = config->replicas_compatible,
                                    .duration_usec = config->replicas_duration_usec,
                                    .heartbeat_usec = config->heartbeat_interval_usec,
                            });
}

int configure_child(struct child_slot *child)
{
        switch (child->process.role) {
        case ROLE_CREDENTIAL:
                return config_credential(child);
        case ROLE_WATCHER:
                return config_watcher(child);
        case ROLE_WORKER:
                return config_worker(child);
        case ROLE_GATEWAY:
                return config_gateway(child);
        case ROLE_LEASE:
                return config_lease(child);
        default:
                return -EINVAL;
        }
}
