/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What waits for the server, other than a watch: setup, lists, the probe, questions about single objects, the search for
 * finalizers, missing namespaces. Each is a function on a fiber (fiber.h), which asks, waits, and goes on with the answer. None
 * of them outlives the watcher: one that is over has its fibers cancelled, and whatever waits then returns -ECANCELED.
 */
#include "kube/kube-ask.h"
#include "kube/kube-error.h"
#include "object/scan-list.h"
#include "watcher/watcher.h"

/* Calls entry on a fiber, in a later turn. Without memory the watcher ends, and *ret is NULL. */
void asking_start(struct watcher *watcher, const char *name, void (*entry)(void *userdata), void *userdata,
                  struct fiber **ret);
/* kube_ask(), with -ECANCELED also where the fiber or the watcher is to end by now: no answer is worth anything then. */
_warn_unused_ int asking_ask(struct watcher *watcher, const struct kube_request *request,
                             struct kube_answer *ret) _suspends_;
/* Waits for the next attempt; fiber_end_sleep(sleeper) brings it forward. sleeper may be NULL. 0; -ECANCELED, the fiber or
 * the watcher is to end. */
_warn_unused_ int asking_pause(struct watcher *watcher, uint64_t usec, struct fiber **sleeper) _suspends_;
/* Ends the watcher, because a question could not be asked (status: negative errno). Returns -ECANCELED. */
int asking_failed(struct watcher *watcher, int status);
/* Unwinds all fibers, so that none waits any more. */
void asking_done(struct watcher *watcher);

/*
 * A page of a list: asked for, and its items handed on as they stream in. A page that did not come whole says nothing about
 * what it did not show.
 */
struct page_request {
        const char *path, *accept;
        const char *token; /* it is the page after this one; "" or NULL: the first one */
        scan_item_t on_item;
        void *userdata;            /* of on_item */
        struct failures *failures; /* told of the progress */
};

struct page {
        struct kube_error error; /* failure NONE: it is whole */
        uint64_t serial;         /* of the credential that may be to blame; 0: none is */
        struct scan_list *list;
        struct scan_list_metadata metadata; /* of a whole page; owned by `list` */
};

/* 0, however it ended; -ECANCELED, the fiber or the watcher is to end. */
_warn_unused_ int page_ask(struct watcher *watcher, const struct page_request *request,
                           struct page *ret) _suspends_;
void page_done(struct page *page);
