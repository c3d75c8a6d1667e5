/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of owned objects: the one that runs is the owner. */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "supervisor/supervisor.h"

/* In a backoff the owner will see it with its next attempt: what an attempt does to its own children must
 * not be a reason for another one. */
static bool child_matters(const struct ledger_row *row)
{
        return row->attempts == 0 && !row->permanent && !row->deleting && !row->unselected;
}

#define CHILD_PAUSE_USEC USEC_PER_SEC

/* Changes of children come in crowds (a Deployment's status), and two owners of one child would change it in
 * turns for ever: not more than one run a second. */
static uint64_t child_delay(const struct ledger_row *row)
{
        uint64_t now = clock_realtime_usec(), due = row->handled_realtime + CHILD_PAUSE_USEC;

        return now < row->handled_realtime || now >= due ? 0 : due - now;
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
        *ret_key = slash + 1; /* an owner that belongs to no namespace */
        return ledger_get(ledger, parent->config->name, slash + 1, change->uid, ret);
}

int dispatch_owned(struct watch *watch, const struct record_change *change)
{
        struct supervisor *supervisor = watch->child->supervisor;
        struct watch *parent = watch_find(supervisor, watch->config->owner);
        struct ledger_row row = {0};
        const char *key;
        int r = parent ? find_owner(parent, change, &key, &row) : -EPROTO;

        /* One that was never handed out runs anyway. */
        if (r == -ENOENT)
                return 0;
        if (r < 0 && r != -EPROTO) {
                ledger_failed(supervisor, r);
                return 0;
        }
        if (r >= 0 && child_matters(&row)) {
                struct record_change owner = {.key = key, .uid = change->uid, .resource_version = ""};

                r = dispatch_push(parent, &owner, CHANGE_UPDATED, &row, "child changed", child_delay(&row));
        }
        ledger_row_done(&row);
        return r;
}
