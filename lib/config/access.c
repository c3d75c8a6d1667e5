/* SPDX-License-Identifier: Apache-2.0 */
/* handler.credentials and handler.kubernetes: what a handler is given for itself alone. */
#include "config/access.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "os/acl.h"
#include "os/folder.h"

bool config_has_access(const struct config_watch *watch)
{
        return watch->handler.credentials_count > 0 || watch->handler.kubernetes;
}

bool config_gives_access(const struct config *config)
{
        for (size_t i = 0; i < config->watch_count; i++)
                if (config_has_access(&config->watch[i]))
                        return true;
        return false;
}

/* ---- the configuration of the credential process */

static bool is_separate(const struct config_watch *watch)
{
        return watch->handler.user && watch->handler.uid != geteuid();
}

void config_access_done(struct record_access *access, size_t count)
{
        for (size_t i = 0; access && i < count; i++) {
                free((void *)(uintptr_t)access[i].folder);
                free((void *)(uintptr_t)access[i].key);
                free((void *)(uintptr_t)access[i].credential);
        }
        free(access);
}

static int fill(const struct config_watch *watch, const char *access_folder, struct record_access *ret)
{
        const struct config_handler *handler = &watch->handler;
        struct record_pair *credential = calloc(handler->credentials_count + 1, sizeof(*credential));
        char *folder, *key;

        folder = format_string("%s/%s", access_folder, watch->name);
        key = format_string("%s:%u: watch %s", watch->file, watch->line, watch->name);
        for (size_t i = 0; credential && i < handler->credentials_count; i++)
                credential[i] =
                        (struct record_pair){handler->credentials[i].name, handler->credentials[i].value};
        *ret = (struct record_access){
                .watch = watch->name,
                .key = key,
                .folder = folder,
                .separate = is_separate(watch),
                .user = handler->uid,
                .credential = credential,
                .credential_count = handler->credentials_count,
                .kubeconfig = handler->kubernetes_file,
                .account = handler->kubernetes_account,
                .account_namespace = handler->kubernetes_namespace,
                .deadline_usec = watch->deadline_usec,
        };
        return credential && folder && key ? 0 : -ENOMEM;
}

int config_access(const struct config *config, const char *access_folder, struct record_access **ret,
                  size_t *ret_count)
{
        struct record_access *access = calloc(config->watch_count + 1, sizeof(*access));
        size_t count = 0;
        int r = access ? 0 : -ENOMEM;

        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                if (config_has_access(&config->watch[i]))
                        r = fill(&config->watch[i], access_folder, &access[count++]);
        if (r < 0) {
                config_access_done(access, count);
                return r;
        }
        *ret = access;
        *ret_count = count;
        return 0;
}

/* ---- the folders */

static int allow(const char *path, const uid_t *user, size_t count, unsigned rights, struct error *error)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : acl_allow(fd, user, count, rights);

        if (r == -EOPNOTSUPP)
                return error_set(
                        error, r,
                        "%s: the file system has no POSIX ACLs, so handlers that run as another user "
                        "(handler.user) cannot be given access to their own credentials only; choose a "
                        "runtime directory on another file system, such as tmpfs",
                        path);
        return r < 0 ? error_set(error, r, "%s: %s", path, strerror(-r)) : 0;
}

/* If everybody may search the folder already, nothing has to be allowed. */
static int allow_search(const char *path, const uid_t *user, size_t count, struct error *error)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        return st.st_mode & S_IXOTH ? 0 : allow(path, user, count, ACL_SEARCH, error);
}

static int make(const char *path, struct error *error)
{
        return mkdir(path, 0700) < 0 ? error_set(error, -errno, "%s: %s", path, strerror(errno)) : 0;
}

static size_t collect_users(const struct config *config, uid_t *user)
{
        size_t count = 0;

        for (size_t i = 0; i < config->watch_count; i++) {
                bool known = !config_has_access(&config->watch[i]) || !is_separate(&config->watch[i]);

                for (size_t k = 0; k < count && !known; k++)
                        known = user[k] == config->watch[i].handler.uid;
                if (!known)
                        user[count++] = config->watch[i].handler.uid;
        }
        return count;
}

static int make_one(const struct config_watch *watch, const char *access_folder, struct error *error)
{
        const uid_t user = watch->handler.uid;
        int r;
        _cleanup_free_ char *path = format_string("%s/%s", access_folder, watch->name);

        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        r = make(path, error);
        return r < 0 || !is_separate(watch) ? r : allow(path, &user, 1, ACL_READ | ACL_SEARCH, error);
}

int config_access_folders(const struct config *config, const char *access_folder, const char *const *above,
                          struct error *error)
{
        _cleanup_free_ uid_t *user = calloc(config->watch_count + 1, sizeof(*user));
        size_t count = user ? collect_users(config, user) : 0;
        int r = user ? folder_remove(access_folder) : -ENOMEM;

        if (r < 0 && r != -ENOENT)
                return error_set(error, r, "%s: %s", access_folder, strerror(-r));
        if (!config_gives_access(config))
                return 0;
        r = make(access_folder, error);
        if (r >= 0 && count > 0)
                r = allow(access_folder, user, count, ACL_SEARCH, error);
        for (; *above && r >= 0 && count > 0; above++)
                r = allow_search(*above, user, count, error);
        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                if (config_has_access(&config->watch[i]))
                        r = make_one(&config->watch[i], access_folder, error);
        return r;
}
