/* SPDX-License-Identifier: Apache-2.0 */
/* See watcher.h. The configuration of the watcher, and its side of the channel. */
#include "watcher/watcher.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/close-in.h"
#include "ipc/message-id.h"
#include "object/confined.h"
#include "object/keyed-hash.h"
#include "store/dirty.h"
#include "store/owner.h"
#include "store/writer.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/finalizer-seen.h"
#include "watcher/apply/ledger-check.h"
#include "watcher/apply/scope.h"
#include "watcher/apply/synced.h"
#include "watcher/apply/verify.h"
#include "watcher/asking.h"
#include "watcher/list/transitions.h"
#include "watcher/setup.h"
#include "watcher/store-failure.h"
#include "watcher/stream/missing-namespaces.h"
#include "watcher/stream/refused-namespaces.h"
#include "watcher/stream/resume.h"

/* ---- configuration */

/* The watch was given another kind of object: the content of the store has nothing to do with it. */
static int drop_other_resource(struct watcher *watcher)
{
        int r;

        if (!scope_is_other_resource(watcher->meta.scope, watcher->scope))
                return 0;
        r = store_rebuild(watcher->store, NULL);
        if (r < 0)
                return store_failed(watcher, r);
        store_meta_done(&watcher->meta);
        r = store_meta_get(watcher->store, &watcher->meta);
        return r < 0 ? store_failed(watcher, r) : 0;
}

static void on_progress(void *userdata)
{
        child_beat(userdata);
}

/* Damage is found before anything is announced. A store that began again a moment ago has nothing to look
 * at. */
static int verify_store(struct watcher *watcher, bool *ret_rebuilt, struct error *error)
{
        int r = *ret_rebuilt ? 0 : store_verify(watcher->store, on_progress, watcher->child);

        if (r < 0 && r != -EBADMSG)
                return error_set(error, r, "%s", strerror(-r));
        if (r >= 0)
                return 0;
        r = store_rebuild(watcher->store, error);
        if (r < 0)
                return r;
        *ret_rebuilt = true;
        return error_set(error, 0, "its content is not what was written");
}

static int open_store(struct watcher *watcher)
{
        const struct message_config_watcher *config = watcher->config;
        _cleanup_error_ struct error error = ERROR_NONE;
        bool rebuilt = false;
        int r = store_writer_new_within(config->store_folder, config->memory_max, &rebuilt, &watcher->store,
                                        &error);

        if (r >= 0)
                r = verify_store(watcher, &rebuilt, &error);
        if (r == -ENOSPC && config->memory_max > 0)
                return memory_is_full(watcher);
        if (r < 0)
                return child_fatal(watcher->child, EXIT_CODE_IO, "the object store cannot be opened: %s",
                                   error_message(&error));
        if (rebuilt)
                log_write(LOG_WARNING, MESSAGE_ID_STORE_REBUILT,
                          LOG_FIELDS({"RECONCILED_WATCH", config->watch}),
                          "the object store of watch %s cannot be trusted (%s); it is rebuilt from the "
                          "API server",
                          config->watch, error_message(&error));
        r = finalizer_unhold(watcher, on_progress, watcher->child);
        if (r >= 0)
                r = restored_load(watcher);
        if (r >= 0)
                r = store_meta_get(watcher->store, &watcher->meta);
        return r < 0 ? store_failed(watcher, r) : drop_other_resource(watcher);
}

static void watcher_on_warning(const char *text, const struct fiber *asker _unused_, void *userdata)
{
        const struct watcher *watcher = userdata;

        log_warning("watch %s: the API server warns: %s", watcher->config->watch,
                    watcher->config->memory_max > 0 ? KUBE_WARNING_HIDDEN : text);
}

static void on_watcher_unusable(const char *reason, void *userdata)
{
        const struct watcher *watcher = userdata;

        child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "no request can be sent to the API server: %s",
                    reason);
}

static int compile(struct child *child, const char *key, const char *text, struct jq_program **ret)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = text[0] ? jq_program_new(text, ret, &error) : 0;

        return r < 0 ? child_fatal(child, EXIT_CODE_CONFIGURATION,
                                   "the jq program of `%s` does not compile: %s", key, error_message(&error))
                     : 0;
}

/* The watcher parses what strangers write. So it may run no program, write nothing but its store, and read
 * nothing else of the operator's. */
static int trim_watcher(struct watcher *watcher)
{
        char who[256];
        int r;

        snprintf(who, sizeof(who), "the watcher of watch %s", watcher->config->watch);
        r = close_in_client(who, watcher->config->store_folder);
        return r >= 0 ? 0
                      : child_fatal(watcher->child, EXIT_CODE_SOFTWARE,
                                    "the watcher cannot drop its privileges: %s", strerror(-r));
}

