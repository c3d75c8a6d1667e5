/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The content of a kubeconfig as a value: the address of the API server, and the credential for it. */
#include <stdbool.h>
#include <stddef.h>

#include "ipc/message.h"

struct kubeconfig_pair {
        char *name, *value;
};

struct kubeconfig_pairs {
        struct kubeconfig_pair *pair;
        size_t count;
};

/* How an exec plugin is run (client.authentication.k8s.io); command NULL if there is none. */
struct kubeconfig_exec {
        char *command;     /* as written; a path with a '/' is relative to its kubeconfig */
        char **argument;   /* NULL-terminated, without the command */
        char *api_version; /* the version of ExecCredential */
        char *install_hint;
        char *cluster_config; /* JSON of the cluster's extension, or NULL */
        struct kubeconfig_pairs environment;
        bool provide_cluster_info;
};

/* All strings are owned and never NULL after a successful load ("" = not used). PEM contents, not paths. */
struct kubeconfig {
        char *server, *tls_server_name, *certificate_authority, *client_certificate, *client_key, *token,
                *username, *password, *proxy_url, *default_namespace;
        char *context;  /* the one that was chosen; "" in a pod */
        char *identity; /* for people; no secret in it */
        bool insecure;
        struct kubeconfig_pairs header; /* Impersonate-...: of every request */
        struct kubeconfig_exec exec;
};

bool kubeconfig_exec_equal(const struct kubeconfig_exec *a, const struct kubeconfig_exec *b);
bool kubeconfig_equal(const struct kubeconfig *a, const struct kubeconfig *b);
void kubeconfig_done(struct kubeconfig *config); /* wipes */

/* A copy; zeroed on -ENOMEM. */
int kubeconfig_copy(const struct kubeconfig *from, struct kubeconfig *ret);
/* Appends copies of both. 0 or -ENOMEM. */
int kubeconfig_pairs_add(struct kubeconfig_pairs *pairs, const char *name, const char *value);

/* The content of a kubeconfig as a message. The texts are borrowed from `config`; `ret->header` is the
 * caller's to free. 0 or -ENOMEM (then as well). */
int credential_message(const struct kubeconfig *config, uint64_t serial, struct message_credential *ret);
