/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/folders/state-ledger.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "controller/run/lost-ledger.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "ledger/ledger.h"
#include "os/folder.h"
#include "supervisor/supervisor.h"

static bool has_entries(const char *folder, const char *name)
{
        struct dirent *entry;
        bool found = false;
        DIR *directory;
        _cleanup_free_ char *path = format_string("%s/%s", folder, name);

        if (!path)
                return false;
        directory = opendir(path);
        while (directory && !found && (entry = readdir(directory)))
                found = entry->d_name[0] != '.';
        if (directory)
                closedir(directory);
        return found;
}

/* Object stores of an earlier life, whose ledger somebody has removed. */
static bool stores_exist(const struct supervisor *supervisor)
{
        return has_entries(supervisor->options->state_directory, "store") ||
               has_entries(supervisor->secrets.folder, "store");
}

/* ---- --discard-state */

static int empty_store(const char *folder)
{
        int r;
        _cleanup_free_ char *path = format_string("%s/store", folder);

        if (!path)
                return -ENOMEM;
        r = folder_remove(path);
        if (r < 0 && r != -ENOENT)
                return r;
        return mkdir(path, 0700) < 0 ? -errno : 0;
}

/* The ledger goes last: as long as it is there, the next start refuses or discards as this one did. The note
 * of finalizers stays: without it nobody would take those of former watches off. */
static int discard(struct supervisor *supervisor, const char *path, struct error *error)
{
        _cleanup_free_ char *under_way = NULL, *aside = NULL;
        int r = empty_store(supervisor->options->state_directory);

        if (r >= 0)
                r = empty_store(supervisor->secrets.folder);
        under_way = format_string("%s/under-way", supervisor->options->state_directory);
        if (!under_way)
                r = -ENOMEM;
        if (r >= 0 && unlink(under_way) < 0 && errno != ENOENT)
                r = -errno;
        if (r >= 0)
                r = ledger_set_aside(path, "discarded", &aside);
        if (r < 0)
                return error_set(error, r, "--discard-state: %s", strerror(-r));
        log_write(LOG_WARNING, MESSAGE_ID_LEDGER_SET_ASIDE, NULL,
                  "--discard-state: the state folder has another format; its object stores are removed, its "
                  "ledger is set aside as %s; every object is handled again, and deletions that happened "
                  "while the operator was down are found only through finalizers",
                  aside);
        return 0;
}

/* ---- */

static int open_or_discard(struct supervisor *supervisor, const char *path, char **ret_aside,
                           bool *ret_discarded, struct error *error)
{
        int r = ledger_open(path, &supervisor->controller.ledger, ret_aside, error);

        *ret_discarded = r == -EPROTONOSUPPORT && supervisor->options->discard_state;
        if (!*ret_discarded)
                return r;
        error_done(error);
        r = discard(supervisor, path, error);
        return r < 0 ? r : ledger_open(path, &supervisor->controller.ledger, ret_aside, error);
}

static void warn_of_loss(const char *path, const char *aside)
{
        if (aside)
                log_write(
                        LOG_ERR, MESSAGE_ID_LEDGER_SET_ASIDE, NULL,
                        "the ledger %s was corrupt and has been set aside as %s; every object is handled "
                        "again, and deletions that happened while the operator was down are found only for "
                        "objects in the object store",
                        path, aside);
        else
                log_warning("the ledger %s is gone, but there are object stores of an earlier life; every "
                            "object is handled again, and deletions are found only for objects in the "
                            "stores",
                            path);
}

int state_ledger_open(struct supervisor *supervisor, struct error *error)
{
        _cleanup_free_ char *path = NULL, *aside = NULL;
        bool missing, discarded;
        int r;

        path = format_string("%s/ledger.sqlite", supervisor->options->state_directory);
        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        missing = access(path, F_OK) < 0 && stores_exist(supervisor);
        supervisor->controller.ledger_folder = supervisor->options->state_directory;
        r = open_or_discard(supervisor, path, &aside, &discarded, error);
        if (r < 0)
                return error_prefix(error, "%s", path);
        r = ledger_lost_load(&supervisor->controller, missing || aside || discarded);
        if (r < 0)
                return error_set(error, r, "%s: %s", path, strerror(-r));
        if (missing || aside)
                warn_of_loss(path, aside);
        return 0;
}
