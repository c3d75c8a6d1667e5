/* SPDX-License-Identifier: Apache-2.0 */
/* The service account of the pod: the environment names the server, a folder holds token and CA. */
#include "kubeconfig/in-cluster.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "kubeconfig/pem.h"
#include "kubeconfig/secret.h"

#define FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

typedef int (*read_t)(const char *path, char **ret, struct error *error);

static int read_from(const char *folder, const char *name, read_t reader, char **ret, struct error *error)
{
        _cleanup_free_ char *path = format_string("%s/%s", folder, name);

        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        return reader(path, ret, error);
}

static int read_pem(const char *path, char **ret, struct error *error)
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

int kubeconfig_in_cluster(struct kubeconfig *ret, struct error *error)
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
                r = read_from(folder, "ca.crt", read_pem, &config.certificate_authority, error);
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
