/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/incoming.h"

#include <errno.h>
#include <string.h>

#include "ipc/message-id.h"
#include "object/identity.h"
#include "store/dirty.h"
#include "store/record.h"
#include "store/writer.h"
#include "watcher/apply/announce-owner.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/finalizer-seen.h"
#include "watcher/apply/scope.h"
#include "watcher/apply/verify.h"
#include "watcher/store-failure.h"
#include "watcher/stream/resume.h"

static int mark_dirty(struct watcher *watcher, enum change_kind kind, const struct store_object *object,
                      bool first)
{
        struct record_change change = {
                .kind = kind,
                .key = object->key,
                .uid = object->uid,
                .resource_version = object->resource_version ? object->resource_version : "",
                .fingerprint = object->fingerprint,
                .first = first,
                .finalizer = object->finalizer,
        };

        return store_dirty_add(watcher->store, &change);
}

/* Logs, once in a life, that the last content of a deleted object is not kept. All of them are counted. */
static void note_content_dropped(struct watcher *watcher, const char *key)
{
        const char *slash = strchr(key, '/');

        if (watcher->count.contents_dropped++ > 0)
                return;
        log_write(
                LOG_WARNING, MESSAGE_ID_CONTENT_DROPPED,
                LOG_FIELDS({"RECONCILED_WATCH", watcher->config->watch}, {"RECONCILED_KEY", key}),
                "watch %s, %s: the last content of the object, which was deleted, is not kept: contents of deleted "
                "objects%s%.*s whose cleanup has not succeeded yet take all the room that they may have; the action "
                "`deleted` is shown the identity alone (the first such object is named, the others are counted)",
                watcher->config->watch, key, slash ? " of namespace " : "", slash ? (int)(slash - key) : 0,
                key);
}

static int bury(struct watcher *watcher, const struct store_object *last)
{
        int r = store_bury(watcher->store, last);

        if (r == STORE_BURIED_ALONE)
                note_content_dropped(watcher, last->key);
        return r < 0 ? r : mark_dirty(watcher, CHANGE_DELETED, last, false);
}

/* ---- updates */

/* The sweep of a first list will still come by this key, so nothing else need announce it. */
static bool is_swept(const struct watcher *watcher, const struct store_object *object, bool listed)
{
        return listed && !watcher->first_synced && sweep_is_to_come(&watcher->announce.sweep, object->key);
}

/* Returns 1 if nothing has to be done. */
static int is_replay(struct stream *stream)
{
        stream->watcher->count.replays++;
        return 1;
}

/* A UID with a tombstone does not come back, except in a database that went back in time. A list shows it, or,
 * where the object was not selected then, an event after that list. The supervisor withdraws the deletion. */
static int is_dead(struct stream *stream, const struct store_object *object, bool listed)
{
        struct store *store = stream->watcher->store;

        if (!store_tombstone_exists(store, object->key, object->uid))
                return 0;
        return listed || stream->watcher->restored.count > 0 || restored_lately(stream->watcher)
                       ? store_tombstone_remove(store, object->key, object->uid)
                       : is_replay(stream);
}

/* The store may hold more of the object than is asked for now, or less (metadataOnly), in the very same
 * version, because it was stored under another scope. */
static bool has_other_form(const struct watcher *watcher, const struct store_object *stored,
                           const struct store_object *object, bool listed)
{
        return listed && !watcher->first_synced && stored->json_size != object->json_size &&
               strcmp(watcher->meta.scope, watcher->scope) != 0;
}

