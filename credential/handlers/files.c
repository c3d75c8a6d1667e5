/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each watch has a folder, which the supervisor has made for its handler's user to read. A file is replaced
 * as a whole, so a handler that reads it again sees the old one or the new one.
 */
#include "credential/handlers/files.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "credential/separate.h"
#include "kubeconfig/kubeconfig.h"
#include "os/acl.h"
#include "os/file.h"
#include "os/folder.h"

/* ---- a file of a handler */

static bool file_has_content(const char *path, const char *bytes, size_t size)
{
        size_t old_size;
        char *old;
        bool same;

        if (file_read(path, HANDLER_FILE_MAX, &old, &old_size) < 0)
                return false;
        same = old_size == size && memcmp(old, bytes, size) == 0;
        explicit_bzero(old, old_size);
        free(old);
        return same;
}

static int allow_user(int fd, const void *userdata)
{
        const struct access *access = userdata;
        const uid_t user = (uid_t)access->config->user;

        return access->config->separate ? acl_allow(fd, &user, 1, ACL_READ) : 0;
}

static int write_access_file(const struct access *access, const char *name, const char *bytes, size_t size,
                             struct error *error)
{
        const struct file_rules rules = {.mode = 0400, .prepare = allow_user, .userdata = access};
        _cleanup_free_ char *path = NULL, *new = NULL;
        int r;

        path = format_string("%s/%s", access->config->folder, name);
        new = format_string("%s/.%s.new", access->config->folder, name);
        if (!path || !new)
                return error_set(error, -ENOMEM, "no memory");
        if (file_has_content(path, bytes, size))
                return 0;
        r = file_replace(path, new, bytes, size, &rules);
        return r < 0 ? error_set(error, r, "%s cannot be written: %s", path, strerror(-r)) : 0;
}

static int read_source(const struct access *access, const struct record_pair *credential, char **ret,
                       size_t *ret_size, struct error *error)
{
        _cleanup_close_ int fd = file_open(credential->value);
        struct stat st;
        int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0, refused = 0;

        if (r >= 0 && access->config->separate)
                refused = file_check_source(credential->value, &st, (uid_t)access->config->user, error);
        if (refused < 0) {
                (void)error_prefix(error, "handler.credentials.%s", credential->name);
                return refused;
        }
        if (r >= 0)
                r = file_read_from(fd, HANDLER_FILE_MAX, ret, ret_size);
        if (r < 0)
                return error_set(error, r, "handler.credentials.%s: %s cannot be read: %s", credential->name,
                                 credential->value,
                                 r == -EINVAL  ? "it is not a regular file"
                                 : r == -EFBIG ? "it is larger than 1 MiB"
                                               : strerror(-r));
        return 0;
}

static int copy_file(const struct access *access, const struct record_pair *credential, struct error *error)
{
        size_t size = 0;
        char *bytes = NULL;
        int r = read_source(access, credential, &bytes, &size, error);

        if (r < 0)
                return r;
        assert(bytes);
        r = separate_check_file(&access->credential->source, credential->value, bytes, size, error);
        if (r < 0)
                (void)error_prefix(error, "handler.credentials.%s", credential->name);
        else
                r = write_access_file(access, credential->name, bytes, size, error);
        explicit_bzero(bytes, size);
        free(bytes);
        return r;
}

/* ---- a kubeconfig */

static void add_yaml_text(struct text *out, const char *name, const char *value)
{
        if (!value[0])
                return;
        text_printf(out, "%s\"%s\":", out->data[out->size - 1] == '{' ? "" : ",", name);
        text_json_string(out, value);
}

static void add_data(struct text *out, const char *name, const char *value)
{
        if (!value[0])
                return;
        text_printf(out, "%s\"%s\":\"", out->data[out->size - 1] == '{' ? "" : ",", name);
        text_append_base64(out, value);
        text_append_string(out, "\"");
}

static const char *header_value(const struct kubeconfig *config, const char *name)
{
        for (size_t i = 0; i < config->header.count; i++)
                if (strcmp(config->header.pair[i].name, name) == 0)
                        return config->header.pair[i].value;
        return "";
}

static void write_cluster(struct text *out, const struct kubeconfig *config)
{
        text_append_string(out, "\"clusters\":[{\"name\":\"cluster\",\"cluster\":{");
        add_yaml_text(out, "server", config->server);
        add_data(out, "certificate-authority-data", config->certificate_authority);
        add_yaml_text(out, "tls-server-name", config->tls_server_name);
        add_yaml_text(out, "proxy-url", config->proxy_url);
        if (config->insecure)
                text_append_string(out, ",\"insecure-skip-tls-verify\":true");
        text_append_string(out, "}}]");
}

