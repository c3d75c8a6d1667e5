/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our finalizer on what the server shows. Its loss changes no fingerprint, so nothing else would notice it:
 * an object that lacks it, or has it although the watch does not want it, is announced as that. And of an
 * object that is being deleted without it we note, in the store, whether it was lost before: who takes it
 * off an object that is being deleted wants it gone, but what was deleted without it is still owed its
 * cleanup.
 */
#include <errno.h>
#include <string.h>

#include "store/finalizer.h"
#include "watcher/watcher.h"

static int look(const struct watcher *watcher, const struct store_object *object, struct finalizer_view *ret)
{
        return finalizer_look(object->json, object->json_size, watcher->config->finalizer, ret);
}

static enum finalizer_state state_of(const struct watcher *watcher, const struct finalizer_view *view)
{
        if (watcher->config->holds)
                return view->ours || view->deleting ? FINALIZER_FINE : FINALIZER_MISSING;
        return view->ours && watcher->config->releases ? FINALIZER_LEFT_OVER : FINALIZER_FINE;
}

enum finalizer_state finalizer_of_stored(const struct watcher *watcher, const struct store_object *object)
{
        struct finalizer_view view;

        if (!watcher->config->holds && !watcher->config->releases)
                return FINALIZER_FINE;
        return look(watcher, object, &view) < 0 ? FINALIZER_FINE : state_of(watcher, &view);
}

/* Of what is being deleted without ours. What was not seen before may have lost it before. */
static int was_unheld(struct watcher *watcher, const struct store_object *object, bool *ret)
{
        struct store_object stored;
        struct finalizer_view view;
        int r = store_get(watcher->store, object->key, &stored);

        *ret = true;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (strcmp(stored.uid, object->uid) == 0 && !stored.unheld && look(watcher, &stored, &view) >= 0)
                *ret = !view.deleting;
        store_object_done(&stored);
        return 0;
}

int finalizer_note(struct watcher *watcher, struct store_object *object, bool listed)
{
        struct finalizer_view view;

        object->unheld = false;
        object->finalizer = FINALIZER_FINE;
        /* Where it is not wanted, only what a start or a reload finds is looked at: events cost nothing, and
         * of what is being deleted the worker sees it. */
        if (!watcher->config->holds && !(watcher->config->releases && listed && !watcher->first_synced))
                return 0;
        if (look(watcher, object, &view) < 0)
                return 0;
        object->finalizer = state_of(watcher, &view);
        if (!watcher->config->holds || !view.deleting || view.ours)
                return 0;
        return was_unheld(watcher, object, &object->unheld);
}