/* Compares the new object with what the store holds of this key. 1: nothing is to be done. */
static int compare_stored(struct stream *stream, const struct store_object *object, bool listed,
                          bool *ret_dirty)
{
        struct watcher *watcher = stream->watcher;
        struct store_object stored;
        int r = store_peek(watcher->store, object->key, &stored);

        *ret_dirty = true;
        if (r == -ENOENT)
                return is_dead(stream, object, listed);
        if (r < 0)
                return r;
        if (strcmp(stored.uid, object->uid) != 0) {
                /* The object was deleted and created again: these are two objects. */
                struct store_object last = {.key = stored.key,
                                            .uid = stored.uid,
                                            .resource_version = stored.resource_version,
                                            .fingerprint = stored.fingerprint,
                                            .unheld = restored_lately(watcher)};

                r = is_owned(watcher) ? 0 : bury(watcher, &last);
                if (r >= 0 && listed && store_tombstone_exists(watcher->store, object->key, object->uid))
                        r = store_tombstone_remove(watcher->store, object->key, object->uid);
        } else if (!listed && resource_version_less(object->resource_version, stored.resource_version)) {
                r = is_replay(stream);
        } else {
                /* For owned objects, only a difference is announced. */
                bool other_form = has_other_form(watcher, &stored, object, listed);

                *ret_dirty = stored.fingerprint != object->fingerprint || other_form ||
                             object->finalizer != FINALIZER_FINE ||
                             (listed && !watcher->first_synced && !is_owned(watcher));
                if (strcmp(stored.resource_version, object->resource_version) == 0 &&
                    stored.fingerprint == object->fingerprint && !stream->list_replaces && !other_form) {
                        r = store_touch(watcher->store, object->key, object->mark);
                        if (r >= 0 && is_owned(watcher) && listed && !watcher->first_synced)
                                r = owned_again(watcher, object);
                        if (r >= 0 && *ret_dirty && !is_swept(watcher, object, listed))
                                r = mark_dirty(watcher, CHANGE_UPDATED, object, listed);
                        r = r < 0 ? r : 1;
                }
        }
        store_object_done(&stored);
        return r;
}

static int store_object_now(struct stream *stream, const struct store_object *object, bool listed)
{
        struct watcher *watcher = stream->watcher;
        bool dirty;
        int r = compare_stored(stream, object, listed, &dirty);

        if (r == 0) {
                r = is_owned(watcher) ? owned_before_put(watcher, object) : 0;
                if (r >= 0)
                        r = store_put(watcher->store, object);
                if (r >= 0 && dirty && is_owned(watcher))
                        return announce_owners(watcher, object);
                if (r >= 0 && dirty && (stream->list_replaces || !is_swept(watcher, object, listed)))
                        r = mark_dirty(watcher, CHANGE_UPDATED, object, listed && !watcher->first_synced);
        }
        return r < 0 ? r : 0;
}

/* A watch brings only what is newer than the version that it was asked from; anything else was seen
 * before. */
static bool is_from_the_past(const struct stream *stream, const char *version)
{
        return stream->state == STREAM_WATCHING && !resource_version_less(stream->watched_version, version);
}

static int advance_position(struct stream *stream, const char *version)
{
        return stream->state == STREAM_WATCHING && resource_version_less(stream->resource_version, version)
                       ? stream_set_resource_version(stream, version)
                       : 0;
}

/* An object that cannot be read harms only itself. But an object that this list does not show may be that
 * one, so the server must be asked for it. */
static int skip_object(struct stream *stream, bool listed, const char *what)
{
        stream->watcher->count.undecodable++;
        if (listed)
                stream->list_incomplete = true;
        log_warning("watch %s: an object %s is left out", stream->watcher->config->watch, what);
        return 0;
}

#define UNREADABLE "without readable metadata (name, uid, resourceVersion)"

#define SHOWN_MAX 253 /* bytes of a name */

static char *shown_text(struct span value)
{
        char *text = NULL;

        if (scan_string(value, &text) < 0)
                return strdup(value.start ? "?" : "");
        if (strlen(text) > SHOWN_MAX)
                text[SHOWN_MAX] = '\0';
        utf8_clean(text);
        return text;
}

/* Logs, once in a life, that an object is refused: no object that we serve can have this name or uid. No
 * store and no ledger holds such an object, so a list is complete without it. All of them are counted. */
