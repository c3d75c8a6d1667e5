/* SPDX-License-Identifier: Apache-2.0 */
#include "credential/plugin-read.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/timestamp.h"
#include "kubeconfig/secret.h"
#include "json/json.h"

void plugin_credential_done(struct plugin_credential *credential)
{
        secret_wipe(&credential->token);
        secret_wipe(&credential->client_certificate);
        secret_wipe(&credential->client_key);
        credential->expires_realtime = 0;
}

/* 0 means that there is no time, so the year 1970 becomes the first microsecond. */
static int read_time(const char *value, uint64_t *ret)
{
        int r = timestamp_parse(value, ret);

        if (r >= 0 && *ret == 0)
                *ret = 1;
        return r;
}

static int check(const struct plugin_credential *credential, struct error *error)
{
        const char *problem;

        if (!credential->token[0] && !credential->client_certificate[0])
                return error_set(error, -EINVAL, "its status holds neither token nor clientCertificateData");
        if (!credential->client_certificate[0] != !credential->client_key[0])
                return error_set(error, -EINVAL,
                                 "clientCertificateData and clientKeyData must come together");
        problem = credential->token[0] ? token_problem(credential->token) : NULL;
        if (!problem && credential->client_certificate[0])
                problem = pem_problem(credential->client_certificate);
        if (!problem && credential->client_key[0])
                problem = pem_problem(credential->client_key);
        return problem ? error_set(error, -EINVAL, "its credential %s", problem) : 0;
}

static int read_status(const cJSON *status, struct plugin_credential *credential, struct error *error)
{
        const char *expires = json_text(status, "expirationTimestamp");

        if (!cJSON_IsObject(status))
                return error_set(error, -EINVAL, "status is missing");
        if (expires[0] && read_time(expires, &credential->expires_realtime) < 0)
                return error_set(error, -EINVAL, "status.expirationTimestamp is not an RFC 3339 time");
        credential->token = strdup(json_text(status, "token"));
        credential->client_certificate = strdup(json_text(status, "clientCertificateData"));
        credential->client_key = strdup(json_text(status, "clientKeyData"));
        if (!credential->token || !credential->client_certificate || !credential->client_key)
                return error_set(error, -ENOMEM, "no memory");
        return check(credential, error);
}

static void wipe_tree(cJSON *tree)
{
        for (cJSON *item = tree; item; item = item->next) {
                if (item->valuestring)
                        explicit_bzero(item->valuestring, strlen(item->valuestring));
                wipe_tree(item->child);
        }
}

int plugin_read(const char *output, size_t size, const char *api_version, struct plugin_credential *ret,
                struct error *error)
{
        struct plugin_credential credential = {0};
        cJSON *json = cJSON_ParseWithLength(output, size);
        int r;

        if (!cJSON_IsObject(json))
                r = error_set(error, -EINVAL, "its output is not a JSON object");
        else if (strcmp(json_text(json, "kind"), "ExecCredential") != 0)
                r = error_set(error, -EINVAL, "its output is not an ExecCredential");
        else if (strcmp(json_text(json, "apiVersion"), api_version) != 0)
                r = error_set(error, -EINVAL,
                              "its output is not of the apiVersion %s, which the kubeconfig names",
                              api_version);
        else
                r = read_status(json_member(json, "status"), &credential, error);
        if (json)
                wipe_tree(json);
        cJSON_Delete(json);
        if (r < 0)
                plugin_credential_done(&credential);
        else
                *ret = credential;
        return r;
}
