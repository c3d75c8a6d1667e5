/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of related objects: every object in their namespace may depend on them. There may be many of both, so
 * no dependent is looked up when a change comes. A parent has one cursor for each namespace in which something
 * has changed: it goes once around the parent's rows there, a page a turn, and each further change makes it
 * go once around from where it is. So everybody is asked after the last change, and no change costs more
 * than that.
 *
 * The queue gets no more of them than it can take beside what is new: those that are after the cursor are
 * where they cost nothing, in the ledger. Namespaces take turns; where the queue is full, the turn goes to one
 * that has nothing in it, so that a crowd of one tenant holds up nobody else's. A cursor for all namespaces
 * makes one for each of them, for the same reason. No cursor outlives us: at the next start, when all of it is in
 * sync, everybody is asked once (related_recheck).
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/change/owned.h"
#include "controller/change/related-changes.h"
#include "controller/effects.h"
#include "queue/look.h"

#define QUEUED_MAX    (CREDIT_LIMIT / 2)
#define LOOKED_MAX    16                    /* cursors, in search of one whose turn it may be */
#define PATIENCE_USEC (100 * USEC_PER_MSEC) /* of a page, while the loop has no idle turn */

struct related_cursor {
        char *namespace;             /* with the slash; "" = all */
        char *key, *uid;             /* the row after which it goes on */
        char *until_key, *until_uid; /* the last row, once it has begun again at the beginning */
        bool has_wrapped, at_end, over;
        struct watch *parent;
};

static void cursor_free(struct related_cursor *cursor)
{
        if (!cursor)
                return;
        free(cursor->namespace);
        free(cursor->key);
        free(cursor->uid);
        free(cursor->until_key);
        free(cursor->until_uid);
        free(cursor);
}
DEFINE_CLEANUP(struct related_cursor *, cursor_free);

static struct related_cursor *cursor_new(struct watch *parent, const char *namespace)
{
        struct related_cursor *cursor = calloc(1, sizeof(*cursor));

        if (!cursor)
                return NULL;
        *cursor = (struct related_cursor){
                .namespace = strdup(namespace),
                .key = strdup(namespace),
                .uid = strdup(""),
                .until_key = strdup(namespace),
                .until_uid = strdup(""),
                .parent = parent,
        };
        if (!cursor->namespace || !cursor->key || !cursor->uid || !cursor->until_key || !cursor->until_uid) {
                cursor_free(cursor);
                return NULL;
        }
        return cursor;
}

static int compare_identities(const char *key, const char *uid, const char *other_key, const char *other_uid)
{
        int order = strcmp(key, other_key);

        return order != 0 ? order : strcmp(uid, other_uid);
}

/* ---- those of a parent, in the order of their namespaces */