static int refuse_object(struct watcher *watcher, const char *json, size_t size)
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL;
        struct scan_object object = {0};

        watcher->count.undecodable++;
        if (watcher->count.refused++ > 0)
                return 0;
        (void)scan_identity(json, size, &object);
        namespace_name = shown_text(object.namespace_name);
        name = shown_text(object.name);
        if (!namespace_name || !name)
                return store_failed(watcher, -ENOMEM);
        log_write(LOG_WARNING, MESSAGE_ID_OBJECT_REFUSED,
                  LOG_FIELDS({"RECONCILED_WATCH", watcher->config->watch}),
                  "watch %s: the object %s%s%s is left out: its name or uid is longer than %d bytes (of "
                  "a uid: %d) or holds control characters (the first such object is named, the others are "
                  "counted)",
                  watcher->config->watch, namespace_name, namespace_name[0] ? "/" : "", name,
                  IDENTITY_KEY_MAX, IDENTITY_UID_MAX);
        return 0;
}

/* Logs as much of the object's name as can be read. */
static int skip_unreadable(struct stream *stream, bool listed, const char *json, size_t size)
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL;
        struct scan_object object = {0};
        char what[700];

        (void)scan_identity(json, size, &object);
        namespace_name = shown_text(object.namespace_name);
        name = shown_text(object.name);
        if (!namespace_name || !name)
                return store_failed(stream->watcher, -ENOMEM);
        snprintf(what, sizeof(what), UNREADABLE ", %s%s%s,", namespace_name, namespace_name[0] ? "/" : "",
                 name[0] ? name : "of a name that cannot be read either");
        return skip_object(stream, listed, what);
}

int apply_skipped(struct stream *stream)
{
        return skip_object(stream, true, "of more than 16 MiB");
}

/* Logs, once in a life, that a program fails on an object, which harms only that object. All of them are
 * counted. */
static void note_program_failure(struct watcher *watcher, const char *key, const char *program,
                                 const char *instead, const struct error *error)
{
        if (watcher->count.program_failures++ == 0)
                log_write(
                        LOG_WARNING, NULL,
                        LOG_FIELDS({"RECONCILED_WATCH", watcher->config->watch}, {"RECONCILED_KEY", key}),
                        "watch %s, %s: the jq program of `%s` fails on it: %s; %s (the first such object is "
                        "named, the others are counted)",
                        watcher->config->watch, key, program,
                        watcher->config->memory_max > 0 && error->status != -E2BIG
                                ? "its message is not shown: it may quote confidential content"
                                : error_message(error),
                        instead);
}

/* An object that the filter cannot judge counts as selected, so that none is missed. */
static bool passes_filter(struct watcher *watcher, const struct identity *identity, const char *json,
                          size_t size)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        bool passes = true;
        int r;

        if (!watcher->filter_program || doubt_of(watcher, identity->key, identity->uid) == DOUBT_PROGRAM)
                return true;
        slot_set(watcher->slot, SLOT_PROGRAM, identity->key, identity->uid);
        r = jq_program_test(watcher->filter_program, json, size, watcher->config->metadata_only, &passes,
                            &error);
        slot_clear(watcher->slot);
        if (r < 0)
                note_program_failure(watcher, identity->key, "filter", "it counts as selected", &error);
        return passes;
}

/* Damage in our own store is not a fault of the object that is being read, which must not be left out for
 * it. */
static int of_store(struct watcher *watcher, int status)
{
        return status == -EBADMSG ? store_failed(watcher, status) : status;
}

/* The object exists, but the watch does not select it (any more). */
static int apply_filtered(struct stream *stream, const struct identity *identity)
{
        struct watcher *watcher = stream->watcher;
        struct store_object stored;
        int r = store_peek(watcher->store, identity->key, &stored);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (strcmp(stored.uid, identity->uid) != 0)
                r = apply_gone(watcher, stored.key, stored.uid);
        else
                r = apply_unselected(watcher, stored.key, stored.uid, false);
        store_object_done(&stored);
        return r;
}

