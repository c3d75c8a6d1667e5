/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A LIST as it streams in: feed pieces; items come out one by one, whatever the pieces' borders. Memory: one
 * item plus one piece.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct scan_list;
struct scan_list_metadata {
        char *resource_version;  /* "" until seen; owned by the scanner */
        char *continue_token;    /* "" when this is the last page */
        int64_t remaining_items; /* -1 when absent */
        size_t items;
};
/* Whether another page follows a page that has added nothing, or itself, by its token: so it would go on forever, as fast as
 * the server answers. former: the token with which this page was asked for; "" or NULL for the first one. */
bool scan_list_is_endless(const struct scan_list_metadata *metadata, const char *former);
#define SCAN_LIST_ENDLESS "a page of the server's list adds nothing, or names itself as the next one"
/* item: one element of `items`; NULL for one that was too large and is skipped. A negative return ends the
 * feed and is returned. */
typedef int (*scan_item_t)(const char *item, size_t size, void *userdata);
int scan_list_new(size_t item_max, scan_item_t on_item, void *userdata, struct scan_list **ret);
int scan_list_feed(struct scan_list *list, const char *bytes, size_t size); /* 0, -EBADMSG, -EMSGSIZE ... */
/* Called after the last byte: 0 and the metadata, or -EAGAIN when the document was not complete. */
int scan_list_finish(struct scan_list *list, struct scan_list_metadata *ret_borrowed);
void scan_list_free(struct scan_list *list);
DEFINE_CLEANUP(struct scan_list *, scan_list_free);
