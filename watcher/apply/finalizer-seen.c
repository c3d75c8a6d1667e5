/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/finalizer-seen.h"

#include <errno.h>
#include <string.h>

#include "object/bookkeeping.h"
#include "store/writer.h"
#include "watcher/apply/announce-owner.h"

static int look_at_finalizer(const struct watcher *watcher, const struct store_object *object,
                             struct finalizer_view *ret)
{
        return finalizer_look(object->json, object->json_size, watcher->config->finalizers, ret);
}

static enum finalizer_state finalizer_state_of(const struct watcher *watcher,
                                               const struct finalizer_view *view)
{
        if (watcher->config->holds)
                return view->ours || view->deleting ? FINALIZER_FINE : FINALIZER_MISSING;
        return view->ours && watcher->config->releases ? FINALIZER_LEFT_OVER : FINALIZER_FINE;
}

enum finalizer_state finalizer_of_stored(const struct watcher *watcher, const struct store_object *object)
{
        struct finalizer_view view;

        if (!watcher->config->holds && (!watcher->config->releases || object->free))
                return FINALIZER_FINE;
        return look_at_finalizer(watcher, object, &view) < 0 ? FINALIZER_FINE
                                                             : finalizer_state_of(watcher, &view);
}

/* Whether our finalizer was seen on the object since its deletion began. Where a watch that wanted the
 * finalizer has no news of that, it was not: a cleanup too many does less harm than one that is missing.
 * The version that the store has without the mark is no news either: the watch may not have wanted the
 * finalizer when it was stored, and a release of that time may still be in flight. Such a release names
 * the version it is based on, so it cannot touch a newer one. */
static int holds_finalizer(struct watcher *watcher, const struct store_object *object, bool ours, bool *ret)
{
        struct store_object stored;
        int r = store_peek(watcher->store, object->key, &stored);

        *ret = ours;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (strcmp(stored.uid, object->uid) == 0)
                *ret = stored.held ||
                       (ours && strcmp(stored.resource_version, object->resource_version) != 0);
        store_object_done(&stored);
        return 0;
}

/* A watch that does not want our finalizer takes it off, so its absence is not the wish of others from
 * now on. This is on disk before any object is announced, and so before any is released. */
int finalizer_unhold(struct watcher *watcher, void (*on_progress)(void *userdata), void *userdata)
{
        return watcher->config->holds || is_owned(watcher)
                       ? 0
                       : store_unhold(watcher->store, on_progress, userdata);
}

int finalizer_note(struct watcher *watcher, struct store_object *object, bool listed)
{
        struct finalizer_view view;

        object->held = false;
        object->finalizer = FINALIZER_FINE;
        /* If the watch wants no finalizer, only objects that a start or a reload lists are looked at: events
         * cost nothing, and the worker sees the finalizer of an object that is being deleted. */
        if (!watcher->config->holds &&
            !(watcher->config->releases && listed && !watcher->first_synced && !object->free))
                return 0;
        if (look_at_finalizer(watcher, object, &view) < 0)
                return 0;
        object->finalizer = finalizer_state_of(watcher, &view);
        if (!watcher->config->holds || !view.deleting)
                return 0;
        return holds_finalizer(watcher, object, view.ours, &object->held);
}

/* The last state also shows our finalizer where its removal was what ended the object. So only earlier
 * states count. */
int finalizer_note_end(struct watcher *watcher, struct store_object *last)
{
        return watcher->config->holds ? holds_finalizer(watcher, last, false, &last->held) : 0;
}