/* JSON is YAML, and all that libraries need. The token is a file beside it: they read that again. */
static int write_kubeconfig_file(const struct access *access, const struct kubeconfig *config, bool account,
                                 const char *namespace_name, struct error *error)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;
        int r;
        _cleanup_free_ char *token_file = format_string("%s/token", access->config->folder);

        text_append_string(&out, "{\"apiVersion\":\"v1\",\"kind\":\"Config\",");
        write_cluster(&out, config);
        text_append_string(&out, ",\"users\":[{\"name\":\"handler\",\"user\":{");
        if (token_file && (account || config->token[0]))
                add_yaml_text(&out, "tokenFile", token_file);
        if (!account) {
                add_data(&out, "client-certificate-data", config->client_certificate);
                add_data(&out, "client-key-data", config->client_key);
                add_yaml_text(&out, "username", config->username);
                add_yaml_text(&out, "password", config->password);
                add_yaml_text(&out, "as", header_value(config, "Impersonate-User"));
        }
        text_append_string(&out, "}}],\"contexts\":[{\"name\":\"handler\",\"context\":{\"cluster\":"
                                 "\"cluster\",\"user\":\"handler\"");
        add_yaml_text(&out, "namespace", namespace_name);
        text_append_string(&out, "}}],\"current-context\":\"handler\"}\n");
        r = out.failed || !token_file ? error_set(error, -ENOMEM, "no memory")
                                      : write_access_file(access, "kubeconfig", out.data, out.size, error);
        if (out.data)
                explicit_bzero(out.data, out.size);
        return r;
}

void handler_files_rewrite(const struct access *access)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = write_kubeconfig_file(access, &access->credential->current, true, access->namespace_name,
                                      &error);

        if (r < 0)
                log_warning("the kubeconfig of the handler of watch %s stays as it was: %s",
                            access->config->watch, error_message(&error));
}

int handler_files_write_kubeconfig(const struct access *access, const struct kubeconfig *config,
                                   const char *token, struct error *error)
{
        const char *brought = token ? token : config->token;
        int r = 0;

        if (brought[0])
                r = write_access_file(access, "token", brought, strlen(brought), error);
        if (r >= 0)
                r = write_kubeconfig_file(access, config, token != NULL,
                                          token ? access->namespace_name : config->default_namespace, error);
        return r;
}

static int check_copied(const struct kubeconfig *config, const char *path, struct error *error)
{
        if (config->exec.command)
                return error_set(error, -EINVAL,
                                 "%s asks a plugin (exec), which handlers run "
                                 "themselves: name the file in handler.credentials, and KUBECONFIG in "
                                 "handler.environment",
                                 path);
        if (config->header.count > (header_value(config, "Impersonate-User")[0] ? 1U : 0U))
                return error_set(error, -EINVAL,
                                 "%s impersonates with more than a user's "
                                 "name (as-uid, as-groups, as-user-extra), which is not handed on",
                                 path);
        return 0;
}

int handler_files_load_kubeconfig(const char *path, bool separate, struct kubeconfig *ret,
                                  struct error *error)
{
        struct kubeconfig config;
        int r = kubeconfig_load(&(struct kubeconfig_options){.path = path, .trusted = separate}, &config,
                                error);

        if (r < 0)
                return r;
        r = check_copied(&config, path, error);
        if (r < 0)
                kubeconfig_done(&config);
        else
                *ret = config;
        return r;
}

static int copy_kubeconfig(const struct access *access, struct error *error)
{
        struct kubeconfig config;
        int r = handler_files_load_kubeconfig(access->config->kubeconfig, access->config->separate, &config,
                                              error);

        if (r < 0)
                return r;
        r = separate_check(&access->credential->source, &config, access->config->kubeconfig, error);
        if (r >= 0)
                r = handler_files_write_kubeconfig(access, &config, NULL, error);
        kubeconfig_done(&config);
        return r;
}

/* ---- all of a handler */

int handler_files_copy(const struct access *access, bool *ret_passing, struct error *error)
{
        const struct record_access *config = access->config;
        int first = 0;

        *ret_passing = true;
        for (size_t i = 0; i <= config->credential_count; i++) {
                _cleanup_error_ struct error here = ERROR_NONE;
                bool passing;
                int r = 0;

                if (i < config->credential_count)
                        r = copy_file(access, &config->credential[i], &here);
                else if (config->kubeconfig[0])
                        r = copy_kubeconfig(access, &here);
                if (r >= 0)
                        continue;
                passing = r == -EAGAIN ||
                          (i < config->credential_count && file_is_of_others(config->credential[i].value));
                if (first < 0 && (passing || !*ret_passing))
                        continue;
                error_done(error);
                first = error_set(error, r, "%s", error_message(&here));
                *ret_passing = *ret_passing && passing;
        }
        return first;
}

bool access_is_usable(const struct access *access)
{
        return access->files_there && access_has_token(access);
}

bool access_has_token(const struct access *access)
{
        return !access->config->account[0] ||
               (access->expires_boottime > 0 && clock_boottime_usec() < access->expires_boottime);
}

void access_tell(struct access *access)
{
        const char *reason = access->account_trouble ? access->account_trouble
                             : access->files_trouble ? access->files_trouble
                                                     : "";

        (void)child_send(access->credential->child, MESSAGE_ACCESS,
                         &(struct message_access){
                                 .watch = access->config->watch,
                                 .usable = access_is_usable(access),
                                 .reason = reason,
                                 .exit_code = (uint64_t)access->exit_code,
                                 .failures = access->failures,
                                 .since_boottime = access_has_token(access) ? 0 : access->failing_boottime,
                                 .expires_realtime = access->expires_realtime,
                         });
}
