/* SPDX-License-Identifier: Apache-2.0 */
/* Paths inside a file are relative to that file. */
#include "kubeconfig/kubeconfig.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "kubeconfig/kubeconfig-user.h"
#include "kubeconfig/secret.h"
#include "kubeconfig/yaml-file.h"
#include "os/folder.h"

#define FILES_MAX 32

struct loader {
        struct yaml_file file[FILES_MAX];
        size_t count;
        struct kubeconfig config;
        struct error *error;
        bool trusted;
};

/* ---- values */

static int set_text(struct loader *loader, char **place, const char *value)
{
        free(*place);
        *place = strdup(value ? value : "");
        return *place ? 0 : error_set(loader->error, -ENOMEM, "no memory");
}

static char *path_beside(const char *file, const char *path)
{
        const char *slash = strrchr(file, '/');
        if (path[0] == '/' || !slash)
                return strdup(path);
        return format_string("%.*s/%s", (int)(slash - file), file, path);
}

static int check_named(const struct loader *loader, const char *path)
{
        struct stat st;

        /* A missing file is reported when it is read. */
        return loader->trusted && stat(path, &st) == 0 ? file_check_source(path, &st, NOBODY, loader->error)
                                                       : 0;
}

/* <key>-data wins over <key>, which is a path. */
static int set_pem(struct loader *loader, struct yaml_file *file, yaml_node_t *node, const char *key,
                   char **place)
{
        _cleanup_free_ char *data_key = NULL, *path = NULL;
        const char *data, *relative, *problem;
        int r;

        data_key = format_string("%s-data", key);
        if (!data_key)
                return error_set(loader->error, -ENOMEM, "no memory");
        data = yaml_member_text(file, node, data_key);
        relative = yaml_member_text(file, node, key);
        secret_wipe(place);
        if (data) {
                r = pem_decode_base64(data, place);
                problem = r < 0 ? "is not base64 of a text" : pem_problem(*place);
                return problem ? yaml_error(file, yaml_member(file, node, data_key), data_key, "%s", problem)
                               : 0;
        }
        if (!relative)
                return set_text(loader, place, "");
        path = path_beside(file->path, relative);
        if (!path)
                return error_set(loader->error, -ENOMEM, "no memory");
        r = check_named(loader, path);
        if (r >= 0)
                r = secret_read_file(path, place, loader->error);
        problem = r < 0 ? NULL : pem_problem(*place);
        if (problem)
                r = error_set(loader->error, -EINVAL, "%s: %s", path, problem);
        if (r < 0)
                error_prefix(loader->error, "%s:%zu: %s", file->path,
                             yaml_member(file, node, key)->start_mark.line + 1, key);
        return r;
}

static bool is_one_of(const char *text, const char *const *word)
{
        while (*word && strcmp(text, *word) != 0)
                word++;
        return *word;
}

static int take_bool(struct yaml_file *file, yaml_node_t *node, const char *key, bool *ret)
{
        static const char *const yes[] = {"true", "True", "TRUE", NULL}, *const no[] = {"false", "False",
                                                                                        "FALSE", NULL};
        const char *text = yaml_member_text(file, node, key);

        if (text && !is_one_of(text, yes) && !is_one_of(text, no))
                return yaml_error(file, yaml_member(file, node, key), key,
                                  "\"%s\" is neither true nor false", text);
        *ret = text && is_one_of(text, yes);
        return 0;
}

/* ---- cluster */

static int take_server(struct loader *loader, struct yaml_file *file, yaml_node_t *node)
{
        const char *server = yaml_member_text(file, node, "server"), *host;
        yaml_node_t *place = yaml_member(file, node, "server");

        if (!server)
                return yaml_error(file, node, "cluster.server", "is missing");
        if (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0)
                return yaml_error(file, place, "cluster.server",
                                  "\"%s\" is neither an https:// nor an http:// URL", server);
        host = strstr(server, "://") + 3;
        /* The server's URL is shown to people. */
        if (strcspn(host, "@") < strcspn(host, "/"))
                return yaml_error(file, place, "cluster.server",
                                  "carries a user or password; they belong into users");
        if (strcspn(host, "/?#: \t\r\n") == 0 || host[strcspn(host, "?# \t\r\n")])
                return yaml_error(file, place, "cluster.server", "\"%s\" is not the URL of a server",
                                  server);
        return set_text(loader, &loader->config.server, server);
}

/* The text may hold a password, so it is not repeated. */
static int take_proxy(struct loader *loader, struct yaml_file *file, yaml_node_t *node)
{
        static const char *const scheme[] = {"http://", "https://", "socks5://"};
        const char *proxy = yaml_member_text(file, node, "proxy-url");
        bool known = !proxy;

        for (size_t i = 0; i < ELEMENTS(scheme) && !known; i++)
                known = strncmp(proxy, scheme[i], strlen(scheme[i])) == 0;
        if (!known)
                return yaml_error(file, yaml_member(file, node, "proxy-url"), "cluster.proxy-url",
                                  "must start with http://, https:// or socks5://");
        return set_text(loader, &loader->config.proxy_url, proxy);
}

