/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/given.h"

#include <errno.h>
#include <string.h>

#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/owner-rights.h"
#include "store/meta.h"
#include "store/previous.h"
#include "store/reader.h"

#define SWEEP_STEP    4    /* objects that are looked at with each one that is kept */
#define SWEEP_AT_ONCE 2000 /* where there is no room */

/* ---- what goes wrong */

/* Once for each time that it begins to fail. */
static void tell_not_kept(struct run *run, const char *why)
{
        const struct record_watch *config = run->watch->config;

        if (!run->watch->previous_fails)
                log_write(
                        LOG_WARNING, MESSAGE_ID_PREVIOUS_NOT_KEPT,
                        LOG_FIELDS({"RECONCILED_WATCH", config->name}, {"RECONCILED_KEY", run->order->key},
                                   {"RECONCILED_UID", run->order->uid}),
                        "what the handler of watch %s was given of %s is not kept in %s: %s; its next request has no `previous`",
                        config->name, run->order->key, config->previous_folder, why);
        run->watch->previous_fails = true;
}

static void begin_anew(struct run *run)
{
        const struct record_watch *config = run->watch->config;
        int r = previous_begin_anew(config->previous_folder);

        log_write(
                LOG_WARNING, MESSAGE_ID_PREVIOUS_NOT_KEPT,
                LOG_FIELDS({"RECONCILED_WATCH", config->name}, {"RECONCILED_KEY", run->order->key},
                           {"RECONCILED_UID", run->order->uid}),
                "what is kept in %s for `previous` of watch %s is damaged, and is begun anew%s%s; until their handler has succeeded "
                "once more, objects have no `previous`",
                config->previous_folder, config->name, r < 0 ? ", which fails: " : "",
                r < 0 ? strerror(-r) : "");
}

/* Another worker may have begun it again already. */
static void given_failed(struct run *run, int error)
{
        struct worker_watch *watch = run->watch;
        bool is_damaged = error == -EBADMSG || error == -ENOTDIR;

        if (error >= 0 || error == -ENOSPC || error == -ENOENT || error == -ENAMETOOLONG)
                return;
        if (is_damaged && !run->worker->config->trace_file[0] &&
            (!watch->previous || previous_is_current(watch->previous)))
                begin_anew(run);
        previous_close(watch->previous);
        watch->previous = NULL;
}

/* In a run by hand, root's worker opens a file of the operator. */
static int open_as_owner(struct worker_watch *watch)
{
        const struct record_watch *config = watch->config;
        struct owner_rights rights;
        int r = owner_enter(config->previous_folder, &rights);

        if (r < 0)
                return r;
        r = previous_open(config->previous_folder, config->previous_max, &watch->previous);
        owner_leave(&rights);
        return r;
}

static int given_open(struct run *run)
{
        struct worker_watch *watch = run->watch;

        if (watch->previous && !previous_is_current(watch->previous)) {
                previous_close(watch->previous);
                watch->previous = NULL;
        }
        return watch->previous ? 0 : open_as_owner(watch);
}

/* ---- reading */

int given_write(struct run *run, struct text *out)
{
        const struct message_run *order = run->order;
        _cleanup_free_ char *json = NULL;
        int r;

        if (!run->watch->config->previous_folder[0] || !order->previous_version[0])
                return 0;
        r = given_open(run);
        if (r >= 0)
                r = previous_get(run->watch->previous, order->key, order->uid, order->previous_version,
                                 &json);
        given_failed(run, r);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        text_append_string(out, ",\"previous\":");
        return text_append_string(out, json);
}

/* ---- keeping */

/* Whether the list of the key's namespace is complete; else it is unknown what is gone there. */
static bool is_complete_for(struct store *reader, const char *key)
{
        const char *slash = strchr(key, '/');
        _cleanup_free_ char *namespace_name = strndup(key, slash ? (size_t)(slash - key) : 0);
        struct store_progress progress = {0};

        return namespace_name &&
               (store_read_progress(reader, namespace_name, &progress) >= 0 ||
                store_read_progress(reader, "", &progress) >= 0) &&
               progress.version > 0;
}

/* The object is there, or its deletion is yet to be told. */
static bool is_wanted(const char *key, const char *uid, void *userdata)
{
        const struct run *run = userdata;
        struct store *reader = run->watch->reader;
        uint64_t generation = run->order->generation;
        struct store_object object;
        bool is_same;
        int r = store_read(reader, generation, key, &object);

        is_same = r >= 0 && strcmp(object.uid, uid) == 0;
        if (r >= 0)
                store_object_done(&object);
        if (is_same || (r < 0 && r != -ENOENT) || !is_complete_for(reader, key))
                return true;
        r = store_read_tombstone(reader, generation, key, uid, &object);
        if (r >= 0)
                store_object_done(&object);
        return r != -ENOENT;
}

static int keep_given(struct run *run)
{
        const struct message_run *order = run->order;
        const char *version = run->object.resource_version;
        size_t size = strlen(run->json);
        int r = given_open(run);

        for (unsigned i = 0; i < 2 && r >= 0; i++) {
                r = previous_put(run->watch->previous, order->key, order->uid, version,
                                 order->previous_version, run->json, size);
                if (r == -ENOSPC && i == 0)
                        r = previous_sweep(run->watch->previous, SWEEP_AT_ONCE, is_wanted, run);
                else if (r >= 0)
                        return previous_sweep(run->watch->previous, SWEEP_STEP, is_wanted, run);
        }
        return r;
}

const char *given_keep(struct run *run)
{
        int r;

        if (!run->watch->config->previous_folder[0] || run->worker->config->trace_file[0])
                return "";
        if (run->action != ACTION_RECONCILE || !run->handler.ran)
                return run->parked.given ? run->parked.given : run->order->previous_version;
        r = keep_given(run);
        given_failed(run, r);
        if (r >= 0)
                run->watch->previous_fails = false;
        else if (r == -ENOSPC)
                tell_not_kept(run, "it would take more than previous.total, or the disk is full");
        else
                tell_not_kept(run, strerror(-r));
        return r < 0 ? "" : run->object.resource_version;
}
