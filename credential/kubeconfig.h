/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the API server is and how to convince it: from kubeconfig files or from the pod's service account.
 * Source of the rules: kube-api.md section 3 (client-go's clientcmd). A static library (credential_dep).
 *
 * Search: the explicit path (must exist, is not merged); else $KUBECONFIG (a list: missing and empty files
 * are skipped, of maps the first file that has an entry wins, of scalars the first that sets it); else
 * ~/.kube/config; else, when KUBERNETES_SERVICE_HOST is set, the service account's folder.
 * RECONCILED_SERVICE_ACCOUNT_FOLDER replaces that folder (for tests outside a pod).
 */
#include <stdbool.h>

#include "base/error.h"

struct kubeconfig_options {
        const char *path;    /* "" or NULL: search */
        const char *context; /* "" or NULL: current-context */
};

struct kubeconfig_pair {
        char *name, *value;
};

struct kubeconfig_pairs {
        struct kubeconfig_pair *pair;
        size_t count;
};

/* How an exec plugin is run (client.authentication.k8s.io); command NULL: there is none. */
struct kubeconfig_exec {
        char *command;     /* as written; a path with a '/' is relative to its kubeconfig */
        char **argument;   /* NULL-terminated, without the command */
        char *api_version; /* of ExecCredential */
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

/* 0; -EINVAL: wrong or incomplete, with file:line: key in the error; -ENOENT: nothing found anywhere; or the
 * errno of a file that cannot be read. */
int kubeconfig_load(const struct kubeconfig_options *options, struct kubeconfig *ret, struct error *error);
bool kubeconfig_equal(const struct kubeconfig *a, const struct kubeconfig *b);
void kubeconfig_done(struct kubeconfig *config); /* wipes */
int kubeconfig_pairs_add(struct kubeconfig_pairs *pairs, const char *name, const char *value);
/* A copy; zeroed on -ENOMEM. */
int kubeconfig_copy(const struct kubeconfig *from, struct kubeconfig *ret);

/* Reads a small file whole (at most 1 MiB; no NUL in it). The caller owns and wipes the result. */
int credential_read_file(const char *path, char **ret, struct error *error);
/* Reads a token, without the white space around it. An empty one is an error: somebody is just writing it.
 */
int credential_read_token(const char *path, char **ret, struct error *error);
void credential_wipe_string(char **secret);
int kubeconfig_in_cluster(struct kubeconfig *ret, struct error *error);
