/* SPDX-License-Identifier: Apache-2.0 */
#include "os/program-path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

char *program_path(const char *folder, const char *name)
{
        const char *libexec = getenv("RECONCILED_LIBEXECDIR");
        char self[4096], *path, *slash;
        ssize_t length;

        if (libexec)
                return format_string("%s/%s", libexec, name);
        length = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (length > 0) {
                self[length] = '\0';
                slash = strrchr(self, '/');
                path = format_string("%.*s/../%s/%s", (int)(slash - self), self, folder, name);
                if (!path || access(path, X_OK) == 0)
                        return path;
                free(path);
        }
        return format_string(RECONCILED_LIBEXECDIR "/%s", name);
}
