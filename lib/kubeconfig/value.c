/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig's content as a value: compared, copied, wiped. */
#include "kubeconfig/value.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kubeconfig/secret.h"

/* All plain strings in one list, so that none is forgotten. */
static const size_t string_offset[] = {
        offsetof(struct kubeconfig, server),
        offsetof(struct kubeconfig, tls_server_name),
        offsetof(struct kubeconfig, certificate_authority),
        offsetof(struct kubeconfig, client_certificate),
        offsetof(struct kubeconfig, client_key),
        offsetof(struct kubeconfig, token),
        offsetof(struct kubeconfig, username),
        offsetof(struct kubeconfig, password),
        offsetof(struct kubeconfig, proxy_url),
        offsetof(struct kubeconfig, default_namespace),
        offsetof(struct kubeconfig, context),
        offsetof(struct kubeconfig, identity),
};

static char **string_at(const struct kubeconfig *config, size_t index)
{
        return (char **)(uintptr_t)((const char *)config + string_offset[index]);
}

/* ---- pairs */

int kubeconfig_pairs_add(struct kubeconfig_pairs *pairs, const char *name, const char *value)
{
        struct kubeconfig_pair *grown = reallocarray(pairs->pair, pairs->count + 1, sizeof(*grown));
        struct kubeconfig_pair added;

        if (!grown)
                return -ENOMEM;
        pairs->pair = grown;
        added = (struct kubeconfig_pair){strdup(name), strdup(value)};
        grown[pairs->count++] = added;
        return added.name && added.value ? 0 : -ENOMEM;
}

static void kubeconfig_pairs_done(struct kubeconfig_pairs *pairs)
{
        for (size_t i = 0; i < pairs->count; i++) {
                free(pairs->pair[i].name);
                secret_wipe(&pairs->pair[i].value);
        }
        free(pairs->pair);
        *pairs = (struct kubeconfig_pairs){0};
}

static bool pairs_equal(const struct kubeconfig_pairs *a, const struct kubeconfig_pairs *b)
{
        if (a->count != b->count)
                return false;
        for (size_t i = 0; i < a->count; i++)
                if (strcmp(a->pair[i].name, b->pair[i].name) != 0 ||
                    strcmp(a->pair[i].value, b->pair[i].value) != 0)
                        return false;
        return true;
}

static int pairs_copy(const struct kubeconfig_pairs *from, struct kubeconfig_pairs *to)
{
        int r = 0;

        for (size_t i = 0; i < from->count && r >= 0; i++)
                r = kubeconfig_pairs_add(to, from->pair[i].name, from->pair[i].value);
        return r;
}

/* ---- exec */

static bool is_same_value(const char *a, const char *b)
{
        return a == b || (a && b && strcmp(a, b) == 0);
}

bool kubeconfig_exec_equal(const struct kubeconfig_exec *a, const struct kubeconfig_exec *b)
{
        size_t i = 0;

        if (!is_same_value(a->command, b->command) || !is_same_value(a->api_version, b->api_version) ||
            !is_same_value(a->cluster_config, b->cluster_config) ||
            a->provide_cluster_info != b->provide_cluster_info ||
            !pairs_equal(&a->environment, &b->environment))
                return false;
        if (!a->argument || !b->argument)
                return a->argument == b->argument;
        while (a->argument[i] && b->argument[i] && strcmp(a->argument[i], b->argument[i]) == 0)
                i++;
        return a->argument[i] == b->argument[i];
}

static void exec_done(struct kubeconfig_exec *exec)
{
        for (size_t i = 0; exec->argument && exec->argument[i]; i++)
                free(exec->argument[i]);
        free(exec->argument);
        free(exec->command);
        free(exec->api_version);
        free(exec->install_hint);
        free(exec->cluster_config);
        kubeconfig_pairs_done(&exec->environment);
        *exec = (struct kubeconfig_exec){0};
}

/* ---- the whole */

bool kubeconfig_equal(const struct kubeconfig *a, const struct kubeconfig *b)
{
        for (size_t i = 0; i < ELEMENTS(string_offset); i++)
                if (!is_same_value(*string_at(a, i), *string_at(b, i)))
                        return false;
        return a->insecure == b->insecure && pairs_equal(&a->header, &b->header) &&
               kubeconfig_exec_equal(&a->exec, &b->exec);
}

/* Copies without the plugin: what it has brought is what counts. */
int kubeconfig_copy(const struct kubeconfig *from, struct kubeconfig *ret)
{
        struct kubeconfig copy = {.insecure = from->insecure};
        int r = pairs_copy(&from->header, &copy.header);

        for (size_t i = 0; i < ELEMENTS(string_offset) && r >= 0; i++) {
                *string_at(&copy, i) = strdup(*string_at(from, i));
                if (!*string_at(&copy, i))
                        r = -ENOMEM;
        }
        if (r < 0)
                kubeconfig_done(&copy);
        *ret = copy;
        return r;
}

void kubeconfig_done(struct kubeconfig *config)
{
        for (size_t i = 0; i < ELEMENTS(string_offset); i++)
                secret_wipe(string_at(config, i));
        kubeconfig_pairs_done(&config->header);
        exec_done(&config->exec);
}

static struct record_header *headers_of(const struct kubeconfig *config)
{
        struct record_header *header = calloc(config->header.count + 1, sizeof(*header));

        for (size_t i = 0; header && i < config->header.count; i++)
                header[i] =
                        (struct record_header){config->header.pair[i].name, config->header.pair[i].value};
        return header;
}

int credential_message(const struct kubeconfig *config, uint64_t serial, struct message_credential *ret)
{
        struct record_header *header = headers_of(config);

        *ret = (struct message_credential){
                .serial = serial,
                .server = config->server,
                .tls_server_name = config->tls_server_name,
                .insecure = config->insecure,
                .certificate_authority = config->certificate_authority,
                .client_certificate = config->client_certificate,
                .client_key = config->client_key,
                .token = config->token,
                .username = config->username,
                .password = config->password,
                .proxy_url = config->proxy_url,
                .default_namespace = config->default_namespace,
                .header = header,
                .header_count = config->header.count,
                .identity = config->identity,
        };
        return header ? 0 : -ENOMEM;
}
