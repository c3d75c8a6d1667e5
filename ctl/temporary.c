/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/temporary.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>

#include "base/cleanup.h"

#define FOLDER_FDS 16

int temporary_folder_new(char **ret, struct error *error)
{
        const char *base = getenv("TMPDIR");
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/reconciledctl-XXXXXX", base && base[0] ? base : "/tmp") < 0) {
                path = NULL;
                return error_set(error, -ENOMEM, "no memory");
        }
        if (!mkdtemp(path))
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        *ret = TAKE_PTR(path);
        return 0;
}

static int remove_entry(const char *path, const struct stat *st _unused_, int type _unused_,
                        struct FTW *place _unused_)
{
        (void)remove(path);
        return 0;
}

void temporary_folder_remove(const char *path)
{
        if (path)
                (void)nftw(path, remove_entry, FOLDER_FDS, FTW_DEPTH | FTW_PHYS);
}
