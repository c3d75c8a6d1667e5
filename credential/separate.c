/* SPDX-License-Identifier: Apache-2.0 */
#include "credential/separate.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "kubeconfig/secret.h"
#include "json/json.h"

static bool both(const char *a, const char *b)
{
        return a[0] && strcmp(a, b) == 0;
}

static bool has_none(const struct kubeconfig *config)
{
        return !config->token[0] && !config->client_key[0] && !config->username[0] &&
               !config->exec.command && config->header.count == 0;
}

/* What both have, for people: "the same token"; NULL: nothing. */
static const char *shared_access(const struct kubeconfig *own, const struct kubeconfig *other)
{
        if (both(own->token, other->token))
                return "the same token";
        if (both(own->client_key, other->client_key))
                return "the same client key";
        if (both(own->username, other->username) && strcmp(own->password, other->password) == 0)
                return "the same user name and password";
        if (has_none(own) && has_none(other) && strcmp(own->server, other->server) == 0)
                return "the same server, and no credential in either";
        return NULL;
}

int separate_check(const struct kubeconfig *own, const struct kubeconfig *other, const char *path,
                   struct error *error)
{
        const char *shared = shared_access(own, other);

        return shared ? error_set(error, -EINVAL,
                                  "%s is the operator's own access to the API server (%s): a handler must "
                                  "have another account's; name a kubeconfig of an account of its own, or "
                                  "a serviceAccount",
                                  path, shared)
                      : 0;
}

/* ---- accounts */

/* The middle part of a JSON web token. NULL: it is none. */
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
