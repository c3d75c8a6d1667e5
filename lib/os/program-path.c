/* SPDX-License-Identifier: Apache-2.0 */
#include "os/program-path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *program_path(const char *folder, const char *name)
{
        const char *libexec = getenv("RECONCILED_LIBEXECDIR");
        char self[4096], *path = NULL, *slash;
        ssize_t length;

        if (libexec)
                return asprintf(&path, "%s/%s", libexec, name) < 0 ? NULL : path;
        length = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (length > 0) {
                self[length] = '\0';
                slash = strrchr(self, '/');
                if (asprintf(&path, "%.*s/../%s/%s", (int)(slash - self), self, folder, name) < 0)
                        return NULL;
                if (access(path, X_OK) == 0)
                        return path;
                free(path);
        }
        return asprintf(&path, RECONCILED_LIBEXECDIR "/%s", name) < 0 ? NULL : path;
}
