/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/ledger-check.h"

#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "store/record.h"
#include "store/writer.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/incoming.h"
#include "watcher/apply/scope.h"
#include "watcher/apply/verify.h"
#include "watcher/store-failure.h"
#include "watcher/stream/stream.h"

/* Returns 1: the object is there, or its deletion is known already. */
static int is_accounted_for(struct watcher *watcher, const struct record_owed *owed)
{
        struct store_object stored;
        int r = store_peek(watcher->store, owed->key, &stored);

        if (r >= 0) {
                r = strcmp(stored.uid, owed->uid) == 0;
                store_object_done(&stored);
        }
        if (r == 0 || r == -ENOENT)
                r = store_tombstone_exists(watcher->store, owed->key, owed->uid);
        return r;
}

static int check_owed(struct watcher *watcher, const struct record_owed *owed)
{
        const struct stream *stream = stream_of_key(watcher, owed->key);
        int r = is_accounted_for(watcher, owed);

        /* Nothing is known about an object that is not read, so it stays owed. */
        if (r == -ENAMETOOLONG || r > 0 || doubt_of(watcher, owed->key, owed->uid) == DOUBT_UNREAD)
                return 0;
        if (r < 0)
                return store_failed(watcher, r);
        /* The row is about another kind of object: the watch was given another task, and nothing was
         * deleted. */
        if (scope_is_other_resource(watcher->config->known_scope, watcher->scope))
                return apply_unselected(watcher, owed->key, owed->uid, true);
        /* An object that the filter keeps out of the store, or that could not be read, may still exist; so may one
         * whose namespace was never listed. */
        if (absence_is_deletion(watcher) && !watcher->filter_program &&
            !(stream && (stream->list_incomplete || !stream->synced)))
                return apply_gone(watcher, owed->key, owed->uid);
        return verification_add(watcher, owed->key, owed->uid, true);
}

int ledger_check_take(struct watcher *watcher, const struct message_owed *owed)
{
        if (!watcher->first_synced)
                return -EPROTO;
        /* Nothing can be said about rows of another cluster; they stay as they are, and so do their
         * objects. */
        if (watcher->deletions_suspended)
                return 0;
        for (size_t i = 0; i < owed->owed_count; i++) {
                int r = check_owed(watcher, &owed->owed[i]);

                if (r < 0)
                        return r;
        }
        if (owed->last)
                watcher->owed_complete = true;
        /* Announces at once, not when the loop has nothing else to do: page follows page as long as there
         * are rows, and changes must not wait for the last one. */
        if (announce_now(watcher) < 0)
                return -ECANCELED;
        ledger_check_finish_maybe(watcher);
        return 0;
}

void ledger_check_finish_maybe(struct watcher *watcher)
{
        struct message_checked checked = {
                .watch = watcher->config->watch,
                .cluster = watcher->cluster,
                .scope = watcher->scope,
        };
        int r;

        if (!watcher->owed_complete || watcher->checked || !streams_are_synced(watcher) ||
            !verification_idle(watcher))
                return;
        r = meta_save(watcher, true);
        if (r >= 0)
                r = store_commit(watcher->store);
        if (r < 0) {
                store_failed(watcher, r);
                return;
        }
        watcher->checked = true;
        if (child_send(watcher->child, MESSAGE_CHECKED, &checked) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE,
                            "cannot report to the supervisor that the ledger was compared");
}
