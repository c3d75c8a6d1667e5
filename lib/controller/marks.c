/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/marks.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"

static struct mark mark_of(const char *key, const char *uid)
{
        return (struct mark){XXH3_64bits_withSeed(uid, strlen(uid), XXH3_64bits(key, strlen(key))), 0, 0};
}

static int compare_marks(const void *a, const void *b)
{
        const struct mark *mark = a, *other = b;

        return (mark->hash > other->hash) - (mark->hash < other->hash);
}

struct mark *mark_find(void *const *marks, const char *key, const char *uid)
{
        const struct mark sought = mark_of(key, uid);
        struct mark **found = *marks ? tfind(&sought, marks, compare_marks) : NULL;

        return found ? *found : NULL;
}

struct mark *mark_add(void **marks, const char *key, const char *uid)
{
        _cleanup_free_ struct mark *added = NULL;
        struct mark *found = mark_find(marks, key, uid);

        if (found)
                return found;
        added = malloc(sizeof(*added));
        if (!added)
                return NULL;
        *added = mark_of(key, uid);
        return tsearch(added, marks, compare_marks) ? TAKE_PTR(added) : NULL;
}

void mark_drop(void **marks, const char *key, const char *uid)
{
        struct mark *mark = mark_find(marks, key, uid);

        if (!mark)
                return;
        (void)tdelete(mark, marks, compare_marks);
        free(mark);
}

void marks_forget(void **marks)
{
        tdestroy(*marks, free);
        *marks = NULL;
}
