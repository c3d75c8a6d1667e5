/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/temporary.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"

int temporary_folder_new(bool in_memory, char **ret, struct error *error)
{
        const char *base = getenv("TMPDIR");
        _cleanup_free_ char *path = NULL;

        base = base && base[0] ? base : "/tmp";
        if (in_memory && !memory_holds(base) && memory_holds(MEMORY_SHARED))
                base = MEMORY_SHARED;
        if (asprintf(&path, "%s/reconciledctl-XXXXXX", base) < 0) {
                path = NULL;
                return error_set(error, -ENOMEM, "no memory");
        }
        if (!mkdtemp(path))
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        *ret = TAKE_PTR(path);
        return 0;
}

void temporary_folder_remove(const char *path)
{
        if (path)
                (void)folder_remove(path);
}
