/* SPDX-License-Identifier: Apache-2.0 */
/* See confidential.h. */
#include "worker/confidential.h"

#include <errno.h>
#include <string.h>

#include "ipc/message-id.h"
#include "os/kept.h"
#include "worker/watch.h"

bool is_confidential(const struct worker *worker, const char *api_version, const char *kind)
{
        if (strcmp(kind, "Secret") == 0 && strcmp(api_version, "v1") == 0)
                return true;
        for (size_t i = 0; i < worker->watch_count; i++) {
                const struct record_watch *config = worker->watch[i].config;

                if (config->confidential && strcmp(config->kind, kind) == 0 &&
                    strcmp(config->api_version, api_version) == 0)
                        return true;
        }
        return false;
}

/* Validation and webhooks quote what they refuse. Errors about rights, and about who has set which field,
 * quote nothing. */
static bool may_quote(const struct kube_error *error)
{
        switch (error->http_status) {
        case 0:
        case 401:
        case 404:
        case 409:
        case 410:
        case 429:
        case 503:
                return false;
        case 403:
                return strstr(error->message, "denied") || strstr(error->message, "admission");
        default:
                return true;
        }
}

const char *confidential_words(bool confidential, const struct kube_error *error, char *buffer, size_t size)
{
        if (!confidential || !may_quote(error))
                return error->message;
        snprintf(buffer, size,
                 "HTTP %d %.60s (the server's words are not shown: they may quote what is confidential)",
                 error->http_status, error->reason ? error->reason : "");
        return buffer;
}
