/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/absence.h"

#include <errno.h>

#include "store/record.h"
#include "store/writer.h"
#include "watcher/apply/announce-owner.h"
#include "watcher/apply/incoming.h"
#include "watcher/apply/scope.h"
#include "watcher/store-failure.h"
#include "watcher/stream/resume.h"

/* An object that a restored database does not have was undone; nobody took our finalizer away. That is noted
 * now: the answer about it may come late. */
static int ask_for(struct watcher *watcher, const struct store_object *object)
{
        int r = object->held && restored_lately(watcher) ? store_unhold_object(watcher->store, object->key)
                                                         : 0;

        return r < 0 ? r : verification_add(watcher, object->key, object->uid, false);
}

static int absent_object(const struct store_object *object, void *userdata)
{
        struct stream *stream = userdata;
        struct watcher *watcher = stream->watcher;

        if (stream_of_key(watcher, object->key) != stream)
                return 0;
        if (is_owned(watcher))
                return stream->list_incomplete ? 0 : owned_gone(watcher, object->key);
        if (absence_is_deletion(watcher) && !stream->list_incomplete)
                return apply_gone(watcher, object->key, object->uid);
        return ask_for(watcher, object);
}

int absence_listed(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        int r;

        if (watcher->deletions_suspended)
                return 0;
        r = store_visit_unmarked(watcher->store, stream->mark, absent_object, stream);
        if (r == -ECANCELED)
                return r;
        return r < 0 ? store_failed(watcher, r) : 0;
}

static int out_of_scope_object(const struct store_object *object, void *userdata)
{
        struct watcher *watcher = userdata;

        if (stream_of_key(watcher, object->key))
                return 0;
        if (is_owned(watcher))
                return owned_gone(watcher, object->key);
        return verification_add(watcher, object->key, object->uid, false);
}

/* Namespaces that are not watched any more: no stream lists them. */
int absence_out_of_scope(struct watcher *watcher)
{
        int r;

        if (watcher->deletions_suspended || watcher->stream[0].namespace_name[0] == '\0')
                return 0;
        r = store_visit_unmarked(watcher->store, watcher->first_mark, out_of_scope_object, watcher);
        if (r == -ECANCELED)
                return r;
        return r < 0 ? store_failed(watcher, r) : 0;
}
