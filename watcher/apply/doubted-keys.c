/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/doubted-keys.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"

int doubts_set(struct watcher *watcher, struct message **message)
{
        if (strcmp((*message)->doubtful.watch, watcher->config->watch) != 0)
                return -EPROTO;
        message_free(watcher->doubtful);
        watcher->doubtful = TAKE_PTR(*message);
        return 0;
}

static int compare_keys(const void *key, const void *member)
{
        const struct record_doubt *a = key, *b = member;
        int order = strcmp(a->key, b->key);

        return order != 0 ? order : strcmp(a->uid, b->uid);
}

enum doubt doubt_of(const struct watcher *watcher, const char *key, const char *uid)
{
        const struct message_doubtful *list = watcher->doubtful ? &watcher->doubtful->doubtful : NULL;
        const struct record_doubt *found;

        if (!list || list->doubt_count == 0)
                return DOUBT_NONE;
        found = bsearch(&(struct record_doubt){.key = key, .uid = uid}, list->doubt, list->doubt_count,
                        sizeof(*list->doubt), compare_keys);
        if (!found || found->until_boottime <= clock_boottime_usec())
                return DOUBT_NONE;
        return found->unread ? DOUBT_UNREAD : DOUBT_PROGRAM;
}
