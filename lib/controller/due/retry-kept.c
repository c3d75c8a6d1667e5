/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record is a row of the scopes, under a name that no watch has: the stamp, and "SCOPE DUE", with the key
 * and the uid of the last row that was visited in lines of their own; "" when the walk is over. A walk begins
 * in the transaction that writes the stamp, and each page of it is in one with its place. So whatever ends
 * us, the next life begins the walk or goes on after its last page: each row is visited once.
 */
#include "controller/due/retry-kept.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "controller/effects.h"
#include "ipc/message-id.h"

void retry_walk_done(struct retry_walk *walk)
{
        free(walk->key);
        free(walk->uid);
        *walk = (struct retry_walk){0};
}

struct kept {
        uint64_t stamp; /* 0 if there is no record */
        struct retry_walk walk;
};

static void kept_done(struct kept *kept)
{
        retry_walk_done(&kept->walk);
}

static int walk_row_name(const char *watch, char **ret)
{
        *ret = format_string("%s/handler", watch); /* no watch has a slash in its name */
        return *ret ? 0 : -ENOMEM;
}

static int parse_walk(char *text, struct retry_walk *ret)
{
        const char *first = strsep(&text, "\n"), *key = strsep(&text, "\n"), *uid = text;
        unsigned scope;

        if (!key || !uid || sscanf(first, "%u %" SCNu64, &scope, &ret->due) != 2 ||
            (scope != RETRY_GIVEN_UP && scope != RETRY_ALL))
                return 0;
        ret->scope = (enum retry_scope)scope;
        return text_replace(&ret->key, key) < 0 || text_replace(&ret->uid, uid) < 0 ? -ENOMEM : 0;
}

static int read_kept_walk(const struct controller *controller, const char *watch, struct kept *ret)
{
        _cleanup_free_ char *name = NULL, *stamp = NULL, *walk = NULL;
        int r = walk_row_name(watch, &name);

        *ret = (struct kept){0};
        if (r >= 0)
                r = ledger_scope_get(controller->ledger, name, &stamp, &walk);
        if (r < 0)
                return r;
        ret->stamp = strtoull(stamp, NULL, 16);
        return parse_walk(walk, &ret->walk);
}

static int write_walk_record(const struct controller *controller, const char *watch, uint64_t stamp,
                             const struct retry_walk *walk)
{
        _cleanup_free_ char *name = NULL;
        _cleanup_text_ struct text place = TEXT_EMPTY;
        char text[17];
        int r = walk_row_name(watch, &name);

        assert(stamp != 0);
        assert(walk->scope == RETRY_NOTHING || walk->scope == RETRY_GIVEN_UP || walk->scope == RETRY_ALL);
        snprintf(text, sizeof(text), "%016" PRIx64, stamp);
        if (walk->scope != RETRY_NOTHING)
                text_printf(&place, "%u %" PRIu64 "\n%s\n%s", (unsigned)walk->scope, walk->due,
                            walk->key ? walk->key : "", walk->uid ? walk->uid : "");
        if (r < 0 || place.failed)
                return -ENOMEM;
        return ledger_scope_set(controller->ledger, name, text, place.data ? place.data : "");
}

/* Begins at the first row. A walk over all rows stays one. */
static void walk_from_start(struct retry_walk *walk, enum retry_scope scope)
{
        if (walk->scope > scope)
                scope = walk->scope;
        retry_walk_done(walk);
        walk->scope = scope;
}

/* Counts are those of the last commit: good enough for people, not for leaving the walk out. */
static void tell_begun(struct controller *controller, const char *watch, const char *why)
{
        struct ledger_failing failing = {0};

        if (ledger_count_failing(controller->ledger, watch, &failing) < 0 || failing.permanent == 0)
                return;
        controller_log(controller, LOG_NOTICE, MESSAGE_ID_TRIED_AGAIN,
                       LOG_FIELDS({"RECONCILED_WATCH", watch}),
                       "%" PRIu64 " %s of watch %s %s one more attempt, at most %u a second, since %s",
                       failing.permanent, counted(failing.permanent, "object", "objects"), watch,
                       counted(failing.permanent, "that was given up gets", "that were given up get"),
                       RETRY_PACE, why);
}

int retry_kept_reload(struct controller *controller, const char *name, uint64_t stamp)
{
        struct kept kept;
        int r = read_kept_walk(controller, name, &kept);

        if (r >= 0) {
                walk_from_start(&kept.walk, RETRY_GIVEN_UP);
                r = write_walk_record(controller, name, stamp, &kept.walk);
        }
        if (r >= 0)
                tell_begun(controller, name, "the operator was reloaded");
        kept_done(&kept);
        return r;
}

int retry_kept_load(struct watch *watch, uint64_t stamp)
{
        struct kept kept;
        int r = read_kept_walk(watch->controller, watch->config->name, &kept);

        if (r < 0) {
                kept_done(&kept);
                return r;
        }
        retry_walk_done(&watch->kept_walk);
        watch->kept_walk = kept.walk;
        watch->handler_stamp = stamp;
        controller_settle_soon(watch->controller);
        if (kept.stamp == stamp)
                return 0;
        if (kept.stamp != 0) {
                walk_from_start(&watch->kept_walk, RETRY_GIVEN_UP);
                tell_begun(watch->controller, watch->config->name,
                           "its handler has changed (or what it may write)");
        }
        return retry_kept_note(watch);
}

int retry_kept_all(struct watch *watch)
{
        walk_from_start(&watch->kept_walk, RETRY_ALL);
        return retry_kept_note(watch);
}

int retry_kept_note(const struct watch *watch)
{
        return write_walk_record(watch->controller, watch->config->name, watch->handler_stamp,
                                 &watch->kept_walk);
}