/* The index of the cursor, or the index at which it would be inserted. */
static size_t cursor_place(const struct watch *parent, const char *namespace)
{
        size_t low = 0, high = parent->related_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(parent->related[middle]->namespace, namespace) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int insert(struct watch *parent, size_t place, struct related_cursor *cursor)
{
        struct related_cursor **grown;

        if (parent->related_count == parent->related_room) {
                size_t room = parent->related_room ? parent->related_room * 2 : 8;

                grown = reallocarray(parent->related, room, sizeof(struct related_cursor *));
                if (!grown)
                        return -ENOMEM;
                parent->related = grown;
                parent->related_room = room;
        }
        memmove(&parent->related[place + 1], &parent->related[place],
                (parent->related_count - place) * sizeof(struct related_cursor *));
        parent->related[place] = cursor;
        parent->related_count++;
        return 0;
}

static void drop_cursor(struct watch *parent, size_t place)
{
        cursor_free(parent->related[place]);
        parent->related_count--;
        memmove(&parent->related[place], &parent->related[place + 1],
                (parent->related_count - place) * sizeof(struct related_cursor *));
}

void related_forget(struct watch *watch)
{
        while (watch->related_count > 0)
                drop_cursor(watch, watch->related_count - 1);
        free(watch->related);
        watch->related = NULL;
        watch->related_room = 0;
}

/* Has everybody asked once around, from where the cursor is. */
static int ask_all(struct watch *parent, const char *namespace)
{
        size_t place = cursor_place(parent, namespace);
        struct related_cursor *cursor = place < parent->related_count ? parent->related[place] : NULL;
        int r;

        if (!cursor || strcmp(cursor->namespace, namespace) != 0) {
                cursor = cursor_new(parent, namespace);
                r = cursor ? insert(parent, place, cursor) : -ENOMEM;
                if (r < 0)
                        cursor_free(cursor);
                else if (parent->related_count == 1)
                        parent->related_usec = parent->controller->now.monotonic;
                return r;
        }
        cursor->has_wrapped = false;
        r = text_replace(&cursor->until_key, cursor->key);
        return r < 0 ? r : text_replace(&cursor->until_uid, cursor->uid);
}

int related_changed(struct watch *watch, const struct record_change *change)
{
        struct watch *parent = watch_find(watch->controller, watch->config->owner);
        const char *slash = strchr(change->key, '/');
        _cleanup_free_ char *namespace = NULL;
        int r;

        if (!parent)
                return -EPROTO;
        if (parent->config->own) /* it runs when it is due */
                return 0;
        namespace = strndup(change->key,
                            slash && !parent->is_of_cluster ? (size_t)(slash + 1 - change->key) : 0);
        r = namespace ? ask_all(parent, namespace) : -ENOMEM;
        controller_settle_soon(parent->controller);
        return r;
}

/* ---- a page */

static bool parent_is_full(const struct watch *parent)
{
        return queue_count(parent->controller->queue, watch_number(parent)).queued >= QUEUED_MAX;
}

static bool has_none_queued(const struct related_cursor *cursor)
{
        size_t length = strlen(cursor->namespace);

        return !queue_has_namespace(cursor->parent->controller->queue, watch_number(cursor->parent),
                                    cursor->namespace, length > 0 ? length - 1 : 0);
}

/* Gives the turn to the next cursor that may have it. Of more than a few that may not, the next ones are
 * looked at when we are asked again. */
static bool parent_has_room(struct watch *parent)
{
        if (!parent_is_full(parent))
                return true;
        for (size_t i = 0; i < LOOKED_MAX && i < parent->related_count; i++) {
                if (has_none_queued(parent->related[parent->related_turn % parent->related_count]))
                        return true;
                parent->related_turn++;
        }
        return false;
}

/* Gives this key's namespace a cursor of its own, and moves this one past all keys of that namespace. */
static int ask_namespace(struct related_cursor *cursor, const char *key, const char *slash)
{
        _cleanup_free_ char *namespace = strndup(key, (size_t)(slash + 1 - key));
        int r = namespace ? ask_all(cursor->parent, namespace) : -ENOMEM;

        if (r < 0)
                return r;
        namespace[slash - key] = '/' + 1;
        r = text_replace(&cursor->key, namespace);
        return r < 0 ? r : text_replace(&cursor->uid, "");
}

static int take_related_row(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        struct related_cursor *cursor = userdata;
        size_t prefix = strlen(cursor->namespace);
        const char *slash = prefix == 0 ? strchr(row->key, '/') : NULL;

        if (cursor->over || cursor->at_end)
                return 0;
        if (strncmp(row->key, cursor->namespace, prefix) != 0) {
                cursor->at_end = true;
                return 0;
        }
        if (cursor->has_wrapped &&
            compare_identities(row->key, row->uid, cursor->until_key, cursor->until_uid) > 0) {
                cursor->over = true;
                return 0;
        }
        cursor->parent->is_of_cluster = prefix == 0 && !slash;
        if (slash)
                return ask_namespace(cursor, row->key, slash);
        if (text_replace(&cursor->key, row->key) < 0 || text_replace(&cursor->uid, row->uid) < 0)
                return -ENOMEM;
        return owned_related_changed(cursor->parent, row);
}

/* The end of its rows was reached: it goes on at their beginning, up to where it was at the last change.
 */
static int wrap(struct related_cursor *cursor)
{
        int r;

        cursor->at_end = false;
        cursor->over = cursor->has_wrapped ||
                       compare_identities(cursor->until_key, cursor->until_uid, cursor->namespace, "") == 0;
        if (cursor->over)
                return 0;
        cursor->has_wrapped = true;
        r = text_replace(&cursor->key, cursor->namespace);
        return r < 0 ? r : text_replace(&cursor->uid, "");
}

static int note_first(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        *(bool *)userdata = !strchr(row->key, '/');
        return 0;
}

/* 1 if the parents are cluster-scoped: then one cursor is for all of them. */
static int see_scope(struct watch *parent, const struct related_cursor *cursor)
{
        int r;

        if (!cursor->namespace[0] ||
            compare_identities(cursor->key, cursor->uid, cursor->namespace, "") != 0)
                return 0;
        r = ledger_visit(parent->controller->ledger, parent->config->name, "", "", 1, note_first,
                         &parent->is_of_cluster);
        return r < 0 ? r : parent->is_of_cluster;
}

/* One row if the queue is full, or if the cursor is for all namespaces: that one leaves each namespace after
 * its first row. */
static size_t related_page_size(const struct watch *parent, const struct related_cursor *cursor)
{
        if (parent_is_full(parent) || (!cursor->namespace[0] && !parent->is_of_cluster))
                return 1;
        return PAGE_RELATED;
}

static int related_advance(struct watch *parent, struct related_cursor *cursor)
{
        _cleanup_free_ char *key = NULL, *uid = NULL;
        size_t page = related_page_size(parent, cursor);
        int r = see_scope(parent, cursor);

        if (r > 0) {
                cursor->over = true;
                return 1;
        }
        key = strdup(cursor->key);
        uid = strdup(cursor->uid);
        if (r >= 0)
                r = key && uid ? ledger_visit(parent->controller->ledger, parent->config->name, key, uid,
                                              page, take_related_row, cursor)
                               : -ENOMEM;
        if (r >= 0 && !cursor->over && (cursor->at_end || (size_t)r < page))
                r = wrap(cursor);
        return r < 0 ? r : 0;
}

/* Cursors of several namespaces take turns. */
static int take_related_page(struct watch *parent)
{
        size_t place = parent->related_turn++ % parent->related_count;
        struct related_cursor *cursor = parent->related[place];
        int r = related_advance(parent, cursor);

        if (r >= 0 && cursor->over)
                drop_cursor(parent, place);
        return r > 0 ? ask_all(parent, "") : r;
}

/* The one that has waited for the longest. */
static struct watch *next_parent(struct controller *controller)
{
        struct watch *found = NULL;

        FOREACH_WATCH(watch, controller)
                if (watch->related_count > 0 && parent_has_room(watch) &&
                    (!found || watch->related_usec < found->related_usec))
                        found = watch;
        return found;
}

static struct watch *next_parent_now(struct controller *controller)
{
        return controller->is_ending || controller->uninstall.active ? NULL : next_parent(controller);
}

void related_take(struct controller *controller)
{
        struct watch *parent = next_parent_now(controller);
        int r;

        if (!parent)
                return;
        r = ledger_try_hold(controller->ledger);
        if (r == -EBUSY) { /* its log is being synced */
                controller_settle_later(controller);
                return;
        }
        while (r >= 0 && parent && controller_has_time(controller)) {
                parent->related_usec = controller->now.monotonic;
                r = take_related_page(parent);
                parent = next_parent(controller);
        }
        /* Also after a turn that had no time for a page: nobody else would ask for the next one. */
        controller_settle_soon(controller);
        if (r == -ENOMEM)
                controller_fatal(controller, EXIT_CODE_SOFTWARE, NULL,
                                 "no memory for the objects that depend on related objects");
        else if (r < 0)
                ledger_failed(controller, r);
}

bool related_is_pending(struct controller *controller)
{
        return next_parent_now(controller) != NULL;
}

void related_hurry(struct controller *controller)
{
        const struct watch *parent = next_parent_now(controller);

        if (parent && controller->now.monotonic - parent->related_usec > PATIENCE_USEC)
                related_take(controller);
}

/* ---- at the start */

static bool is_related_to(const struct watch *watch, const struct watch *parent)
{
        return watch->config->is_related && strcmp(watch->config->owner, parent->config->name) == 0;
}

/* A change that was waiting for its turn when we ended is not recorded, as that would take a row for each
 * parent. So all parents run once when everything is in sync again; usually the worker sees that nothing has
 * changed since the last success, and runs no handler. */
int related_recheck(struct watch *watch)
{
        struct controller *controller = watch->controller;
        const char *owner = watch->config->is_related ? watch->config->owner : watch->config->name;
        struct watch *parent = watch_find(controller, owner);
        bool any = false;

        if (!parent || !parent->synced || parent->config->own ||
            (watch->config->owner && !watch->config->is_related))
                return 0;
        FOREACH_WATCH(related, controller) {
                if (!is_related_to(related, parent))
                        continue;
                if (!related->synced && related->health != WATCH_ABSENT)
                        return 0;
                any = true;
        }
        return any ? ask_all(parent, "") : 0;
}
