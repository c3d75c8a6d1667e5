/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/asking.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/apply/announce.h"
#include "watcher/store-failure.h"

void asking_start(struct watcher *watcher, const char *name, void (*entry)(void *userdata), void *userdata,
                  struct fiber **ret)
{
        *ret = NULL;
        if (fiber_start(watcher->fibers, name, entry, userdata, ret) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "no memory to ask the API server (%s)",
                            name);
}

static bool is_to_end(const struct watcher *watcher)
{
        return watcher_is_over(watcher) || fiber_is_ending(fiber_current());
}

int asking_ask(struct watcher *watcher, const struct kube_request *request, struct kube_answer *ret)
{
        int r = kube_ask(watcher->client, request, ret);

        return r >= 0 && is_to_end(watcher) ? -ECANCELED : r;
}

int asking_pause(struct watcher *watcher, uint64_t usec, struct fiber **sleeper)
{
        struct fiber *own;
        int r = fiber_sleep_at_most(usec, "its next attempt", sleeper ? sleeper : &own);

        if (r < 0 && r != -ECANCELED)
                return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "no memory for a timer");
        return is_to_end(watcher) ? -ECANCELED : r;
}

int asking_failed(struct watcher *watcher, int status)
{
        if (status == -ECANCELED)
                return status;
        return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "a request cannot be started: %s",
                           strerror(-status));
}

void asking_done(struct watcher *watcher)
{
        while (watcher->fibers && fibers_count(watcher->fibers) > 0) {
                fibers_cancel(watcher->fibers);
                fibers_turn(watcher->fibers);
        }
        fibers_free(watcher->fibers);
        watcher->fibers = NULL;
}

/* a server ends requests other than watches after the same time */
#define PAGE_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define ITEM_MAX          ((size_t)16 * 1024 * 1024)

struct reading {
        struct watcher *watcher;
        const struct fiber *fiber;
        struct failures *failures;
        struct scan_list *list;
        int status; /* of the first piece that could not be read */
};

static int on_page_data(struct kube_transfer *transfer _unused_, const char *bytes, size_t size,
                        void *userdata)
{
        struct reading *reading = userdata;

        if (fiber_is_ending(reading->fiber))
                return -ECANCELED;
        reading->status = scan_list_feed(reading->list, bytes, size);
        failures_progress(reading->failures);
        return reading->status < 0 ? reading->status : announce_in_time(reading->watcher);
}

static void judge_page(const struct page_request *request, int status, struct kube_answer *answer,
                       struct page *page)
{
        struct kube_error *error = &answer->response.error;

        if (status < 0) {
                kube_error_set(&page->error, KUBE_FAILURE_PROTOCOL, "the server's list cannot be read%s",
                               status == -EMSGSIZE ? ": a part of it is larger than 16 MiB" : "");
        } else if (error->failure != KUBE_FAILURE_NONE) {
                page->error = *error;
                *error = KUBE_ERROR_NONE;
                page->serial = answer->response.credential_serial;
        } else if (scan_list_finish(page->list, &page->metadata) < 0 ||
                   page->metadata.resource_version[0] == '\0') {
                kube_error_set(&page->error, KUBE_FAILURE_PROTOCOL, "the server's list ended in the middle");
        } else if (scan_list_is_endless(&page->metadata, request->token)) {
                kube_error_set(&page->error, KUBE_FAILURE_PROTOCOL, SCAN_LIST_ENDLESS);
        }
}

int page_ask(struct watcher *watcher, const struct page_request *request, struct page *ret)
{
        struct reading reading = {
                .watcher = watcher, .fiber = fiber_current(), .failures = request->failures};
        const struct kube_request own = {
                .method = "GET",
                .path = request->path,
                .accept = request->accept,
                .timeout_usec = PAGE_TIMEOUT_USEC,
                .on_data = on_page_data,
                .userdata = &reading,
        };
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r;

        *ret = (struct page){.error = KUBE_ERROR_NONE};
        r = request->path ? scan_list_new(ITEM_MAX, request->on_item, request->userdata, &ret->list)
                          : -ENOMEM;
        reading.list = ret->list;
        if (r >= 0)
                r = asking_ask(watcher, &own, &answer);
        if (r >= 0)
                judge_page(request, reading.status, &answer, ret);
        else
                page_done(ret);
        return r < 0 ? asking_failed(watcher, r) : 0;
}

void page_done(struct page *page)
{
        kube_error_done(&page->error);
        scan_list_free(page->list);
        *page = (struct page){.error = KUBE_ERROR_NONE};
}
