/* SPDX-License-Identifier: Apache-2.0 */
/* What the files say, with what a plugin has brought in the places that it fills. */
#include "credential/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "credential/handlers/account.h"
#include "kubeconfig/secret.h"
#include "kubeconfig/value.h"

int credential_send(struct credential *credential)
{
        struct message_credential message;
        int r = credential_message(&credential->current, credential->serial, &message);

        if (r >= 0)
                r = child_send(credential->child, MESSAGE_CREDENTIAL, &message);
        free((void *)(uintptr_t)message.header);
        return r;
}

static int replace_text(char **place, const char *value)
{
        char *copy = value[0] ? strdup(value) : NULL;

        if (!value[0])
                return 0;
        if (!copy)
                return -ENOMEM;
        secret_wipe(place);
        *place = copy;
        return 0;
}

int credential_publish(struct credential *credential)
{
        const struct plugin_credential *brought = &credential->brought;
        struct kubeconfig merged;
        int r = kubeconfig_copy(&credential->source, &merged);

        if (r >= 0 && credential->has_brought) {
                r = replace_text(&merged.token, brought->token);
                if (r >= 0)
                        r = replace_text(&merged.client_certificate, brought->client_certificate);
                if (r >= 0)
                        r = replace_text(&merged.client_key, brought->client_key);
        }
        if (r < 0) {
                kubeconfig_done(&merged);
                return r;
        }
        kubeconfig_done(&credential->current);
        credential->current = merged;
        credential->serial++;
        r = account_published(credential);
        return r < 0 ? r : credential_send(credential);
}
