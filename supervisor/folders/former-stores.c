/* SPDX-License-Identifier: Apache-2.0 */
/* See former-stores.h. */
#include "supervisor/folders/former-stores.h"

#include <dirent.h>

#include "supervisor/supervisor.h"

#define LOST_ROW "" /* no watch has this name */

static bool has_entries(const char *folder, const char *name)
{
        _cleanup_free_ char *path = NULL;
        struct dirent *entry;
        bool found = false;
        DIR *directory;

        if (asprintf(&path, "%s/%s", folder, name) < 0) {
                path = NULL;
                return false;
        }
        directory = opendir(path);
        while (directory && !found && (entry = readdir(directory)))
                found = entry->d_name[0] != '.';
        if (directory)
                closedir(directory);
        return found;
}

/* A store of an earlier life. */
bool former_stores_exist(const struct supervisor *supervisor)
{
        return has_entries(supervisor->options->state_directory, "store") ||
               has_entries(supervisor->secrets.folder, "store");
}
