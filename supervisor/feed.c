/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor tells its children: configuration, credentials, a server's wish to be left alone. */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "controller/change/owed.h"
#include "controller/run/retry.h"
#include "ipc/message-id.h"
#include "supervisor/supervisor.h"

uint64_t shortest_deadline(const struct config *config)
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
        int r = config_access(config, supervisor->access_folder, &access, &count);

        if (r >= 0)
                r = channel_send(child->channel, MESSAGE_CONFIG_CREDENTIAL,
                                 &(struct message_config_credential){
                                         .kubeconfig = config->kubeconfig,
                                         .context = config->context,
                                         .access_folder = count > 0 ? supervisor->access_folder : "",
                                         .access = access,
                                         .access_count = count,
                                         .deadline_usec = shortest_deadline(config),
                                         .heartbeat_usec = config->heartbeat_interval_usec,
                                 });
        config_access_done(access, count);
        return r;
}

/* What a watcher is told, with what belongs to it. */
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

/* But for what only the ledger knows, and the slot. */
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
        told.message.slot_file = supervisor->slots_path;
        told.message.slot = child->index;
        told.message.known_scope = scope;
        told.message.known_cluster = cluster;
        return channel_send(child->channel, MESSAGE_CONFIG_WATCHER, &told.message);
}

static int watcher_packet(const struct supervisor *supervisor, const struct config *config,
                          const struct config_watch *watch, struct text *ret)
{
        _cleanup_(watcher_told_done) struct watcher_told told = {0};
        int r = tell_watcher(supervisor, config, watch, &told);

        return r < 0 ? r : message_encode(MESSAGE_CONFIG_WATCHER, &told.message, ret);
}

int feed_watcher_differs(const struct supervisor *supervisor, const struct config_watch *old,
                         const struct config *config, const struct config_watch *watch)
{
        _cleanup_text_ struct text before = TEXT_EMPTY, after = TEXT_EMPTY;
        int r = watcher_packet(supervisor, supervisor->config, old, &before);

        if (r >= 0)
                r = watcher_packet(supervisor, config, watch, &after);
        if (r < 0)
                return r;
        return before.size != after.size || memcmp(before.data, after.data, before.size) != 0;
}

/* All that there are, also one whose watcher is not up yet. */
static int tell_worker_of(const struct supervisor *supervisor, const struct config *config,
                          const struct config_watch *watch, struct record_watch *ret)
{
        char *folder = secrets_store_folder(supervisor, watch);
        int r = folder ? config_worker_watch(config, watch, folder, supervisor->access_folder, ret)
                       : -ENOMEM;

        if (r < 0)
                free(folder);
        return r;
}

/* Encoded: what it speaks of is not needed any longer. */
static int worker_packet(const struct supervisor *supervisor, const struct config *config, struct text *ret)
{
        _cleanup_free_ struct record_watch *watch = calloc(config->watch_count, sizeof(*watch));
        _cleanup_free_ char *kept = secrets_kept_folder(supervisor);
        struct message_config_worker message = {
                .operator_name = config->operator_name,
                .events_shared = config->workers > 1,
                .record_folder = supervisor->options->record ? supervisor->options->record : config->record,
                .trace_file = "",
                .group_folder = supervisor->delegation.folder,
                .group_controllers = supervisor->delegation.controllers,
                .clock_offset = supervisor->clock.offset,
                .kept_folder = kept,
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
        struct supervisor *supervisor = child->supervisor;
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        int r = worker_packet(supervisor, supervisor->config, &packet);

        if (r < 0)
                return r;
        supervisor->controller.worker[child->index].stale = false;
        return channel_forward(child->channel, MESSAGE_CONFIG_WORKER, packet.data, packet.size);
}

int feed_can_tell(const struct supervisor *supervisor, const struct config *config, struct error *error)
{
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        int r = worker_packet(supervisor, config, &packet);

        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                r = watcher_packet(supervisor, config, &config->watch[i], &packet);
        if (r >= 0)
                return 0;
        return error_set(error, r, "%s",
                         r == -EMSGSIZE ? "the configuration is larger than what a process can be told: 200 "
                                          "KiB, for commands, selectors and jq programs of all watches "
                                          "together"
                         : r == -EINVAL ? "a text that comes from the environment is no UTF-8"
                                        : strerror(-r));
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

static void send_throttles(struct child_slot *child)
{
        const struct throttles *throttles = &child->supervisor->throttles;

        for (size_t i = 0; i < THROTTLES_MAX && talks_to_server(child); i++)
                if (throttles->entry[i].until > clock_boottime_usec())
                        (void)channel_send(
                                child->channel, MESSAGE_THROTTLE,
                                &(struct message_throttle){.resource = throttles->entry[i].resource,
                                                           .until_boottime = throttles->entry[i].until});
}

void feed_ready(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;
        struct watch *watch;
        int r = child->kind == KIND_WATCHER ? doubt_feed(&supervisor->controller.watch[child->index]) : 0;

        if (r >= 0 && child->kind == KIND_WATCHER)
                r = owed_begin(&supervisor->controller.watch[child->index]);
        if (r < 0) {
                ledger_failed(&supervisor->controller, r);
                return;
        }
        /* One that a reload has started is bound by the wishes of the server as well. Nothing is read before
         * it has its credential. */
        send_throttles(child);
        send_credential(child);
        if (child->kind == KIND_WATCHER) {
                watch = &supervisor->controller.watch[child->index];
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
        bool renewed = supervisor->credential;

        message_free(supervisor->credential);
        supervisor->credential = TAKE_PTR(*message);
        supervisor->controller.has_credential = true;
        FOREACH_WATCH(watch, &supervisor->controller)
                if (renewed)
                        recover(watch);
        turn_settle_soon(supervisor);
        for (size_t i = 0; i < supervisor->child_count; i++)
                send_credential(&supervisor->child[i]);
        return 0;
}

#define STILL_USEC USEC_PER_MINUTE /* wishes that follow one another that closely are one state */

/* Once for each state, however many requests and objects wait for it. */
static void tell_held_back(const struct throttles *throttles, const struct message_throttle *throttle)
{
        uint64_t now = clock_boottime_usec();
        const char *slash = strchr(throttle->resource, '/');
        char text[64];

        for (size_t i = 0; i < THROTTLES_MAX; i++)
                if (throttles->entry[i].until + STILL_USEC > now && throttles->entry[i].until > 0 &&
                    strcmp(throttles->entry[i].resource, throttle->resource) == 0)
                        return;
        if (throttle->until_boottime <= now + STILL_USEC / 20)
                return; /* one that overloads for a moment */
        duration_format((throttle->until_boottime - now + USEC_PER_SEC - 1) / USEC_PER_SEC * USEC_PER_SEC,
                        text, sizeof(text));
        log_write(
                LOG_WARNING, MESSAGE_ID_HELD_BACK, NULL,
                "the API server wants no requests%s%s for %s (Retry-After): %s; what needs them waits, and "
                "nothing else does",
                slash ? " for " : "", slash ? slash + 1 : "", text, throttle->reason);
}

void feed_throttle(struct child_slot *from, const struct message_throttle *throttle)
{
        struct supervisor *supervisor = from->supervisor;

        tell_held_back(&supervisor->throttles, throttle);
        if (!throttle_note(&supervisor->throttles, throttle->resource, throttle->until_boottime))
                return;
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