static int take_cluster(struct loader *loader, struct yaml_file *file, yaml_node_t *node)
{
        struct kubeconfig *config = &loader->config;
        int r = take_server(loader, file, node);

        if (r >= 0)
                r = take_bool(file, node, "insecure-skip-tls-verify", &config->insecure);
        if (r >= 0)
                r = set_text(loader, &config->tls_server_name,
                             yaml_member_text(file, node, "tls-server-name"));
        if (r >= 0)
                r = take_proxy(loader, file, node);
        if (r >= 0)
                r = set_pem(loader, file, node, "certificate-authority", &config->certificate_authority);
        if (r >= 0 && config->insecure && config->certificate_authority[0])
                r = yaml_error(file, node, "cluster.insecure-skip-tls-verify",
                               "contradicts certificate-authority: the server is either checked or not");
        return r;
}

/* ---- user */

static int take_user_token(struct loader *loader, struct yaml_file *file, yaml_node_t *node)
{
        const char *token = yaml_member_text(file, node, "token"),
                   *relative = yaml_member_text(file, node, "tokenFile");
        _cleanup_free_ char *path = NULL;
        const char *problem = token ? token_problem(token) : NULL;
        int r;

        if (!relative && problem)
                return yaml_error(file, yaml_member(file, node, "token"), "user.token", "%s", problem);
        if (!relative)
                return set_text(loader, &loader->config.token, token);
        path = path_beside(file->path, relative);
        if (!path)
                return error_set(loader->error, -ENOMEM, "no memory");
        r = check_named(loader, path);
        if (r >= 0)
                r = secret_read_token(path, &loader->config.token, loader->error);
        if (r < 0)
                error_prefix(loader->error, "%s:%zu: user.tokenFile", file->path,
                             yaml_member(file, node, "tokenFile")->start_mark.line + 1);
        return r;
}

static int check_user_entry(struct loader *loader, struct yaml_file *file, yaml_node_t *node)
{
        const struct kubeconfig *config = &loader->config;

        if (config->exec.command &&
            (config->token[0] || config->username[0] || config->client_certificate[0]))
                return yaml_error(file, node, "user.exec",
                                  "is set beside another credential; keep one of them");
        if (config->token[0] && config->username[0])
                return yaml_error(file, node, "user", "has both a token and a username");
        if (config->password[0] && !config->username[0])
                return yaml_error(file, node, "user.username", "is missing beside password");
        if (config->username[0] && !config->password[0])
                return yaml_error(file, node, "user.password", "is missing beside username");
        if (config->client_certificate[0] && !config->client_key[0])
                return yaml_error(file, node, "user.client-key", "is missing beside client-certificate");
        if (config->client_key[0] && !config->client_certificate[0])
                return yaml_error(file, node, "user.client-certificate", "is missing beside client-key");
        return 0;
}

static int take_user(struct loader *loader, struct yaml_file *file, yaml_node_t *node)
{
        struct kubeconfig *config = &loader->config;
        yaml_node_t *old = yaml_member(file, node, "auth-provider");
        int r;

        if (old && !yaml_is_empty(old))
                return yaml_error(file, old, "user.auth-provider",
                                  "was removed from Kubernetes; its successor is exec: run the provider's "
                                  "credential plugin");
        r = take_user_token(loader, file, node);
        if (r >= 0)
                r = set_text(loader, &config->username, yaml_member_text(file, node, "username"));
        if (r >= 0)
                r = set_text(loader, &config->password, yaml_member_text(file, node, "password"));
        if (r >= 0)
                r = set_pem(loader, file, node, "client-certificate", &config->client_certificate);
        if (r >= 0)
                r = set_pem(loader, file, node, "client-key", &config->client_key);
        if (r >= 0)
                r = user_take_impersonation(file, node, config);
        if (r >= 0)
                r = user_take_exec(file, node, config);
        return r < 0 ? r : check_user_entry(loader, file, node);
}

/* ---- the service account of the pod: the environment names the server, a folder holds token and CA */

#define FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

typedef int (*read_t)(const char *path, char **ret, struct error *error);

static int read_from(const char *folder, const char *name, read_t reader, char **ret, struct error *error)
{
        _cleanup_free_ char *path = format_string("%s/%s", folder, name);

        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        return reader(path, ret, error);
}

static int read_checked_pem(const char *path, char **ret, struct error *error)
{
        int r = secret_read_file(path, ret, error);
        const char *problem = r < 0 ? NULL : pem_problem(*ret);

        return problem ? error_set(error, -EINVAL, "%s: %s", path, problem) : r;
}

