/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/answer/stored.h"

#include <errno.h>

#include "ctl/answer/members.h"
#include "store/reader.h"
#include "store/store.h"

/* Read where it lies: the operator never sees an object, and neither do we: only what it is known by. */
int ctl_read_store(const cJSON *answer, const char *key, struct store_object *ret)
{
        const cJSON *where = cJSON_GetObjectItemCaseSensitive(answer, "store");
        struct store *store = NULL;
        int r = store_reader_new(ctl_text(where, "folder"), &store);

        if (r >= 0)
                r = store_read(store, ctl_number(where, "generation"), key, ret);
        store_free(store);
        return r == -ENAMETOOLONG ? -ENOENT : r; /* so long is no name */
}
