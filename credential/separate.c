/* SPDX-License-Identifier: Apache-2.0 */
#include "credential/separate.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "kubeconfig/kubeconfig.h"
#include "kubeconfig/secret.h"
#include "json/json.h"

static bool same_and_set(const char *a, const char *b)
{
        return a[0] && strcmp(a, b) == 0;
}

static bool has_none(const struct kubeconfig *config)
{
        return !config->token[0] && !config->client_key[0] && !config->username[0] &&
               !config->exec.command && config->header.count == 0;
}

/* The middle part of a JSON web token; NULL if the token is none. */
static cJSON *read_claims(const char *token)
{
        const char *begin = strchr(token, '.');
        size_t length = begin ? strcspn(++begin, ".") : 0;
        _cleanup_free_ char *encoded = NULL;
        char *text = NULL;
        cJSON *claims = NULL;

        if (length == 0 || begin[length] != '.')
                return NULL;
        encoded = calloc(1, length + 4);
        if (!encoded)
                return NULL;
        for (size_t i = 0; i < length; i++)
                encoded[i] = begin[i] == '-' ? '+' : begin[i] == '_' ? '/' : begin[i];
        for (; length % 4 != 0; length++)
                encoded[length] = '=';
        if (pem_decode_base64(encoded, &text) >= 0)
                claims = cJSON_Parse(text);
        secret_wipe(&text);
        return claims;
}

/* Tokens of an account change, every hour in a pod: whose they are does not. An account of that name may be there in another
 * cluster as well. */
static bool same_account(const struct kubeconfig *own, const struct kubeconfig *other)
{
        _cleanup_json_ cJSON *ours = read_claims(own->token), *theirs = read_claims(other->token);

        return same_and_set(json_text(ours, "sub"), json_text(theirs, "sub")) &&
               (same_and_set(json_text(ours, "iss"), json_text(theirs, "iss")) ||
                same_and_set(own->server, other->server));
}

/* What both have, for people: "the same token"; NULL: nothing. */
static const char *shared_access(const struct kubeconfig *own, const struct kubeconfig *other)
{
        if (same_and_set(own->token, other->token))
                return "the same token";
        if (same_and_set(own->client_key, other->client_key))
                return "the same client key";
        if (same_account(own, other))
                return "another token of the same account";
        if (own->exec.command && other->exec.command && kubeconfig_exec_equal(&own->exec, &other->exec))
                return "the same plugin, asked alike";
        if (same_and_set(own->username, other->username) && strcmp(own->password, other->password) == 0)
                return "the same user name and password";
        if (has_none(own) && has_none(other) && strcmp(own->server, other->server) == 0)
                return "the same server, and no credential in either";
        return NULL;
}

static int refuse_shared(const char *path, const char *shared, struct error *error)
{
        return error_set(error, -EINVAL,
                         "%s is the operator's own access to the API server (%s): a handler must "
                         "have another account's; name a kubeconfig of an account of its own, or "
                         "a serviceAccount",
                         path, shared);
}

int separate_check(const struct kubeconfig *own, const struct kubeconfig *other, const char *path,
                   struct error *error)
{
        const char *shared = shared_access(own, other);

        return shared ? refuse_shared(path, shared, error) : 0;
}

/* ---- any file */

/* Whether both are the same, without the white space at their ends. */
static bool is_same_bytes(const char *bytes, size_t size, const char *text)
{
        size_t length = strlen(text);

        while (length > 0 && strchr(" \n", text[length - 1]))
                length--;
        while (size > 0 && strchr(" \n", bytes[size - 1]))
                size--;
        return length > 0 && length == size && memcmp(bytes, text, size) == 0;
}

/* A file with nothing but a token. */
static bool holds_account(const struct kubeconfig *own, const char *bytes, size_t size)
{
        struct kubeconfig other = {.server = own->server, .token = strndup(bytes, size)};
        bool same = other.token && same_account(own, &other);

        secret_wipe(&other.token);
        return same;
}

int separate_check_file(const struct kubeconfig *own, const char *path, const char *bytes, size_t size,
                        struct error *error)
{
        struct kubeconfig other;
        int r;

        if (is_same_bytes(bytes, size, own->token) || is_same_bytes(bytes, size, own->client_key) ||
            holds_account(own, bytes, size))
                return refuse_shared(path, "its token or key", error);
        if (kubeconfig_load(&(struct kubeconfig_options){.path = path}, &other, NULL) < 0)
                return 0; /* it is something else */
        r = separate_check(own, &other, path, error);
        kubeconfig_done(&other);
        return r;
}

/* ---- accounts */

int separate_check_account(const struct kubeconfig *own, const char *namespace_name, const char *account,
                           struct error *error)
{
        const char *place = namespace_name[0]           ? namespace_name
                            : own->default_namespace[0] ? own->default_namespace
                                                        : "default";
        _cleanup_json_ cJSON *claims = read_claims(own->token);
        char wanted[640];

        snprintf(wanted, sizeof(wanted), "system:serviceaccount:%s:%s", place, account);
        if (strcmp(json_text(claims, "sub"), wanted) != 0)
                return 0;
        return error_set(error, -EINVAL,
                         "%s/%s is the operator's own service account: a handler must have another one; "
                         "make an account for it (reconciledctl rbac prints the manifests)",
                         place, account);
}
