/* SPDX-License-Identifier: Apache-2.0 */
#include "credential/credential-message.h"

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

int credential_message(const struct credential *credential, struct message_credential *ret)
{
        const struct kubeconfig *current = &credential->current;
        struct record_header *header = headers_of(current);

        *ret = (struct message_credential){
                .serial = credential->serial,
                .server = current->server,
                .tls_server_name = current->tls_server_name,
                .insecure = current->insecure,
                .certificate_authority = current->certificate_authority,
                .client_certificate = current->client_certificate,
                .client_key = current->client_key,
                .token = current->token,
                .username = current->username,
                .password = current->password,
                .proxy_url = current->proxy_url,
                .default_namespace = current->default_namespace,
                .header = header,
                .header_count = current->header.count,
                .identity = current->identity,
        };
        return header ? 0 : -ENOMEM;
}