static int apply_read(struct stream *stream, const struct identity *identity, const char *json, size_t size,
                      bool listed)
{
        const struct message_config_watcher *config = stream->watcher->config;
        struct store_object object = {
                .key = (char *)(uintptr_t)identity->key,
                .uid = (char *)(uintptr_t)identity->uid,
                .resource_version = (char *)(uintptr_t)identity->resource_version,
                .mark = stream->mark,
                .json = (char *)(uintptr_t)json,
                .json_size = size,
                .free = !identity->has_finalizers,
        };
        struct trigger_basis basis = {
                .trigger = config->trigger,
                .ours = {config->finalizers, config->shared, config->conditions},
                .program = stream->watcher->trigger_program,
                .partial = config->metadata_only,
        };
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        if (basis.trigger == TRIGGER_JQ &&
            doubt_of(stream->watcher, identity->key, identity->uid) == DOUBT_PROGRAM)
                basis.trigger = TRIGGER_ESSENCE; /* likewise where the program fails */
        slot_set(stream->watcher->slot, basis.trigger == TRIGGER_JQ ? SLOT_PROGRAM : SLOT_READING,
                 identity->key, identity->uid);
        r = trigger_fingerprint(&basis, json, size, &object.fingerprint, &error);
        slot_clear(stream->watcher->slot);
        if (r > 0)
                note_program_failure(stream->watcher, identity->key, "trigger",
                                     "its content without status is used instead", &error);
        if (r >= 0 && !is_owned(stream->watcher))
                r = of_store(stream->watcher, finalizer_note(stream->watcher, &object, listed));
        return r < 0 ? r : of_store(stream->watcher, store_object_now(stream, &object, listed));
}

/* A stored object stays as it is, and does not count as absent; one that is not stored waits. */
static int leave_out_object(struct stream *stream, const struct identity *identity)
{
        struct store *store = stream->watcher->store;
        struct store_object stored;
        int r = store_peek(store, identity->key, &stored);

        stream->watcher->count.undecodable++;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (strcmp(stored.uid, identity->uid) == 0)
                r = store_touch(store, identity->key, stream->mark);
        store_object_done(&stored);
        return r;
}

static int apply_chosen(struct stream *stream, const struct identity *identity, const char *json,
                        size_t size, bool listed)
{
        struct watcher *watcher = stream->watcher;

        /* Many objects come in one turn of the loop, and programs may need JQ_TIME_MAX for each. */
        if (watcher->filter_program || watcher->trigger_program)
                child_beat_if_due(watcher->child);
        if (doubt_of(watcher, identity->key, identity->uid) == DOUBT_UNREAD)
                return of_store(watcher, leave_out_object(stream, identity));
        return passes_filter(watcher, identity, json, size)
                       ? apply_read(stream, identity, json, size, listed)
                       : of_store(watcher, apply_filtered(stream, identity));
}

int apply_foreign(struct stream *stream, const char *key, struct span kind)
{
        const struct watcher *watcher = stream->watcher;
        _cleanup_free_ char *shown = shown_text(kind);
        const char *where = stream->namespace_name;

        stream->watcher->count.undecodable++;
        kube_error_set(
                &stream->stream_error, KUBE_FAILURE_PROTOCOL,
                "the server's answer holds %s %s, which was not asked for (but %s%s%s); the answer is not "
                "trusted, and everything is listed again. Look for a proxy before the API server that "
                "confuses requests",
                shown && shown[0] ? shown : "an object", key, watcher->config->kind,
                where[0]                       ? " of namespace "
                : watcher->resource.namespaced ? " of any namespace"
                                               : " of the cluster",
                where);
        log_warning("watch %s: %s", watcher->config->watch,
                    stream->stream_error.message ? stream->stream_error.message : "");
        return -ECANCELED;
}

