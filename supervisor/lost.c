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

int lost_load(struct supervisor *supervisor, bool lost)
{
        _cleanup_free_ char *mark = NULL, *cluster = NULL;
        int r;

        if (lost) {
                supervisor->ledger_lost = true;
                r = ledger_scope_set(supervisor->ledger, LOST_ROW, "lost", "");
                return r < 0 ? r : ledger_commit(supervisor->ledger); /* the next start sees a ledger */
        }
        r = ledger_scope_get(supervisor->ledger, LOST_ROW, &mark, &cluster);
        if (r >= 0)
                supervisor->ledger_lost = mark[0] != '\0';
        return r;
}

void lost_settle(struct supervisor *supervisor)
{
        int r;

        if (!supervisor->ledger_lost || queue_count_all(supervisor->queue).queued > 0)
                return;
        if (supervisor->changing)
                return;
        FOREACH_WATCH(watch, supervisor)
                if (!watch->synced || watch->paused_realtime > 0)
                        return;
        r = ledger_scope_set(supervisor->ledger, LOST_ROW, "", "");
        if (r < 0) {
                ledger_failed(supervisor, r);
                return;
        }
        supervisor->ledger_lost = false;
        turn_settle_soon(supervisor);
}
