/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that a watcher has died or hung over: which one it was, its slot says. From the first time on the
 * next watcher gets past it: a jq program that never ends or crashes is not run on it for the time of the
 * quarantine (it counts as selected, and what it is without status stands in for what the trigger yields),
 * so that it is served as all others are; where our own code died, nothing of it is read. Each time that it
 * happens again that time is doubled.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "supervisor/supervisor.h"

#define DOUBTS_MAX 400 /* of a watch: they fit into one message; there are few or none */
#define DAY_USEC   (24 * USEC_PER_HOUR)

int doubt_look(const struct supervisor *supervisor, const struct child_slot *child, struct slot_view *ret)
{
        return slots_look(supervisor->slots, child->index, ret);
}

static uint64_t doubt_duration(const struct config_watch *config, uint64_t crashes)
{
        uint64_t duration = config->quarantine_usec;

        for (uint64_t i = 1; i < crashes && duration < DAY_USEC; i++)
                duration *= 2;
        return duration;
}

static void tell(const struct ledger_doubt *doubt, uint64_t duration_usec)
{
        char duration[64], crashes[24];

        snprintf(crashes, sizeof(crashes), "%" PRIu64, doubt->crashes);
        log_write(
                LOG_ERR, MESSAGE_ID_DOUBTFUL,
                LOG_FIELDS({"RECONCILED_WATCH", doubt->watch}, {"RECONCILED_KEY", doubt->key},
                           {"RECONCILED_UID", doubt->uid}, {"RECONCILED_CRASHES", crashes}),
                "%s of watch %s is doubtful: its watcher died or hung while %s (crash %s over it); %s, for "
                "%s or until `reconciledctl release %s %s`; all others are served",
                doubt->key, doubt->watch,
                doubt->unread ? "it read the object" : "a jq program of the watch ran on it", crashes,
                doubt->unread ? "it is left out"
                              : "the programs are not run on it (it counts as selected, and its essence "
                                "triggers runs)",
                duration_format(duration_usec, duration, sizeof(duration)), doubt->watch, doubt->key);
}

void doubt_blame(struct supervisor *supervisor, const struct watch *watch, const struct slot_view *view,
                 const char *cause)
{
        int64_t before = ledger_doubt_crashes(supervisor->ledger, watch->config->name, view->key, view->uid);
        uint64_t crashes = before > 0 ? (uint64_t)before + 1 : 1, now = ledger_now(supervisor),
                 duration = doubt_duration(watch->config, crashes);
        struct ledger_doubt doubt = {
                .watch = watch->config->name,
                .key = view->key,
                .uid = view->uid,
                .unread = view->stage != SLOT_PROGRAM,
                .crashes = crashes,
                .crashed_realtime = now,
                .until_realtime = now + duration,
                .error = cause,
        };
        int r = ledger_doubt_put(supervisor->ledger, &doubt);

        if (r >= 0)
                r = ledger_commit(supervisor->ledger);
        if (r < 0)
                log_error("%s could not be blamed in the ledger: %s", view->key, strerror(-r));
        else
                tell(&doubt, duration);
}

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

static int visit(const struct watch *watch, ledger_visit_doubt_t take, void *userdata)
{
        return ledger_visit_doubts(watch->child->supervisor->ledger, watch->config->name,
                                   ledger_now(watch->child->supervisor), DOUBTS_MAX, take, userdata);
}

int doubt_feed(struct watch *watch)
{
        _cleanup_(list_free_pointer) struct list *list = calloc(1, sizeof(*list));
        struct message_doubtful message = {.watch = watch->config->name};
        int r = -ENOMEM;

        if (list) {
                list->supervisor = watch->child->supervisor;
                r = visit(watch, collect, list);
        }
        if (r < 0)
                return r;
        watch->doubt_count = list->count;
        message.doubt = list->doubt;
        message.doubt_count = list->count;
        return channel_send(watch->child->channel, MESSAGE_DOUBTFUL, &message);
}

struct question {
        const char *key, *uid;
        bool found;
};

static int match(const struct ledger_doubt *doubt, void *userdata)
{
        struct question *question = userdata;

        question->found = question->found ||
                          (strcmp(doubt->key, question->key) == 0 && strcmp(doubt->uid, question->uid) == 0);
        return 0;
}

bool doubt_is(const struct watch *watch, const char *key, const char *uid)
{
        struct question question = {key, uid, false};

        if (watch->doubt_count == 0)
                return false;
        return visit(watch, match, &question) >= 0 && question.found;
}

int doubt_release(struct watch *watch, const char *key)
{
        struct ledger *ledger = watch->child->supervisor->ledger;
        int removed = ledger_doubt_remove(ledger, watch->config->name, key),
            r = removed < 0 ? removed : ledger_commit(ledger);

        if (r < 0 || removed == 0)
                return r < 0 ? r : -ENOENT;
        log_write(LOG_NOTICE, MESSAGE_ID_RELEASED,
                  LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key}),
                  "%s of watch %s was released by hand: it is read like any other when it comes next", key,
                  watch->config->name);
        return watch->child->state == CHILD_RUNNING ? doubt_feed(watch) : 0;
}