static char *server_url(const char *host, const char *port)
{
        bool is_ipv6 = strchr(host, ':') && host[0] != '[';
        return format_string("https://%s%s%s:%s", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

/* -ENOENT: this is no pod; -EINVAL or the errno of a file, with its path in the error. */
static int kubeconfig_in_cluster(struct kubeconfig *ret, struct error *error)
{
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        const char *folder = getenv("RECONCILED_SERVICE_ACCOUNT_FOLDER");
        struct kubeconfig config = {0};
        int r;

        if (!host || !host[0])
                return -ENOENT;
        if (!port || !port[0])
                return error_set(error, -EINVAL,
                                 "KUBERNETES_SERVICE_HOST is set, KUBERNETES_SERVICE_PORT is not");
        if (!folder)
                folder = FOLDER;
        r = read_from(folder, "token", secret_read_token, &config.token, error);
        if (r >= 0)
                r = read_from(folder, "ca.crt", read_checked_pem, &config.certificate_authority, error);
        if (r >= 0 && read_from(folder, "namespace", secret_read_token, &config.default_namespace, NULL) < 0)
                config.default_namespace = strdup("default");
        config.server = server_url(host, port);
        config.identity = format_string("the pod's service account (%s/token)", folder);
        config.tls_server_name = strdup("");
        config.client_certificate = strdup("");
        config.client_key = strdup("");
        config.username = strdup("");
        config.password = strdup("");
        config.proxy_url = strdup("");
        config.context = strdup("");
        if (r >= 0 &&
            (!config.server || !config.identity || !config.tls_server_name || !config.client_certificate ||
             !config.client_key || !config.username || !config.password || !config.proxy_url ||
             !config.context || !config.default_namespace))
                r = error_set(error, -ENOMEM, "no memory");
        if (r < 0) {
                kubeconfig_done(&config);
                return r;
        }
        *ret = config;
        return 0;
}

/* ---- files */

static yaml_node_t *find_named(struct loader *loader, const char *list, const char *field, const char *name,
                               struct yaml_file **ret_file)
{
        for (size_t i = 0; i < loader->count; i++) {
                yaml_node_t *node = yaml_named(&loader->file[i], list, name, field);

                if (node) {
                        *ret_file = &loader->file[i];
                        return node;
                }
        }
        return NULL;
}

static const char *first_scalar(struct loader *loader, const char *key)
{
        for (size_t i = 0; i < loader->count; i++) {
                const char *text = yaml_member_text(&loader->file[i], yaml_root(&loader->file[i]), key);

                if (text)
                        return text;
        }
        return NULL;
}

static int describe_identity(struct loader *loader, const struct yaml_file *file, const char *context,
                             const char *user)
{
        const struct kubeconfig *config = &loader->config;
        const char *how = config->exec.command            ? "exec plugin"
                          : config->token[0]              ? "token"
                          : config->client_certificate[0] ? "client certificate"
                          : config->username[0]           ? "password"
                                                          : "no credential";

        const char *as = config->header.count > 0 ? config->header.pair[0].value : NULL;

        loader->config.identity = format_string("user %s (%s%s%s)%s%s, context %s of %s", user, how,
                                                config->exec.command ? " " : "",
                                                config->exec.command ? config->exec.command : "",
                                                as ? " as " : "", as ? as : "", context, file->path);
        if (!loader->config.identity)
                return error_set(loader->error, -ENOMEM, "no memory");
        return 0;
}

static int take_context(struct loader *loader, const char *name)
{
        struct yaml_file *file = &loader->file[0], *cluster_file, *user_file;
        yaml_node_t *context, *cluster, *user;
        const char *cluster_name, *user_name;
        int r;

        if (!name)
                return error_set(loader->error, -EINVAL,
                                 "%s:1: current-context: is missing, and no context is "
                                 "configured (cluster.context)",
                                 file->path);
        context = find_named(loader, "contexts", "context", name, &file);
        if (!context)
                return error_set(loader->error, -EINVAL, "%s:1: contexts: has no context \"%s\"", file->path,
                                 name);
        cluster_name = yaml_member_text(file, context, "cluster");
        user_name = yaml_member_text(file, context, "user");
        if (!cluster_name)
                return yaml_error(file, context, "context.cluster", "is missing");
        cluster = find_named(loader, "clusters", "cluster", cluster_name, &cluster_file);
        if (!cluster)
                return yaml_error(file, context, "context.cluster", "there is no cluster \"%s\"",
                                  cluster_name);
        r = take_cluster(loader, cluster_file, cluster);
        if (r >= 0)
                r = cluster_take_exec_config(cluster_file, cluster, &loader->config);
        if (r < 0)
                return r;
        user = user_name ? find_named(loader, "users", "user", user_name, &user_file) : NULL;
        if (user_name && !user)
                return yaml_error(file, context, "context.user", "there is no user \"%s\"", user_name);
        r = take_user(loader, user ? user_file : file, user);
        if (r >= 0)
                r = set_text(loader, &loader->config.default_namespace,
                             yaml_member_text(file, context, "namespace"));
        if (r >= 0)
                r = set_text(loader, &loader->config.context, name);
        return r < 0 ? r : describe_identity(loader, file, name, user_name ? user_name : "(none)");
}

static int load_kubeconfig_file(struct loader *loader, const char *path, bool must_exist)
{
        struct error error = ERROR_NONE;
        int r;

        if (loader->count == FILES_MAX)
                return error_set(loader->error, -EINVAL, "KUBECONFIG names more than %d files", FILES_MAX);
        r = check_named(loader, path);
        if (r < 0)
                return r;
        r = yaml_file_load(path, &loader->file[loader->count], &error);
        if (r == -ENOENT && !must_exist) {
                error_done(&error);
                return 0;
        }
        if (r < 0) {
                error_set(loader->error, r, "%s", error_message(&error));
                error_done(&error);
                return r;
        }
        loader->file[loader->count].error = loader->error;
        if (yaml_root(&loader->file[loader->count]))
                loader->count++;
        else
                yaml_file_done(&loader->file[loader->count]);
        return 0;
}

static int add_list(struct loader *loader, const char *list)
{
        while (*list) {
                size_t length = strcspn(list, ":");
                _cleanup_free_ char *path = strndup(list, length);
                int r;

                if (!path)
                        return error_set(loader->error, -ENOMEM, "no memory");
                r = path[0] ? load_kubeconfig_file(loader, path, false) : 0;
                if (r < 0)
                        return r;
                list += length + (list[length] == ':');
        }
        return 0;
}

static int find_files(struct loader *loader, const char *path)
{
        const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
        _cleanup_free_ char *standard = NULL;

        if (path && path[0])
                return load_kubeconfig_file(loader, path, true);
        if (list && list[0])
                return add_list(loader, list);
        standard = home ? format_string("%s/.kube/config", home) : NULL;
        return standard ? load_kubeconfig_file(loader, standard, false) : 0;
}

/* The file that $KUBECONFIG names is missing. Under our unit, the source of the credential is missing: systemd
 * does not report that, since a credential without a path is optional. */
static int nothing_found(struct error *error)
{
        static const char credentials[] = "/run/credentials/reconciled";
        const char *list = getenv("KUBECONFIG"), *name, *end;
        _cleanup_free_ char *source = NULL;

        if (!list || !list[0])
                return error_set(
                        error, -ENOENT,
                        "no kubeconfig was found (cluster.kubeconfig, $KUBECONFIG, ~/.kube/config), and "
                        "this is not a pod (KUBERNETES_SERVICE_HOST is not set)");
        name = list + sizeof(credentials) - 1;
        end = strstr(list, ".service/");
        if (strncmp(list, credentials, sizeof(credentials) - 1) != 0 || !end || end < name)
                return error_set(error, -ENOENT,
                                 "no kubeconfig was found: $KUBECONFIG is %s, which does not exist; "
                                 "cluster.kubeconfig "
                                 "can name another",
                                 list);
        /* reconciled@NAME takes reconciled.NAME.kubeconfig. */
        source = format_string("/etc/credstore/reconciled%s%.*s.kubeconfig", *name == '@' ? "." : "",
                               (int)(end - name - (*name == '@')), name + (*name == '@'));
        if (!source)
                return error_set(error, -ENOENT, "no memory");
        return error_set(
                error, -ENOENT,
                "no kubeconfig was found: %s is missing, or another file that LoadCredential= of the unit "
                "names (%s does not exist); cluster.kubeconfig can name another",
                source, list);
}

int kubeconfig_load(const struct kubeconfig_options *options, struct kubeconfig *ret, struct error *error)
{
        struct loader loader = {.error = error, .trusted = options->trusted};
        const char *context = options->context && options->context[0] ? options->context : NULL;
        bool is_explicit = options->path && options->path[0];
        int r = find_files(&loader, options->path);

        if (r >= 0 && is_explicit && loader.count == 0) {
                r = error_set(error, -EINVAL, "%s: is empty", options->path);
        } else if (r >= 0 && loader.count > 0) {
                r = take_context(&loader, context ? context : first_scalar(&loader, "current-context"));
        } else if (r >= 0) {
                r = kubeconfig_in_cluster(&loader.config, error);
                if (r == -ENOENT)
                        nothing_found(error);
        }
        for (size_t i = 0; i < loader.count; i++)
                yaml_file_done(&loader.file[i]);
        if (r < 0) {
                kubeconfig_done(&loader.config);
                return r;
        }
        *ret = loader.config;
        return 0;
}
