/* SPDX-License-Identifier: Apache-2.0 */
/* Taking the marks of `held` off one object, or off all of them, in pages. */
#include "store/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"
#include "store/record.h"
#include "store/writer.h"

#define PAGE 1024 /* objects that are looked at in one go */

struct page {
        char last[KEY_MAX + 1];
        char *held[PAGE];
        size_t count;
};

static int take_held(const struct store_object *object, void *userdata)
{
        struct page *page = userdata;

        snprintf(page->last, sizeof(page->last), "%s", object->key);
        if (!object->held)
                return 0;
        page->held[page->count] = strdup(object->key);
        return page->held[page->count++] ? 0 : -ENOMEM;
}

int store_unhold_object(struct store *store, const char *key)
{
        struct store_object object;
        int r = store_get(store, key, &object);

        if (r < 0)
                return r;
        object.held = false;
        r = store_put(store, &object);
        store_object_done(&object);
        return r;
}

static int unhold(struct store *store, const char *key)
{
        int r = store_unhold_object(store, key);

        return r < 0 || !store_commit_due(store) ? r : store_commit(store);
}

static void page_empty(struct page *page)
{
        while (page->count > 0)
                free(page->held[--page->count]);
}

int store_unhold(struct store *store, void (*on_progress)(void *userdata), void *userdata)
{
        _cleanup_free_ struct page *page = calloc(1, sizeof(*page));
        int seen, r = 0;

        if (!page)
                return -ENOMEM;
        do {
                seen = store_visit_objects(store, page->last, PAGE, take_held, page);
                for (size_t i = 0; i < page->count && seen >= 0 && r >= 0; i++)
                        r = unhold(store, page->held[i]);
                page_empty(page);
                on_progress(userdata);
        } while (seen > 0 && r >= 0);
        if (seen >= 0 && r >= 0)
                r = store_commit(store);
        return seen < 0 ? seen : r;
}
