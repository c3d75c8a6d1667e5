/* SPDX-License-Identifier: Apache-2.0 */
#include "object/find-finalizer.h"

#include <errno.h>

static int compare_name(struct span name, void *userdata)
{
        return scan_string_equals(name, userdata) ? -EEXIST : 0;
}

static bool is_in_list(struct span list, const char *finalizer)
{
        return list.start && list.start[0] == '[' &&
               scan_elements(list, compare_name, (void *)(uintptr_t)finalizer) == -EEXIST;
}

int finalizer_look(const char *json, size_t size, const char *finalizer, struct finalizer_view *ret)
{
        struct scan_object object;
        int r = scan_identity(json, size, &object);

        if (r < 0)
                return r;
        *ret = (struct finalizer_view){
                .ours = is_in_list(object.finalizers, finalizer),
                .deleting = object.deletion_timestamp.start != NULL,
        };
        return 0;
}
