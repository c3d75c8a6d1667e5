/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of owned and related objects: those that run are their owners, and who may depend on them. */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "supervisor/supervisor.h"

/* In a backoff the owner will see it with its next attempt: what an attempt does to its own children must
 * not be a reason for another one. While one is under way nobody knows how it will end: if it fails, the
 * queue forgets what came meanwhile. */
static bool child_matters(const struct watch *parent, const struct ledger_row *row)
{
        bool fails = row->attempts > 0 || row->permanent;

        return !row->deleting && !row->unselected &&
               (!fails || dispatch_is_under_way(parent, row->key, row->uid));
}

#define CHILD_PAUSE_USEC USEC_PER_SEC

const char child_reason[] = "child changed";

/* Changes of children come in crowds (a Deployment's status, what a run has just applied), and two owners of
 * one child would change it in turns for ever: not more than one run a second, and not at once after a run
 * that is still under way. */
static uint64_t child_delay(const struct watch *parent, const char *key, const struct ledger_row *row)
{
        uint64_t now = ledger_now(parent->child->supervisor), due = row->handled_realtime + CHILD_PAUSE_USEC;

        if (dispatch_is_under_way(parent, key, row->uid))
                return CHILD_PAUSE_USEC;
        return now < row->handled_realtime || now >= due ? 0 : due - now;
}

/* Nobody announces it again: that it is due must outlive us. */
static int keep_due(const struct supervisor *supervisor, struct ledger_row *row, uint64_t delay_usec)
{
        uint64_t due = ledger_now(supervisor) + delay_usec;

        /* What settles is due already, and goes on as that. */
        if (row->settling[0] || (row->next_realtime > 0 && row->next_realtime <= due))
                return 0;
        row->next_realtime = due;
        return text_replace(&row->next_reason, child_reason);
}

int owned_keep_due(const struct watch *watch, struct ledger_row *row)
{
        const struct supervisor *supervisor = watch->child->supervisor;

        /* For those of related objects everybody is asked at the next start. */
        if (queue_nudge(supervisor->queue, watch_number(watch), row->key, row->uid) != child_reason)
                return 0;
        return keep_due(supervisor, row, CHILD_PAUSE_USEC);
}

static int run_owner(struct watch *parent, const char *key, struct ledger_row *row)
{
        struct record_change owner = {.key = key, .uid = row->uid, .resource_version = ""};
        uint64_t delay = child_delay(parent, key, row);
        int r = keep_due(parent->child->supervisor, row, delay);

        if (r < 0)
                return r;
        r = ledger_put(parent->child->supervisor->ledger, parent->config->name, row);
        if (r < 0) {
                ledger_failed(parent->child->supervisor, r);
                return 0;
        }
        return dispatch_push(parent, &owner, CHANGE_UPDATED, row, child_reason, delay);
}

