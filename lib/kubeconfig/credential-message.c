/* SPDX-License-Identifier: Apache-2.0 */
#include "kubeconfig/credential-message.h"

#include <errno.h>
#include <stdlib.h>

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
