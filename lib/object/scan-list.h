/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A LIST as it streams in: feed pieces; items come out one by one, whatever the pieces' borders. Memory: one
 * item plus one piece.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct scan_list;
struct scan_list_metadata {
        char *resource_version;  /* "" until seen; owned by the scanner */
        char *continue_token;    /* "" when this is the last page */
        int64_t remaining_items; /* -1 when absent */
};
/* item: one element of `items`; NULL for one that was too large and is skipped. A negative return ends the
 * feed and is returned. */
typedef int (*scan_item_t)(const char *item, size_t size, void *userdata);
int scan_list_new(size_t item_max, scan_item_t on_item, void *userdata, struct scan_list **ret);
int scan_list_feed(struct scan_list *list, const char *bytes, size_t size); /* 0, -EBADMSG, -EMSGSIZE ... */
/* After the last byte: 0 and the metadata, or -EAGAIN when the document was not complete. */
int scan_list_finish(struct scan_list *list, struct scan_list_metadata *ret_borrowed);
void scan_list_free(struct scan_list *list);
DEFINE_CLEANUP(struct scan_list *, scan_list_free);
