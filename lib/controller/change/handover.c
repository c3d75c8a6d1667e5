/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object has left a watch, and another watch of its kind has it from now on. What that one knows of an
 * earlier time (it had the object before) says nothing of what the first one's handler has done since: it
 * runs again. With the list of children, or with a finalizer that it was given, it takes over what is owed:
 * should the object be deleted before its first run there, or leave that watch too, that watch must be told,
 * so that the children are deleted and the finalizer is taken off. The row in the ledger is what has it told.
 *
 * The other watch may hear that the object has left it before we hear that it was handed over, because they
 * tell us by channels of their own: handover_is_under_way().
 *
 * The row of the watch that was left goes in the same commit. If we die before that, that watch is told
 * again, and comes here again.
 */
#include "controller/change/handover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/watch.h"
#include "controller/change/push.h"
#include "controller/run/assign.h"
#include "queue/look.h"

/* Twice the same kind does no harm. */
static int join_kinds(struct ledger_row *row, const char *kinds)
{
        char *joined;

        if (!kinds[0] || strstr(row->kinds, kinds))
                return 0;
        if (asprintf(&joined, "%s%s%s", row->kinds, row->kinds[0] ? "," : "", kinds) < 0)
                return -ENOMEM;
        free(row->kinds);
        row->kinds = joined;
        return 0;
}

/* Whether the other one has run since this one had the object. A run that was tried twice, or was under way
 * when we died, may have given the list away before. */
static bool is_of_before(const struct ledger_row *theirs, const struct ledger_row *left)
{
        return left->handled_realtime == 0 || theirs->handled_realtime <= left->handled_realtime ||
               left->attempts > 0 || ledger_row_is_suspect(left);
}

static int make_due(struct watch *watch, struct ledger_row *row)
{
        const struct record_change change = {.key = row->key, .uid = row->uid, .resource_version = ""};
        struct controller *controller = watch->controller;
        int r;

        ledger_row_unknown(row);
        r = ledger_put(controller->ledger, watch->config->name, row);
        if (r < 0 || controller->uninstall.active || row->attempts > 0)
                return r; /* a failure runs when its backoff is over */
        return change_push(watch, &change, CHANGE_UPDATED, row, RUN_TAKEN_OVER, 0);
}

/* The object has left this watch as well. Its watcher announced that when there was no row, or has never
 * seen the object. Work in the queue says that the object has come back since. */
static int make_leave(struct watch *watch, struct ledger_row *row)
{
        const struct record_change change = {.key = row->key, .uid = row->uid, .resource_version = ""};
        struct controller *controller = watch->controller;
        int r;

        if (queue_has(controller->queue, watch_number(watch), row->key, row->uid, CHANGE_UPDATED))
                return 0;
        row->unselected = true;
        r = ledger_put(controller->ledger, watch->config->name, row);
        if (r < 0 || controller->uninstall.active)
                return r;
        return change_push(watch, &change, CHANGE_UNSELECTED, row, RUN_UNSELECTED, 0);
}

static const struct record_holder *holder_of(const struct watch *watch, const struct message_done *done)
{
        for (size_t i = 0; done && i < done->holder_count; i++)
                if (strcmp(done->holder[i].watch, watch->config->name) == 0)
                        return &done->holder[i];
        return NULL;
}

/* A new row is not made due: the watch announces the object by itself. */
static int tell_one(struct watch *watch, const struct ledger_row *left, const struct message_done *done)
{
        struct controller *controller = watch->controller;
        const struct record_holder *holder = holder_of(watch, done);
        bool is_heir = done && strcmp(watch->config->name, done->heir) == 0, is_new = false;
        struct ledger_row row = {0};
        int r = 0;

        if (is_heir || holder) {
                r = ledger_owe(controller->ledger, watch->config->name, left->key, left->uid);
                is_new = r > 0;
        }
        if (r >= 0)
                r = ledger_get(controller->ledger, watch->config->name, left->key, left->uid, &row);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (is_heir)
                r = join_kinds(&row, left->kinds);
        if (r >= 0 && is_new && holder && holder->left)
                r = make_leave(watch, &row);
        else if (r >= 0 && is_new)
                r = ledger_put(controller->ledger, watch->config->name, &row);
        else if (r >= 0 && !row.deleting && !row.unselected && (is_heir || is_of_before(&row, left)))
                r = make_due(watch, &row);
        ledger_row_done(&row);
        return r;
}

static bool is_twin(const struct watch *other, const struct watch *watch)
{
        return other != watch && !other->leaving && !other->config->owner && !watch->config->owner &&
               config_is_of_kind(other->config, watch->config);
}

int handover_tell(struct watch *watch, const struct ledger_row *row, const struct message_done *done)
{
        FOREACH_WATCH(other, watch->controller) {
                int r = is_twin(other, watch) ? tell_one(other, row, done) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

bool handover_is_under_way(const struct watch *watch, const char *key, const char *uid)
{
        FOREACH_WATCH(other, watch->controller)
                if (is_twin(other, watch) && assign_tells_unselected(other, key, uid))
                        return true;
        return false;
}
