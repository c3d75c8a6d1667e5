/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After the first sync of a watcher's life: the ledger's rows, page by page, so that it can say which of
 * them are gone. Pages leave only as fast as the watcher reads them, and everything else has its turn
 * between two of them. Rows that fell due while the watch was not configured (due.c) are due again now.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/change/owed.h"
#include "controller/due/due.h"
#include "controller/effects.h"
#include "object/identity.h"

struct page {
        struct watch *watch;
        struct record_owed owed[PAGE_OWED];
        size_t count; /* of `owed` */
        bool is_last;
        bool woken; /* rows of it are due */
};

/* A row with a reason had a time. The watcher announces the end of an object anyway. */
static bool fell_asleep(const struct ledger_row *row)
{
        return row->next_realtime == 0 && row->next_reason != RUN_REASON_NONE && !row->deleting &&
               !row->unselected;
}

static int wake_owed(struct page *page, const struct ledger_row *row)
{
        struct ledger_row due = *row;

        page->woken = true;
        due.next_realtime = ledger_time(page->watch->controller);
        return ledger_put(page->watch->controller->ledger, page->watch->config->name, &due);
}

/* An older release, or somebody with an editor, has put it there: no watcher can be asked about it. */
static int drop_owed(struct watch *watch, const struct ledger_row *row)
{
        controller_log(
                watch->controller, LOG_WARNING, NULL, LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                "the ledger has a row of watch %s that is of no object (%.60s, UID %.60s): it is dropped",
                watch->config->name, row->key, row->uid);
        return ledger_remove(watch->controller->ledger, watch->config->name, row->key, row->uid);
}

static int collect_owed(const char *watch _unused_, const struct ledger_row *row, void *userdata)
{
        struct page *page = userdata;
        struct record_owed *owed = &page->owed[page->count];

        if (!identity_fits(row->key, row->uid))
                return drop_owed(page->watch, row);
        owed->key = strdup(row->key);
        owed->uid = strdup(row->uid);
        page->count++;
        if (!owed->key || !owed->uid)
                return -ENOMEM;
        return fell_asleep(row) ? wake_owed(page, row) : 0;
}

static void page_free(struct page *page)
{
        for (size_t i = 0; i < page->count; i++) {
                free((void *)(uintptr_t)page->owed[i].key);
                free((void *)(uintptr_t)page->owed[i].uid);
        }
        free(page);
}
DEFINE_CLEANUP(struct page *, page_free);

static int owed_advance(struct watch *watch, const struct page *page)
{
        const struct record_owed *last;
        char *key, *uid;

        if (page->count == 0)
                return 0;
        last = &page->owed[page->count - 1];
        key = strdup(last->key);
        uid = strdup(last->uid);
        free(watch->owed_key);
        free(watch->owed_uid);
        watch->owed_key = key;
        watch->owed_uid = uid;
        return key && uid ? 0 : -ENOMEM;
}

static int fill_page(struct watch *watch, struct page *page)
{
        int r = 0;

        if (!watch->owes_nothing)
                r = ledger_visit(watch->controller->ledger, watch->config->name,
                                 watch->owed_key ? watch->owed_key : "",
                                 watch->owed_uid ? watch->owed_uid : "", PAGE_OWED, collect_owed, page);
        page->is_last = r < PAGE_OWED;
        return r;
}

static int send_page(struct watch *watch)
{
        _cleanup_(page_free_pointer) struct page *page = calloc(1, sizeof(*page));
        const struct controller *controller = watch->controller;
        struct message_owed message = {.watch = watch->config->name};
        int r = -ENOMEM;

        if (page) {
                page->watch = watch;
                r = fill_page(watch, page);
        }
        if (r < 0)
                return r;
        if (page->woken)
                due_arm(watch->controller);
        message.owed = page->owed;
        message.owed_count = page->count;
        message.last = page->is_last;
        r = owed_advance(watch, page);
        if (r >= 0)
                r = controller->effects->owed(controller->userdata, watch, &message);
        watch->owed_streaming = !message.last;
        return r;
}

static bool may_go_on(const struct watch *watch)
{
        return watch->owed_streaming && watch->is_up &&
               watch->controller->effects->has_room(watch->controller->userdata, watch);
}

/* A page a turn: a watcher that reads as fast as pages leave would have us do nothing else for as long as
 * there are rows. */
void owed_page(struct watch *watch)
{
        struct controller *controller = watch->controller;
        int r = ledger_try_hold(controller->ledger);

        if (r == -EBUSY) { /* the end of that turn comes back to it */
                controller_settle_later(controller);
                return;
        }
        if (r >= 0 && may_go_on(watch))
                r = send_page(watch);
        if (r >= 0)
                controller_settle_soon(controller); /* it ends the transaction, and asks for the next page */
        else if (r == -EBADMSG)
                ledger_failed(controller, r);
        else
                controller_fatal(controller, EXIT_CODE_SOFTWARE, NULL,
                                 "the ledger's rows of watch %s cannot be sent: %s", watch->config->name,
                                 strerror(-r));
}

void owed_continue(struct watch *watch)
{
        if (may_go_on(watch))
                watch->controller->effects->next_page(watch->controller->userdata, watch);
}

static int is_any(const char *watch _unused_, const struct ledger_row *row _unused_, void *userdata _unused_)
{
        return 0;
}

/* Before the watcher has announced anything. A row that is made later is of an object that is in its store,
 * and of whose end it hears like of any other; only older rows need be asked about. */
int owed_begin(struct watch *watch)
{
        int r = ledger_visit(watch->controller->ledger, watch->config->name, "", "", 1, is_any, NULL);

        watch->owes_nothing = r == 0;
        return r;
}

/* ---- the order of two objects of one name */

/* A bound, not the rule: when the deletion comes, the run waits for that one. None comes when the rows
 * belong to another cluster. */
#define PREDECESSOR_USEC (5 * USEC_PER_SEC)

static int is_same_key(const char *watch _unused_, const struct ledger_row *row, void *userdata)
{
        const char **key = userdata;

        if (strcmp(row->key, *key) == 0)
                *key = NULL;
        return 0;
}

uint64_t owed_delay(struct watch *watch, const char *key)
{
        const char *found = key;

        /* Once everything is compared, its deletion is in the queue already, or was never owed. */
        if (watch->checked || watch->owes_nothing ||
            ledger_visit(watch->controller->ledger, watch->config->name, key, "", 1, is_same_key, &found) <=
                    0)
                return 0;
        return found ? 0 : PREDECESSOR_USEC;
}

void owed_start(struct watch *watch)
{
        watch->owed_streaming = true;
        owed_continue(watch);
}
