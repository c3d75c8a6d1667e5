/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/folders/secrets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit-code.h"
#include "base/text.h"
#include "config/config-message.h"
#include "config/config-watch.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/folder.h"
#include "os/temporary.h"
#include "supervisor/supervisor.h"

/* ---- the folder */

/* If handlers' users may enter (handlers/access-state.c), the mode shows their right to search as the group's. */
static bool is_private(const struct stat *st)
{
        return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & 067) == 0;
}

static int make_private(const char *path)
{
        struct stat st;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        if (lstat(path, &st) < 0)
                return -errno;
        return is_private(&st) ? 0 : -EPERM;
}

/* Makes our folder if somebody else has made one of our name. Ours has a name that cannot be guessed, and is
 * found by its owner. */
static int make_unguessable(struct supervisor *supervisor)
{
        _cleanup_free_ char *prefix = format_string("reconciled-%u-", (unsigned)geteuid());
        DIR *directory = prefix ? opendir(MEMORY_SHARED) : NULL;
        struct dirent *entry;
        char *path = NULL;

        while (directory && !path && (entry = readdir(directory))) {
                struct stat st;

                if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
                    fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    is_private(&st))
                        path = format_string(MEMORY_SHARED "/%s", entry->d_name);
        }
        if (directory)
                closedir(directory);
        if (!path && prefix) {
                path = format_string(MEMORY_SHARED "/%sXXXXXX", prefix);
                if (path && !mkdtemp(path)) {
                        free(path);
                        return -errno;
                }
        }
        free(supervisor->secrets.parent);
        supervisor->secrets.parent = path;
        return path ? 0 : -ENOMEM;
}

/* Everybody may make folders there: ours is in one that only we can enter. */
static int choose_shared(struct supervisor *supervisor)
{
        struct stat st;
        int r;

        if (!memory_holds(MEMORY_SHARED))
                return -EOPNOTSUPP;
        if (stat(supervisor->options->state_directory, &st) < 0)
                return -errno;
        supervisor->secrets.parent = format_string(MEMORY_SHARED "/reconciled-%u", (unsigned)geteuid());
        if (!supervisor->secrets.parent)
                return -ENOMEM;
        r = make_private(supervisor->secrets.parent);
        if (r == -EPERM)
                r = make_unguessable(supervisor);
        if (r < 0)
                return r;
        supervisor->secrets.folder = format_string("%s/%" PRIx64 "-%" PRIx64, supervisor->secrets.parent,
                                                   (uint64_t)st.st_dev, (uint64_t)st.st_ino);
        return supervisor->secrets.folder ? 0 : -ENOMEM;
}

static int choose_runtime(struct supervisor *supervisor)
{
        const char *runtime = supervisor->options->runtime_directory;

        free(supervisor->secrets.parent);
        free(supervisor->secrets.folder);
        supervisor->secrets.parent = strdup(runtime);
        supervisor->secrets.folder = format_string("%s/secrets", runtime);
        return supervisor->secrets.parent && supervisor->secrets.folder ? 0 : -ENOMEM;
}

static int make_part(const struct supervisor *supervisor, const char *name)
{
        _cleanup_free_ char *path = format_string("%s/%s", supervisor->secrets.folder, name);

        if (!path)
                return -ENOMEM;
        return make_private(path);
}

int secrets_begin(struct supervisor *supervisor, struct error *error)
{
        bool in_memory = memory_holds(supervisor->options->runtime_directory);
        int r = in_memory ? choose_runtime(supervisor) : choose_shared(supervisor);

        temporary_folders_sweep();
        if (r < 0 && !in_memory) {
                supervisor->secrets.on_disk = true;
                r = choose_runtime(supervisor);
        }
        if (r >= 0 && secrets_check(supervisor, supervisor->config, error) < 0)
                return -EOPNOTSUPP;
        if (r >= 0)
                r = make_private(supervisor->secrets.folder);
        if (r >= 0)
                r = make_part(supervisor, "store");
        if (r >= 0)
                r = make_part(supervisor, "kept");
        return r < 0 ? error_set(error, r, "%s: %s",
                                 supervisor->secrets.folder ? supervisor->secrets.folder : "secrets",
                                 strerror(-r))
                     : 0;
}

int secrets_check(const struct supervisor *supervisor, const struct config *config, struct error *error)
{
        if (!supervisor->secrets.on_disk || config->secrets_allow_disk || !config_needs_memory(config))
                return 0;
        return error_set(
                error, -EOPNOTSUPP,
                "Secrets would reach a disk: neither the runtime directory %s nor " MEMORY_SHARED
                " is memory (tmpfs) that this user can use, and the configuration has Secrets, or what "
                "may hold them (confidential, onFailure: rollback, access of handlers); give the "
                "operator a runtime directory in memory (--runtime-directory), or allow a disk with "
                "secrets: {allowDisk: true}",
                supervisor->options->runtime_directory);
}