int apply_object(struct stream *stream, const char *json, size_t size, bool listed)
{
        struct identity identity;
        struct watcher *watcher = stream->watcher;
        int r = identity_read(json, size, false, &identity);

        stream->progress.shown += listed;
        if (r == -ENAMETOOLONG)
                return refuse_object(watcher, json, size);
        if (r >= 0 && !scope_fits(stream, &identity))
                return apply_foreign(stream, identity.key, identity.kind);
        if (r >= 0 && !listed && is_from_the_past(stream, identity.resource_version))
                return is_replay(stream);
        if (r >= 0 && scope_chooses(watcher, identity.key))
                r = apply_chosen(stream, &identity, json, size, listed);
        if (r == -EBADMSG || r == -ENAMETOOLONG)
                return skip_unreadable(stream, listed, json, size);
        if (r == -ECANCELED)
                return r; /* it was reported already */
        if (r >= 0 && !listed)
                r = advance_position(stream, identity.resource_version);
        return r < 0 ? store_failed(watcher, r) : announce_due(watcher);
}

/* ---- deletions */

int apply_gone(struct watcher *watcher, const char *key, const char *uid)
{
        struct store_object last = {
                .key = (char *)(uintptr_t)key,
                .uid = (char *)(uintptr_t)uid,
                .resource_version = (char[]){""},
                /* the deletion may be part of the restore, and then nobody took our finalizer off */
                .unheld = restored_lately(watcher),
        };

        int r = bury(watcher, &last);

        return r < 0 ? store_failed(watcher, r) : 0;
}

/* DELETED under a selector: the object is gone, or only not selected any more. If the store does not
 * hold it, it was never selected. The mark becomes 0, so that only a later event or LIST counts as seeing
 * it again. */
static int apply_left(struct watcher *watcher, const struct identity *identity)
{
        struct store_object stored;
        int r = store_peek(watcher->store, identity->key, &stored);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return store_failed(watcher, r);
        if (strcmp(stored.uid, identity->uid) == 0) {
                r = store_touch(watcher->store, identity->key, 0);
                r = r < 0 ? store_failed(watcher, r)
                          : verification_add(watcher, identity->key, identity->uid, false);
        }
        store_object_done(&stored);
        return r;
}

int apply_deleted(struct stream *stream, const char *json, size_t size)
{
        struct identity identity;
        struct watcher *watcher = stream->watcher;
        struct store_object last;
        int r = identity_read(json, size, true, &identity);

        if (r == -ENAMETOOLONG)
                return refuse_object(watcher, json, size);
        if (r == -EBADMSG)
                return skip_unreadable(stream, false, json, size);
        if (r < 0)
                return store_failed(watcher, r);
        if (!scope_fits(stream, &identity))
                return apply_foreign(stream, identity.key, identity.kind);
        /* A DELETED may carry an old version (kubernetes#58545); the stream's version never goes down. */
        if (advance_position(stream, identity.resource_version) < 0)
                return store_failed(watcher, -ENOMEM);
        if (!scope_chooses(watcher, identity.key))
                return 0;
        if (is_owned(watcher))
                return owned_gone(watcher, identity.key);
        /* Under a selector, this also comes when the object has only left the selection. */
        if (watcher->config->label_selector[0] || watcher->config->field_selector[0])
                return apply_left(watcher, &identity);
        last = (struct store_object){
                .key = identity.key,
                .uid = identity.uid,
                .resource_version = identity.resource_version,
                .json = (char *)(uintptr_t)json,
                .json_size = size,
        };
        r = finalizer_note_end(watcher, &last);
        if (r < 0)
                return store_failed(watcher, r);
        r = bury(watcher, &last);
        return r < 0 ? store_failed(watcher, r) : announce_due(watcher);
}

int apply_unselected(struct watcher *watcher, const char *key, const char *uid, bool other_kind)
{
        struct store_object object = {
                .key = (char *)(uintptr_t)key,
                .uid = (char *)(uintptr_t)uid,
        };
        struct store_object stored;
        int r = store_peek(watcher->store, key, &stored);

        if (r >= 0) {
                r = strcmp(stored.uid, uid) == 0 ? store_remove(watcher->store, key) : 0;
                store_object_done(&stored);
        }
        if (r >= 0 || r == -ENOENT)
                r = mark_dirty(watcher, CHANGE_UNSELECTED, &object, other_kind);
        return r < 0 ? store_failed(watcher, r) : 0;
}
