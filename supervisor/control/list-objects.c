/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/list-objects.h"

#include <errno.h>
#include <string.h>

#include "supervisor/control/status-document.h"
#include "supervisor/supervisor.h"

#define LISTED_MAX 1000
#define LOOKED_MAX 2000 /* of those that have a time, the earliest: the resyncs of all others follow */
#define PAGE       50

typedef int (*list_page_t)(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                           ledger_visit_t visit, void *userdata);

struct listing {
        struct supervisor *supervisor;
        list_page_t page;
        bool of_all;       /* a page has rows of all watches, by their time */
        char *only;        /* this watch; "": all */
        char *prefix;      /* of its keys: the namespace, with the slash; "": all */
        uint64_t realtime; /* the last row */
        char *watch, *key, *uid;
        size_t listed, looked;
        bool over;
        struct text json;
};

void listing_free(struct listing *listing)
{
        if (!listing)
                return;
        free(listing->only);
        free(listing->prefix);
        free(listing->watch);
        free(listing->key);
        free(listing->uid);
        text_done(&listing->json);
        free(listing);
}
DEFINE_CLEANUP(struct listing *, listing_free);

static bool listing_wants(const struct listing *listing, const char *watch, const struct ledger_row *row)
{
        if (listing->of_all &&
            (row->next_reason == RUN_RESYNC || !watch_find(&listing->supervisor->controller, watch)))
                return false;
        return (!listing->only[0] || strcmp(listing->only, watch) == 0) &&
               strncmp(row->key, listing->prefix, strlen(listing->prefix)) == 0;
}

static int take_listed_row(const char *watch, const struct ledger_row *row, void *userdata)
{
        struct listing *listing = userdata;

        listing->looked += !listing->of_all || watch_find(&listing->supervisor->controller, watch);
        listing->realtime = row->next_realtime;
        if (text_replace(&listing->watch, watch) < 0 || text_replace(&listing->key, row->key) < 0 ||
            text_replace(&listing->uid, row->uid) < 0)
                return -ENOMEM;
        if (listing->listed < LISTED_MAX && listing_wants(listing, watch, row)) {
                status_write_row(listing->supervisor, watch, row, &listing->json);
                listing->listed++;
        }
        return 0;
}

/* Within the rows of a watch, those of a namespace are neighbours. */
static int begin_watch(struct listing *listing)
{
        const char *next =
                listing->only[0] ? (listing->watch[0] ? NULL : listing->only)
                                 : ledger_next_watch(listing->supervisor->controller.ledger, listing->watch);

        while (next && !watch_find(&listing->supervisor->controller, next))
                next = ledger_next_watch(listing->supervisor->controller.ledger, next);
        listing->over = !next;
        if (!next)
                return 0;
        if (text_replace(&listing->watch, next) < 0 || text_replace(&listing->key, listing->prefix) < 0)
                return -ENOMEM;
        return text_replace(&listing->uid, "");
}

static int take_listing_page(struct listing *listing)
{
        _cleanup_free_ char *watch = strdup(listing->watch), *key = strdup(listing->key),
                            *uid = strdup(listing->uid);
        struct ledger_place behind = {listing->realtime, watch, key, uid};
        int r = watch && key && uid ? listing->page(listing->supervisor->controller.ledger, &behind, PAGE,
                                                    take_listed_row, listing)
                                    : -ENOMEM;

        if (r < 0)
                return r;
        if (listing->of_all)
                listing->over = r < PAGE || listing->looked >= LOOKED_MAX;
        else if (r < PAGE || strncmp(listing->key, listing->prefix, strlen(listing->prefix)) != 0)
                r = begin_watch(listing);
        listing->over = listing->over || listing->listed == LISTED_MAX;
        return r < 0 ? r : 0;
}

int listing_continue(struct listing *listing)
{
        int r = 0;

        while (r >= 0 && !listing->over && !turn_is_spent(listing->supervisor))
                r = take_listing_page(listing);
        if (r < 0 || !listing->over)
                return r;
        json_close(&listing->json, "],");
        json_bool(&listing->json, "more", listing->listed == LISTED_MAX);
        json_close(&listing->json, "}");
        return listing->json.failed ? -ENOMEM : 1;
}

const struct text *listing_document(const struct listing *listing)
{
        return &listing->json;
}

static list_page_t lister_of(const char *state)
{
        return strcmp(state, "failing") == 0       ? ledger_list_failing
               : strcmp(state, "quarantined") == 0 ? ledger_list_quarantined
               : strcmp(state, "waiting") == 0     ? ledger_list_waiting
                                                   : NULL;
}

int listing_new(struct supervisor *supervisor, const char *state, const char *watch, const char *namespace,
                struct listing **ret)
{
        _cleanup_(listing_free_pointer) struct listing *listing = calloc(1, sizeof(*listing));
        int r;

        if (!lister_of(state))
                return -EINVAL;
        if (!listing)
                return -ENOMEM;
        *listing = (struct listing){
                .supervisor = supervisor,
                .page = lister_of(state),
                .of_all = lister_of(state) == ledger_list_waiting,
                .only = strdup(watch),
                .watch = strdup(""),
                .key = strdup(""),
                .uid = strdup(""),
        };
        listing->prefix = format_string("%s%s", namespace, namespace[0] ? "/" : "");
        if (!listing->only || !listing->prefix || !listing->watch || !listing->key || !listing->uid)
                return -ENOMEM;
        r = listing->of_all ? 0 : begin_watch(listing);
        if (r < 0)
                return r;
        text_append_string(&listing->json, "{\"objects\":[");
        *ret = TAKE_PTR(listing);
        return 0;
}
