/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger that was lost (set aside, or taken away) while the stores were not. It knew what had been handed
 * to handlers; until everything that exists has been handed out again, an object that it does not know
 * counts as handed out: its deletion is told, once too often rather than never. That outlives restarts, in a
 * row of the scopes under a name that no watch has.
 */
#include <dirent.h>
#include <string.h>

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
bool lost_has_stores(const struct supervisor *supervisor)
{
        return has_entries(supervisor->options->state_directory, "store") ||
               has_entries(supervisor->secrets_folder, "store");
}