static int find_owner(struct watch *parent, const struct record_change *change, const char **ret_key,
                      struct ledger_row *ret)
{
        struct ledger *ledger = parent->child->supervisor->ledger;
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

/* ---- related objects: everybody in their namespace may depend on them */

#define PAGE 500

struct crowd {
        struct watch *parent;
        const char *namespace; /* with the slash; "" = all */
        char *key, *uid;       /* the last one */
        bool over;
};

static bool is_in(const char *namespace, const char *key)
{
        return strncmp(key, namespace, strlen(namespace)) == 0;
}

static int take_one(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        struct crowd *crowd = userdata;
        struct record_change change = {
                .key = row->key, .uid = row->uid, .resource_version = "", .first = true};

        if (!is_in(crowd->namespace, row->key)) {
                crowd->over = true;
                return 0;
        }
        if (text_replace(&crowd->key, row->key) < 0 || text_replace(&crowd->uid, row->uid) < 0)
                return -ENOMEM;
        if (!child_matters(crowd->parent, row))
                return 0;
        return dispatch_push(crowd->parent, &change, CHANGE_UPDATED, row, "related changed",
                             child_delay(crowd->parent, row->key, row));
}

static int note_first(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        *(bool *)userdata = strchr(row->key, '/') != NULL;
        return 0;
}

static int take_crowd(struct ledger *ledger, struct crowd *crowd)
{
        const char *name = crowd->parent->config->name;
        int r = 1;

        while (r > 0 && !crowd->over) {
                _cleanup_free_ char *key = strdup(crowd->key), *uid = strdup(crowd->uid);

                r = key && uid ? ledger_visit(ledger, name, key, uid, PAGE, take_one, crowd) : -ENOMEM;
        }
        return r;
}

static int take_related(struct watch *parent, const struct record_change *change)
{
        struct supervisor *supervisor = parent->child->supervisor;
        const char *slash = strchr(change->key, '/');
        _cleanup_free_ char *namespace = NULL;
        struct crowd crowd = {.parent = parent};
        bool namespaced = false;
        int r = ledger_visit(supervisor->ledger, parent->config->name, "", "", 1, note_first, &namespaced);

        namespace = strndup(change->key, slash && namespaced ? (size_t)(slash + 1 - change->key) : 0);
        crowd.namespace = namespace;
        crowd.key = strdup(namespace ? namespace : "");
        crowd.uid = strdup("");
        if (r >= 0)
                r = namespace && crowd.key && crowd.uid ? take_crowd(supervisor->ledger, &crowd) : -ENOMEM;
        free(crowd.key);
        free(crowd.uid);
        if (r < 0 && r != -ENOMEM)
                ledger_failed(supervisor, r);
        return r == -ENOMEM ? r : 0;
}

static bool is_related_to(const struct watch *watch, const struct watch *parent)
{
        return watch->config->is_related && strcmp(watch->config->owner, parent->config->name) == 0;
}

/* ---- none of them runs before all of it is known */

const char *owned_awaited(const struct watch *parent)
{
        const struct supervisor *supervisor = parent->child->supervisor;
        const struct config *config = supervisor->config;

        for (size_t i = 0; i < config->watch_count; i++) {
                const struct config_watch *other = &config->watch[i];
                const struct watch *watch;

                if (!other->owner || strcmp(other->owner, parent->config->name) != 0)
                        continue;
                watch = watch_find(supervisor, other->name);
                if (!watch || (!watch->synced && watch->health != WATCH_ABSENT))
                        return other->name;
        }
        return NULL;
}

void owned_known(struct watch *watch)
{
        struct watch *parent =
                watch->config->owner ? watch_find(watch->child->supervisor, watch->config->owner) : NULL;

        if (parent)
                pause_apply(parent);
}

/* A change that was waiting for its turn when we ended is on no record, as that would be a row for each of
 * the crowd. So everybody is asked once when all of it is in sync again; the worker sees that nothing has
 * changed since the last success, and mostly runs no handler. */
int related_recheck(struct watch *watch)
{
        struct supervisor *supervisor = watch->child->supervisor;
        const char *owner = watch->config->is_related ? watch->config->owner : watch->config->name;
        struct watch *parent = watch_find(supervisor, owner);
        bool any = false;

        if (!parent || !parent->synced || (watch->config->owner && !watch->config->is_related))
                return 0;
        FOREACH_WATCH(related, supervisor) {
                if (!is_related_to(related, parent))
                        continue;
                if (!related->synced && related->health != WATCH_ABSENT)
                        return 0;
                any = true;
        }
        return any ? take_related(parent, &(struct record_change){.key = ""}) : 0;
}

int dispatch_owned(struct watch *watch, const struct record_change *change)
{
        struct supervisor *supervisor = watch->child->supervisor;
        struct watch *parent = watch_find(supervisor, watch->config->owner);
        struct ledger_row row = {0};
        const char *key;
        int r;

        if (parent && watch->config->is_related)
                return take_related(parent, change);
        r = parent ? find_owner(parent, change, &key, &row) : -EPROTO;

        /* One that was never handed out runs anyway. */
        if (r == -ENOENT)
                return 0;
        if (r < 0 && r != -EPROTO) {
                ledger_failed(supervisor, r);
                return 0;
        }
        if (r >= 0 && child_matters(parent, &row))
                r = run_owner(parent, key, &row);
        ledger_row_done(&row);
        return r;
}