static int on_watcher_config(struct child *child, struct message **config)
{
        struct watcher *watcher = child->userdata;
        char user_agent[128];
        int r;

        if ((*config)->type != MESSAGE_CONFIG_WATCHER || watcher->config)
                return -EPROTO;
        watcher->config_message = TAKE_PTR(*config);
        watcher->config = &watcher->config_message->config_watcher;
        r = keyed_hash_begin(watcher->config->hash_key, watcher->config->hash_key_size);
        if (r < 0)
                return r;
        watcher->scope = scope_new(watcher->config);
        watcher->basis = watcher->scope ? basis_new(watcher->config, watcher->scope) : NULL;
        watcher->patterns =
                namespaces_are_patterns(watcher->config->namespace, watcher->config->namespace_count);
        r = compile(child, "trigger", watcher->config->trigger_jq, &watcher->trigger_program);
        if (r >= 0)
                r = compile(child, "filter", watcher->config->filter, &watcher->filter_program);
        if (r < 0)
                return r;
        snprintf(user_agent, sizeof(user_agent), "reconciled/" RECONCILED_VERSION " (watcher; %.60s)",
                 watcher->config->operator_name);
        r = watcher->basis ? kube_client_new(child->event, user_agent, &watcher->client) : -ENOMEM;
        if (r >= 0) {
                kube_client_on_unusable(watcher->client, on_watcher_unusable, watcher);
                kube_client_on_warning(watcher->client, watcher_on_warning, watcher);
        }
        if (r >= 0)
                r = fibers_new(child->event, &watcher->fibers);
        if (r >= 0 && watcher->config->slot_file[0])
                r = slot_open(watcher->config->slot_file, watcher->config->slot, &watcher->slot);
        if (r >= 0)
                r = verification_new(&watcher->verification);
        if (r >= 0)
                r = streams_new(watcher);
        if (r < 0)
                return child_fatal(child, EXIT_CODE_SOFTWARE, "cannot start: %s", strerror(-r));
        r = open_store(watcher);
        if (r >= 0 || watcher->full)
                r = trim_watcher(watcher);
        return r < 0 ? r : 1;
}

static int on_credential(struct watcher *watcher, const struct message_credential *credential)
{
        int r = kube_client_set_credential(watcher->client, credential);

        if (r < 0)
                return r;
        r = setup_credential(watcher, credential);
        if (r < 0)
                return r;
        if (watcher->discovered && watcher->identified)
                streams_resume(watcher);
        setup_retry(watcher);
        return 0;
}

/* Once the deletion is handled and recorded, the last known object may be forgotten. */
static int on_handled(struct watcher *watcher, const struct message_handled *handled)
{
        for (size_t i = 0; i < handled->handled_count; i++) {
                int r = store_tombstone_remove(watcher->store, handled->handled[i].key,
                                               handled->handled[i].uid);

                if (r < 0 && r != -ENAMETOOLONG)
                        return store_failed(watcher, r);
        }
        if (handled->handled_count > 0) { /* its object may be gone (own-object.c) */
                watcher->own_gone = true;
                fiber_end_sleep(&watcher->own_asleep);
        }
        announce_soon(watcher);
        return 0;
}

static int tell_position(struct watcher *watcher, uint64_t serial)
{
        struct message_position position = {
                .serial = serial,
                .objects = watcher->store ? store_count(watcher->store) : 0,
                .resource_version = "",
        };
        _cleanup_free_ char *missing = streams_names(watcher, missing_namespaces_has),
                            *refused = streams_names(watcher, refused_namespaces_has);

        position.missing_namespaces = missing;
        position.refused_namespaces = refused;
        for (size_t i = 0; i < watcher->stream_count; i++) {
                const char *version = watcher->stream[i].resource_version;

                if (version && (!position.resource_version[0] ||
                                resource_version_less(position.resource_version, version)))
                        position.resource_version = version;
        }
        (void)child_send(watcher->child, MESSAGE_POSITION, &position);
        return 0;
}

static int on_watcher_message(struct child *child, struct message **message)
{
        struct watcher *watcher = child->userdata;

        if (watcher->full) /* it has given up, and answers nothing */
                return 0;
        switch ((*message)->type) {
        case MESSAGE_CREDENTIAL:
                return on_credential(watcher, &(*message)->credential);
        case MESSAGE_THROTTLE:
                failures_wish(watcher, (*message)->throttle.resource, (*message)->throttle.until_boottime);
                return 0;
        case MESSAGE_ASK:
                return tell_position(watcher, (*message)->ask.serial);
        case MESSAGE_CREDIT:
                watcher->announce.credit += (*message)->credit.amount;
                return (*message)->credit.again ? swept_again(watcher) : (announce_soon(watcher), 0);
        case MESSAGE_OWED:
                return ledger_check_take(watcher, &(*message)->owed);
        case MESSAGE_DOUBTFUL:
                return doubts_set(watcher, message);
        case MESSAGE_HANDLED:
                return on_handled(watcher, &(*message)->handled);
        default:
                return -EPROTO;
        }
}

