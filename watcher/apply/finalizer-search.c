/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/finalizer-search.h"

#include <errno.h>
#include <string.h>

#include "kube/path.h"
#include "object/bookkeeping.h"
#include "object/identity.h"
#include "store/dirty.h"
#include "store/record.h"
#include "store/writer.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/scope.h"
#include "watcher/asking.h"
#include "watcher/failures.h"
#include "watcher/store-failure.h"
#include "watcher/stream/stream-request.h"
#include "watcher/stream/stream.h"

#define PAGE_LIMIT "500"

struct search {
        struct watcher *watcher;
        enum change_kind as;
        struct failures failures;    /* only its pace is used */
        const struct stream *stream; /* whose namespace is being listed */
        char *token;                 /* of the next page; NULL: the first one */
        bool unpaged;                /* no further pages: a token has expired, or was refused */
};

/* ---- what comes */

static int take_search_item(const struct search *search, const char *item, size_t size)
{
        struct watcher *watcher = search->watcher;
        struct finalizer_view view;
        struct identity identity;
        struct store_object stored;
        struct record_change change = {
                .kind = search->as, .key = identity.key, .uid = identity.uid, .resource_version = ""};
        int r = finalizer_look(item, size, watcher->config->finalizers, &view);

        if (r < 0 || !view.ours || identity_read(item, size, false, &identity) < 0 ||
            !scope_chooses(watcher, identity.key) || !stream_has_key(search->stream, identity.key))
                return r == -ENOMEM ? r : 0;
        r = store_peek(watcher->store, identity.key, &stored);
        if (r >= 0) {
                bool known = strcmp(stored.uid, identity.uid) == 0; /* the store's own entry is announced */

                store_object_done(&stored);
                if (known)
                        return 0;
        }
        if (r >= 0 || r == -ENOENT)
                r = store_dirty_add(watcher->store, &change);
        return r < 0 ? store_failed(watcher, r) : 0;
}

static int on_searched_item(const char *item, size_t size, void *userdata)
{
        return item ? take_search_item(userdata, item, size) : 0;
}

/* ---- page by page */

static int ask_for_unselected(struct search *search, struct page *ret) _suspends_
{
        _cleanup_free_ char *base =
                kube_path(&search->watcher->resource, search->stream->namespace_name, NULL, NULL);
        _cleanup_text_ struct text path = TEXT_EMPTY;
        struct page_request request = {
                .accept = REQUEST_ACCEPT_LIST_METADATA,
                .token = search->token,
                .on_item = on_searched_item,
                .userdata = search,
                .failures = &search->failures,
        };

        text_append_string(&path, base ? base : "");
        if (!search->unpaged)
                kube_path_add(&path, "limit", PAGE_LIMIT);
        if (search->token)
                kube_path_add(&path, "continue", search->token);
        request.path = base && !path.failed ? path.data : NULL;
        return page_ask(search->watcher, &request, ret);
}

/* What becomes of the list is what becomes of a watch's own after this answer to a later page. */
static void note_search_failure(struct search *search, const struct page *page)
{
        struct watcher *watcher = search->watcher;
        enum reaction reaction = reaction_to(PHASE_CONTINUE, answer_of(&page->error));
        const char *why = page->error.message ? page->error.message : "the answer is not a list";

        if (reaction != REACT_PAGE_LATER && reaction != REACT_REFRESH_PAGE)
                free(TAKE_PTR(search->token));
        search->unpaged = search->unpaged || reaction == REACT_LIST_UNPAGED;
        failures_tell(watcher, &page->error, page->serial);
        if (watcher->search.unseen[0] == '\0')
                log_warning(
                        "watch %s: cannot list the objects that it does not select: %s; they may carry its "
                        "finalizer, and the list is tried again. Grant the verb 'list' without a selector",
                        watcher->config->watch, why);
        snprintf(watcher->search.unseen, sizeof(watcher->search.unseen), "%.300s", why);
        announce_soon(watcher); /* and report it */
}

/* Returns 1 if the next page is due, or the same one again after a pause; 0 after the last one of this namespace. */
static int search_page(struct search *search) _suspends_
{
        _cleanup_(page_done) struct page page;
        int r = ask_for_unselected(search, &page);

        if (r < 0)
                return r;
        if (page.error.failure != KUBE_FAILURE_NONE) {
                note_search_failure(search, &page);
                page_done(&page);
                r = asking_pause(search->watcher, failures_delay(search->watcher, &search->failures), NULL);
                return r < 0 ? r : 1;
        }
        search->failures.delay_usec = 0;
        free(TAKE_PTR(search->token));
        if (!page.metadata.continue_token[0])
                return 0;
        search->token = strdup(page.metadata.continue_token);
        return search->token ? 1 : asking_failed(search->watcher, -ENOMEM);
}

/* The fiber: all objects of all namespaces. */
static void search_all(void *userdata) _suspends_
{
        struct watcher *watcher = userdata;
        struct search search = {.watcher = watcher, .as = watcher->search.as};
        int r = 0;

        for (size_t i = 0; i < watcher->stream_count && r >= 0; i++) {
                search.stream = &watcher->stream[i];
                search.unpaged = false;
                do
                        r = search_page(&search);
                while (r > 0);
        }
        free(search.token);
        if (watcher->search.fiber != fiber_current())
                return; /* another search has begun */
        watcher->search.fiber = NULL;
        if (r < 0)
                return;
        watcher->search.is_due = false;
        watcher->search.unseen[0] = '\0';
        watcher->announce.swept = false; /* report it again */
        announce_soon(watcher);
}

void finalizer_search_begin(struct watcher *watcher, enum change_kind as)
{
        const struct message_config_watcher *config = watcher->config;

        if (watcher->search.fiber)
                fiber_cancel(TAKE_PTR(watcher->search.fiber));
        /* Without a selector, the store has all objects. */
        watcher->search.is_due =
                config->label_selector[0] || config->field_selector[0] || watcher->filter_program;
        watcher->search.as = as;
        watcher->search.unseen[0] = '\0';
}

bool finalizer_search_is_through(struct watcher *watcher)
{
        if (!watcher->search.is_due)
                return true;
        if (!watcher->search.fiber)
                asking_start(watcher, "the search for finalizers", search_all, watcher,
                             &watcher->search.fiber);
        return watcher->search.unseen[0] != '\0';
}
