/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/doubtful.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "controller/due/doubt.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/folders/ledger-clock.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/place.h"

#define DOUBTS_MAX 400 /* of a watch: they fit into one message; there are few or none */
#define DAY_USEC   (24 * USEC_PER_HOUR)

/* ---- what the watcher is told */

struct list {
        const struct supervisor *supervisor;
        struct record_doubt doubt[DOUBTS_MAX];
        size_t count;
};

static int collect(const struct ledger_doubt *doubt, void *userdata)
{
        struct list *list = userdata;
        struct record_doubt *record = &list->doubt[list->count++];

        record->key = strdup(doubt->key);
        record->uid = strdup(doubt->uid);
        record->unread = doubt->unread;
        record->until_boottime = ledger_to_boottime(list->supervisor, doubt->until_realtime);
        return record->key && record->uid ? 0 : -ENOMEM;
}

static void list_free(struct list *list)
{
        for (size_t i = 0; i < list->count; i++) {
                free((void *)(uintptr_t)list->doubt[i].key);
                free((void *)(uintptr_t)list->doubt[i].uid);
        }
        free(list);
}
DEFINE_CLEANUP(struct list *, list_free);

int doubtful_tell(struct watch *watch)
{
        _cleanup_(list_free_pointer) struct list *list = calloc(1, sizeof(*list));
        struct message_doubtful message = {.watch = watch->config->name};
        int r = -ENOMEM;

        if (list) {
                list->supervisor = supervisor_of(watch);
                r = ledger_visit_doubts(watch->controller->ledger, watch->config->name,
                                        ledger_now(supervisor_of(watch)), DOUBTS_MAX, collect, list);
        }
        if (r < 0)
                return r;
        watch->doubt_count = list->count;
        message.doubt = list->doubt;
        message.doubt_count = list->count;
        return channel_send(child_of(watch)->process.channel, MESSAGE_DOUBTFUL, &message);
}

int doubtful_release(struct watch *watch, const char *key)
{
        struct ledger *ledger = watch->controller->ledger;
        int removed = ledger_doubt_remove(ledger, watch->config->name, key),
            r = removed < 0 ? removed : ledger_commit(ledger);

        if (r < 0 || removed == 0)
                return r < 0 ? r : -ENOENT;
        log_write(LOG_NOTICE, MESSAGE_ID_RELEASED,
                  LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key}),
                  "%s of watch %s was released by hand: its watcher reads it again when it changes", key,
                  watch->config->name);
        return child_of(watch)->process.state == CHILD_RUNNING ? doubtful_tell(watch) : 0;
}
