/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A page of a list: asked for, and its items handed on as they stream in. A page that did not come whole says nothing about
 * what it did not show.
 */
#include "kube/kube-error.h"
#include "object/scan-list.h"
#include "watcher/watcher.h"

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
