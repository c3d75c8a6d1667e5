/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/finalizer-search.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "kube/path.h"
#include "object/bookkeeping.h"
#include "object/identity.h"
#include "object/scan-list.h"
#include "store/dirty.h"
#include "store/record.h"
#include "store/writer.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/scope.h"
#include "watcher/failures.h"
#include "watcher/store-failure.h"
#include "watcher/stream/stream-request.h"
#include "watcher/stream/stream.h"

#define PAGE_LIMIT        "500"
#define PAGE_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define ITEM_MAX          ((size_t)16 * 1024 * 1024)
#define UNSEEN_MAX        400

struct finalizer_search {
        struct watcher *watcher;
        struct kube_transfer *transfer;
        sd_event_source *timer;
        struct scan_list *list;
        char *continue_token;     /* NULL: the first page */
        bool unpaged;             /* no further pages: a token has expired, or was refused */
        size_t stream;            /* index of the stream whose namespace is being listed */
        struct failures failures; /* only its pace is used */
        enum change_kind as;
        bool done;
        /* why not all objects could be looked at; "": nothing is known against it */
        char unseen[UNSEEN_MAX];
};

static void finalizer_search_ask(struct finalizer_search *search);

static void end_page(struct finalizer_search *search)
{
        kube_transfer_cancel(search->transfer);
        search->transfer = NULL;
        scan_list_free(search->list);
        search->list = NULL;
}

void finalizer_search_free(struct watcher *watcher)
{
        struct finalizer_search *search = watcher->search;

        watcher->search = NULL;
        if (!search)
                return;
        end_page(search);
        sd_event_source_disable_unref(search->timer);
        failures_done(&search->failures);
        free(search->continue_token);
        free(search);
}

int finalizer_search_begin(struct watcher *watcher, enum change_kind as)
{
        const struct message_config_watcher *config = watcher->config;

        finalizer_search_free(watcher);
        if (!config->label_selector[0] && !config->field_selector[0] && !watcher->filter_program)
                return 0; /* the store has all objects */
        watcher->search = calloc(1, sizeof(*watcher->search));
        if (!watcher->search)
                return -ENOMEM;
        watcher->search->watcher = watcher;
        watcher->search->as = as;
        return 0;
}

bool finalizer_search_is_through(struct watcher *watcher)
{
        struct finalizer_search *search = watcher->search;

        if (!search || search->done)
                return true;
        if (!search->transfer && !search->timer)
                finalizer_search_ask(search);
        return search->unseen[0] != '\0';
}

const char *finalizer_search_unseen(const struct watcher *watcher)
{
        return watcher->search ? watcher->search->unseen : "";
}

/* ---- what comes */

