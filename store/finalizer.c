/* SPDX-License-Identifier: Apache-2.0 */
#include "store/finalizer.h"

#include <errno.h>

#include "store/scan-value.h"

static bool is_in_list(struct span list, const char *finalizer)
{
        size_t position = 1;

        if (!list.start || list.size < 2 || list.start[0] != '[')
                return false;
        while (position < list.size) {
                struct span element;

                position = skip_space(list.start, list.size, position);
                if (scan_value(list.start + position, list.size - position, &element) < 0)
                        return false; /* the end of the list as well */
                if (scan_string_equals(element, finalizer))
                        return true;
                position = (size_t)(element.start - list.start) + element.size;
                position = skip_space(list.start, list.size, position) + 1;
        }
        return false;
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