static void watcher_on_stop(struct child *child, uint64_t grace_usec _unused_)
{
        struct watcher *watcher = child->userdata;

        if (watcher->store && !watcher->full &&
            (positions_save(watcher) < 0 || store_commit(watcher->store) < 0))
                log_warning("the object store of watch %s could not be written at the end; it is rebuilt at "
                            "the next "
                            "start",
                            watcher->config->watch);
        child_exit(child, EXIT_CODE_OK);
}

/* Seconds since the server last said something about objects: an event, a bookmark, a list. */
static uint64_t silence_sec(const struct watcher *watcher)
{
        return watcher->count.word_boottime == 0
                       ? 0
                       : (clock_boottime_usec() - watcher->count.word_boottime) / USEC_PER_SEC;
}

/* How many objects the lists in flight have shown. */
static uint64_t list_shown(const struct watcher *watcher)
{
        uint64_t shown = 0;

        for (size_t i = 0; i < watcher->stream_count; i++)
                shown += watcher->stream[i].progress.listing ? watcher->stream[i].progress.shown : 0;
        return shown;
}

/* How many objects they will show; 0 if not all of them say. */
static uint64_t list_expected(const struct watcher *watcher)
{
        uint64_t expected = 0;

        FOREACH_ARRAY(stream, watcher->stream, watcher->stream_count) {
                if (!stream->progress.listing)
                        continue;
                if (stream->progress.left < 0)
                        return 0;
                expected += stream->progress.shown_in_pages + (uint64_t)stream->progress.left;
        }
        return expected;
}

static size_t count_watcher(struct child *child, struct record_counter *counter, size_t max)
{
        struct watcher *watcher = child->userdata;
        const struct record_counter own[] = {
                {"watch_events", watcher->count.events},
                {"lists", watcher->count.lists},
                {"relists", watcher->count.relists},
                {"watch_lists", watcher->count.watch_lists},
                {"resumed", watcher->count.resumed},
                {"reconnects", watcher->count.reconnects},
                {"bookmarks", watcher->count.bookmarks},
                {"undecodable", watcher->count.undecodable},
                {"program_failures", watcher->count.program_failures},
                {"owners_ignored", watcher->count.owners_ignored},
                {"contents_dropped", watcher->count.contents_dropped},
                {"replays", watcher->count.replays},
                {"lag", silence_sec(watcher)},
                {"objects", watcher->store ? store_count(watcher->store) : 0},
                {"dirty", watcher->store ? store_dirty_count(watcher->store) : 0},
                {"questions", watcher->store ? store_question_count(watcher->store) : 0},
                {"list_shown", list_shown(watcher)},
                {"list_expected", list_expected(watcher)},
                {"log_dropped", log_dropped()},
                {"missing_namespaces", streams_count(watcher, missing_namespaces_has)},
                {"refused_namespaces", streams_count(watcher, refused_namespaces_has)},
        };
        size_t n = ELEMENTS(own);

        if (max < n)
                return 0;
        memcpy(counter, own, sizeof(own));
        /* A transaction is not left open from one heartbeat to the next, whatever began it. */
        if (watcher->store && store_in_transaction(watcher->store))
                announce_soon(watcher);
        return n + kube_client_count(watcher->client, counter + n, max - n);
}

static void watcher_on_rest(struct child *child)
{
        struct watcher *watcher = child->userdata;

        fibers_trim(watcher->fibers);
}

const struct child_operations watcher_operations = {
        .role = ROLE_WATCHER,
        .log_role = "watcher",
        .parent_death_signal = SIGKILL,
        .on_config = on_watcher_config,
        .on_message = on_watcher_message,
        .on_stop = watcher_on_stop,
        .count = count_watcher,
        .at_rest = watcher_on_rest,
};

void watcher_done(struct watcher *watcher)
{
        asking_done(watcher);
        jq_program_free(watcher->trigger_program);
        jq_program_free(watcher->filter_program);
        streams_free(watcher);
        verification_free(watcher->verification);
        kube_client_free(watcher->client);
        kube_resource_done(&watcher->resource);
        store_meta_done(&watcher->meta);
        store_free(watcher->store);
        sd_event_source_disable_unref(watcher->announce.source);
        sd_event_source_disable_unref(watcher->announce.commit_timer);
        sd_event_source_disable_unref(watcher->full_source);
        failures_done(&watcher->failures);
        free(watcher->scope);
        free(watcher->basis);
        sweep_done(&watcher->announce.sweep);
        free(watcher->cluster);
        free(watcher->server);
        free(watcher->cluster_server);
        slot_close(watcher->slot);
        message_free(watcher->doubtful);
        message_free(watcher->config_message);
}