static int take_search_item(struct watcher *watcher, const char *item, size_t size)
{
        struct finalizer_view view;
        struct identity identity;
        struct store_object stored;
        struct record_change change = {.kind = watcher->search->as,
                                       .key = identity.key,
                                       .uid = identity.uid,
                                       .resource_version = ""};
        int r = finalizer_look(item, size, watcher->config->finalizers, &view);

        if (r < 0 || !view.ours || identity_read(item, size, false, &identity) < 0 ||
            !scope_chooses(watcher, identity.key) ||
            !stream_has_key(&watcher->stream[watcher->search->stream], identity.key))
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

static int on_item(const char *item, size_t size, void *userdata)
{
        return item ? take_search_item(userdata, item, size) : 0;
}

static int on_finalizer_search_data(struct kube_transfer *transfer _unused_, const char *bytes, size_t size,
                                    void *userdata)
{
        struct finalizer_search *search = userdata;
        int r = scan_list_feed(search->list, bytes, size);

        return r < 0 ? r : announce_in_time(search->watcher);
}

static int on_finalizer_search_retry(sd_event_source *source _unused_, uint64_t usec _unused_,
                                     void *userdata)
{
        struct finalizer_search *search = userdata;

        search->timer = sd_event_source_disable_unref(search->timer);
        finalizer_search_ask(search);
        return 0;
}

/* What becomes of the list is what becomes of a watch's own after this answer to a later page. */
static void finalizer_search_failed(struct finalizer_search *search, const struct kube_error *error,
                                    uint64_t serial)
{
        struct watcher *watcher = search->watcher;
        enum reaction reaction = reaction_to(PHASE_CONTINUE, answer_of(error));
        const char *why = error->message ? error->message : "the answer is not a list";

        if (reaction != REACT_PAGE_LATER && reaction != REACT_REFRESH_PAGE)
                free(TAKE_PTR(search->continue_token));
        search->unpaged = search->unpaged || reaction == REACT_LIST_UNPAGED;
        failures_tell(watcher, error, serial);
        if (search->unseen[0] == '\0')
                log_warning(
                        "watch %s: cannot list the objects that it does not select: %s; they may carry its "
                        "finalizer, and the list is tried again. Grant the verb 'list' without a selector",
                        watcher->config->watch, why);
        snprintf(search->unseen, sizeof(search->unseen), "%.300s", why);
        retry_timer_start(watcher, &search->timer, failures_delay(watcher, &search->failures),
                          on_finalizer_search_retry, search);
        announce_soon(watcher); /* and report it */
}

static void page_taken(struct finalizer_search *search, const struct scan_list_metadata *metadata)
{
        struct watcher *watcher = search->watcher;

        free(TAKE_PTR(search->continue_token));
        search->failures.delay_usec = 0;
        if (metadata->continue_token[0] && !(search->continue_token = strdup(metadata->continue_token))) {
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, NULL, NULL, "no memory");
                return;
        }
        search->stream += !search->continue_token;
        search->unpaged = search->unpaged && search->continue_token;
        end_page(search);
        if (search->stream < watcher->stream_count) {
                finalizer_search_ask(search);
                return;
        }
        search->done = true;
        search->unseen[0] = '\0';
        watcher->announce.swept = false; /* report it again */
        announce_soon(watcher);
}

static void on_finalizer_search_done(struct kube_transfer *transfer _unused_,
                                     const struct kube_response *response, void *userdata)
{
        struct finalizer_search *search = userdata;
        _cleanup_kube_error_ struct kube_error endless = KUBE_ERROR_NONE;
        struct scan_list_metadata metadata;

        search->transfer = NULL;
        if (watcher_is_over(search->watcher))
                return;
        if (response->error.failure == KUBE_FAILURE_NONE && scan_list_finish(search->list, &metadata) >= 0) {
                if (!scan_list_is_endless(&metadata, search->continue_token)) {
                        page_taken(search, &metadata);
                        return;
                }
                kube_error_set(&endless, KUBE_FAILURE_PROTOCOL, SCAN_LIST_ENDLESS);
                end_page(search);
                finalizer_search_failed(search, &endless, 0);
                return;
        }
        end_page(search);
        finalizer_search_failed(search, &response->error, response->credential_serial);
}

static void finalizer_search_ask(struct finalizer_search *search)
{
        struct watcher *watcher = search->watcher;
        const struct stream *stream = &watcher->stream[search->stream];
        _cleanup_free_ char *base = kube_path(&watcher->resource, stream->namespace_name, NULL, NULL);
        _cleanup_text_ struct text path = TEXT_EMPTY;
        struct kube_request request = {
                .method = "GET",
                .accept = REQUEST_ACCEPT_LIST_METADATA,
                .timeout_usec = PAGE_TIMEOUT_USEC,
                .on_data = on_finalizer_search_data,
                .on_done = on_finalizer_search_done,
                .userdata = search,
        };
        int r = base ? scan_list_new(ITEM_MAX, on_item, watcher, &search->list) : -ENOMEM;

        text_append_string(&path, base ? base : "");
        if (!search->unpaged)
                kube_path_add(&path, "limit", PAGE_LIMIT);
        if (search->continue_token)
                kube_path_add(&path, "continue", search->continue_token);
        request.path = path.data;
        if (r >= 0)
                r = path.failed ? -ENOMEM : kube_client_start(watcher->client, &request, &search->transfer);
        if (r < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "a LIST cannot be started: %s", strerror(-r));
}