void secrets_warn(const struct supervisor *supervisor)
{
        if (!config_needs_memory(supervisor->config))
                return;
        if (supervisor->secrets.on_disk)
                log_write(
                        LOG_WARNING, MESSAGE_ID_SECRETS_ON_DISK, NULL,
                        "Secrets may reach a disk, as secrets.allowDisk says: neither the runtime directory %s "
                        "nor " MEMORY_SHARED
                        " is memory (tmpfs) that this user can use; give the operator a "
                        "runtime directory in memory",
                        supervisor->options->runtime_directory);
        else if (strcmp(supervisor->secrets.parent, supervisor->options->runtime_directory) != 0)
                log_info("the runtime directory %s is on a disk: Secrets are kept in memory, in %s",
                         supervisor->options->runtime_directory, supervisor->secrets.folder);
}

/* ---- places in it */

static char *disk_store(const struct supervisor *supervisor, const char *name)
{
        return format_string("%s/store/%s", supervisor->options->state_directory, name);
}

static char *memory_store(const struct supervisor *supervisor, const char *name)
{
        return format_string("%s/store/%s", supervisor->secrets.folder, name);
}

char *secrets_store_folder(const struct supervisor *supervisor, const struct config_watch *config)
{
        return (config->confidential ? memory_store : disk_store)(supervisor, config->name);
}

char *secrets_kept_folder(const struct supervisor *supervisor)
{
        return format_string("%s/kept", supervisor->secrets.folder);
}

static void erase_disk_store(const struct supervisor *supervisor, const char *name)
{
        _cleanup_free_ char *path = disk_store(supervisor, name);
        int r = path ? (access(path, F_OK) < 0 ? -errno : folder_remove(path)) : -ENOMEM;

        if (r >= 0)
                log_write(LOG_NOTICE, MESSAGE_ID_SECRETS_ERASED, LOG_FIELDS({"RECONCILED_WATCH", name}),
                          "the object store %s held confidential objects on the disk and has been erased; "
                          "from now on they are kept in memory",
                          path);
        else if (r != -ENOENT)
                log_write(
                        LOG_ERR, MESSAGE_ID_SECRETS_ON_DISK, LOG_FIELDS({"RECONCILED_WATCH", name}),
                        "the object store of watch %s holds confidential objects on the disk and cannot be "
                        "erased: %s; remove %s",
                        name, strerror(-r), path ? path : "it");
}

void secrets_move(const struct supervisor *supervisor, const struct config_watch *config)
{
        _cleanup_free_ char *path = NULL;

        if (config->confidential) {
                erase_disk_store(supervisor, config->name);
                return;
        }
        path = memory_store(supervisor, config->name);
        if (path)
                (void)folder_remove(path); /* what stays costs memory, until the next boot */
}

/* ---- what former lives have left */

typedef int (*visit_name_t)(struct supervisor *supervisor, const char *name);

static int each_entry(struct supervisor *supervisor, const char *part, visit_name_t visit)
{
        struct dirent *entry;
        DIR *directory;
        int r = 0;
        _cleanup_free_ char *path = format_string("%s/%s", supervisor->secrets.folder, part);

        if (!path)
                return -ENOMEM;
        directory = opendir(path);
        while (directory && r >= 0 && (entry = readdir(directory)))
                if (entry->d_name[0] != '.')
                        r = visit(supervisor, entry->d_name);
        if (directory)
                closedir(directory);
        return r;
}

static int judge_store(struct supervisor *supervisor, const char *name)
{
        const struct config_watch *config = config_watch_find(supervisor->config, name);
        _cleanup_free_ char *path = NULL;

        if (config && config->confidential)
                return 0;
        path = memory_store(supervisor, name);
        if (path)
                (void)folder_remove(path);
        return path ? 0 : -ENOMEM;
}

static int judge_kept(struct supervisor *supervisor, const char *name)
{
        _cleanup_free_ char *path = NULL;
        int r = ledger_settling_names(supervisor->controller.ledger, name);

        if (r != 0)
                return r < 0 ? r : 0;
        path = format_string("%s/kept/%s", supervisor->secrets.folder, name);
        if (!path)
                return -ENOMEM;
        (void)unlink(path);
        return 0;
}

int secrets_clean(struct supervisor *supervisor)
{
        int r = each_entry(supervisor, "store", judge_store);

        return r < 0 ? r : each_entry(supervisor, "kept", judge_kept);
}

/* ---- the end */

/* The runtime directory is not ours to remove; and an operator that fails is started again. */
void secrets_end(struct supervisor *supervisor)
{
        bool ours = supervisor->secrets.parent &&
                    strcmp(supervisor->secrets.parent, supervisor->options->runtime_directory) != 0;

        if (ours && supervisor->secrets.folder && !supervisor->reload.restarting &&
            supervisor->exit_code == EXIT_CODE_OK && supervisor->phase > PHASE_RUNNING)
                (void)folder_remove(supervisor->secrets.folder);
        free(supervisor->secrets.parent);
        free(supervisor->secrets.folder);
}
