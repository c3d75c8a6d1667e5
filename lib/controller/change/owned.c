/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of owned objects: those that run are their owners. Of related ones: see related-changes.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "controller/change/owned.h"
#include "controller/due/assigned.h"
#include "controller/due/push.h"
#include "controller/effects.h"
#include "ipc/run-reason.h"
#include "object/child-kinds.h"
#include "queue/look.h"

/* In a backoff the owner will see it with its next attempt: what an attempt does to its own children must
 * not be a reason for another one. While an attempt is in flight, its end is unknown: if it fails, the queue
 * forgets what came in the meantime. */
static bool child_matters(const struct watch *parent, const struct ledger_row *row)
{
        bool fails = row->attempts > 0 || row->permanent;

        return !row->deleting && !row->unselected &&
               (!fails || assign_is_under_way(parent, row->key, row->uid));
}

#define CHILD_PAUSE_USEC USEC_PER_SEC

/* Changes of children come in crowds (a Deployment's status, what a run has just applied), and two owners of
 * one child would change it in turns forever: not more than one run a second, and not at once after a run
 * that is still in flight. */
static uint64_t child_delay(const struct watch *parent, const char *key, const struct ledger_row *row)
{
        uint64_t now = ledger_time(parent->controller), due = row->handled_realtime + CHILD_PAUSE_USEC;

        if (assign_is_under_way(parent, key, row->uid))
                return CHILD_PAUSE_USEC;
        return now < row->handled_realtime || now >= due ? 0 : due - now;
}

/* Nobody announces it again, so the ledger must know that it is due. */
static void keep_due(const struct controller *controller, struct ledger_row *row, uint64_t delay_usec)
{
        uint64_t due = ledger_time(controller) + delay_usec;

        /* What settles is due already, and goes on as that. */
        if (row->settling[0] || (row->next_realtime > 0 && row->next_realtime <= due))
                return;
        row->next_realtime = due;
        row->next_reason = RUN_CHILD_CHANGED;
}

void owned_keep_due(const struct watch *watch, struct ledger_row *row)
{
        const struct controller *controller = watch->controller;

        /* For those of related objects everybody is asked at the next start. */
        if (queue_nudge(controller->queue, watch_number(watch), row->key, row->uid) == RUN_CHILD_CHANGED)
                keep_due(controller, row, CHILD_PAUSE_USEC);
}

static int run_owner(struct watch *parent, const char *key, struct ledger_row *row)
{
        struct record_change owner = {.key = key, .uid = row->uid, .resource_version = ""};
        uint64_t delay = child_delay(parent, key, row);
        int r;

        keep_due(parent->controller, row, delay);
        r = ledger_put(parent->controller->ledger, parent->config->name, row);
        if (r < 0) {
                ledger_failed(parent->controller, r);
                return 0;
        }
        return change_push(parent, &owner, CHANGE_UPDATED, row, RUN_CHILD_CHANGED, delay);
}

/* Whether the run that ended last has made this change, or was shown its result by the server itself. */
static bool is_own_change(const struct watch *watch, const struct ledger_row *row, uint64_t version,
                          bool deleted)
{
        return child_kinds_have(row->kinds, watch->config->api_version, watch->config->kind, watch->epoch,
                                version, deleted);
}

/* Who made the change is known at the end of the run. If we do not live to see it, a run of the handler comes again. */
static bool keep_for_end(const struct watch *watch, struct assignment *given, uint64_t version, bool deleted)
{
        if (!given || run_is_without_handler(given->run.reason))
                return false;
        if (given->news_count == given->news_room) {
                size_t room = 2 * given->news_room + 8;
                struct child_news *grown = given->news_count < CHILD_NEWS_MAX
                                                   ? reallocarray(given->news, room, sizeof(*grown))
                                                   : NULL;

                if (!grown)
                        return false;
                given->news = grown;
                given->news_room = room;
        }
        given->news[given->news_count++] = (struct child_news){version, watch_number(watch), deleted};
        return true;
}

/* versions: of several children, "10.-15"; "": not known. */
static bool child_is_news(const struct watch *watch, const struct watch *parent, const char *key,
                          const struct ledger_row *row, const char *versions)
{
        struct assignment *given = assign_find(parent, key, row->uid);
        struct span left = {versions, strlen(versions)};
        uint64_t version;
        bool deleted, news = versions[0] == '\0';

        while (!news && child_kind_next_version(&left, &version, &deleted))
                news = !is_own_change(watch, row, version, deleted) &&
                       !keep_for_end(watch, given, version, deleted);
        return news;
}

static int find_owner_row(struct watch *parent, const struct record_change *change, const char **ret_key,
                          struct ledger_row *ret)
{
        struct ledger *ledger = parent->controller->ledger;
        const char *slash = strchr(change->key, '/');
        int r;

        *ret_key = change->key;
        r = ledger_get(ledger, parent->config->name, change->key, change->uid, ret);
        if (r != -ENOENT || !slash)
                return r;
        if (strchr(slash + 1, '/'))
                return -ENOENT; /* of an older store: no name has one, and it would lead to another namespace
                                 */
        *ret_key = slash + 1;   /* an owner that belongs to no namespace */
        return ledger_get(ledger, parent->config->name, slash + 1, change->uid, ret);
}

/* A change of a related object, for an object that may depend on it. */
int owned_related_changed(struct watch *parent, const struct ledger_row *row)
{
        struct record_change change = {
                .key = row->key, .uid = row->uid, .resource_version = "", .first = true};

        if (!child_matters(parent, row))
                return 0;
        return change_push(parent, &change, CHANGE_UPDATED, row, RUN_RELATED_CHANGED,
                           child_delay(parent, row->key, row));
}

int owned_changed(struct watch *watch, const struct record_change *change)
{
        struct controller *controller = watch->controller;
        struct watch *parent = watch_find(controller, watch->config->owner);
        struct ledger_row row = {0};
        const char *key;
        int r;

        r = parent ? find_owner_row(parent, change, &key, &row) : -EPROTO;

        /* An object that was never handed out runs anyway. */
        if (r == -ENOENT)
                return 0;
        if (r < 0 && r != -EPROTO) {
                ledger_failed(controller, r);
                return 0;
        }
        if (r >= 0 && child_matters(parent, &row) &&
            child_is_news(watch, parent, key, &row, change->resource_version))
                r = run_owner(parent, key, &row);
        ledger_row_done(&row);
        return r;
}

int owned_changed_meanwhile(struct controller *controller, struct assignment *given, const char *key,
                            const char *uid)
{
        int r = 0;

        for (size_t i = 0; i < given->news_count && r >= 0; i++) {
                const struct child_news *news = &given->news[i];
                char version[24];
                const struct record_change change = {.key = key, .uid = uid, .resource_version = version};

                snprintf(version, sizeof(version), "%s%" PRIu64, news->deleted ? "-" : "", news->version);
                r = owned_changed(&controller->watch[news->watch], &change);
        }
        free(given->news);
        given->news = NULL;
        given->news_count = given->news_room = 0;
        return r;
}
