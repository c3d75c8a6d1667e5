/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/confidential.h"

#include <string.h>

#include "object/identity.h"
#include "worker/watch.h"

bool is_confidential(const struct worker *worker, const char *api_version, const char *kind)
{
        if (strcmp(kind, "Secret") == 0 && is_same_api_group(api_version, "v1"))
                return true;
        for (size_t i = 0; i < worker->watch_count; i++) {
                const struct record_watch *config = worker->watch[i].config;

                if (config->confidential && strcmp(config->kind, kind) == 0 &&
                    is_same_api_group(config->api_version, api_version))
                        return true;
        }
        return false;
}

/* Validation and webhooks quote what they refuse. Errors about rights, and about who has set which field,
 * quote nothing. A webhook chooses its code, and the server says that it was one. */
static bool may_quote(const struct kube_error *error)
{
        switch (error->http_status) {
        case 0:
                return false;
        case 401:
        case 403:
        case 404:
        case 409:
        case 410:
        case 429:
        case 503:
                return strstr(error->message, "denied") || strstr(error->message, "admission") ||
                       strstr(error->message, "webhook");
        default:
                return true;
        }
}

/* Kubernetes' own (metav1.StatusReason). A webhook may write anything there. */
static bool is_plain_reason(const char *reason)
{
        static const char *const known[] = {
                "Unauthorized",
                "Forbidden",
                "NotFound",
                "AlreadyExists",
                "Conflict",
                "Gone",
                "Invalid",
                "ServerTimeout",
                "StorageReadError",
                "Timeout",
                "TooManyRequests",
                "BadRequest",
                "NotAcceptable",
                "MethodNotAllowed",
                "RequestEntityTooLarge",
                "UnsupportedMediaType",
                "InternalError",
                "Expired",
                "ServiceUnavailable",
        };

        for (size_t i = 0; i < ELEMENTS(known); i++)
                if (strcmp(reason, known[i]) == 0)
                        return true;
        return false;
}

const char *confidential_words(bool confidential, const struct kube_error *error, char *buffer, size_t size)
{
        bool plain = error->reason && is_plain_reason(error->reason);

        if (!confidential || !may_quote(error))
                return error->message;
        snprintf(buffer, size,
                 "HTTP %d%s%s (the server's words are not shown: they may quote what is confidential)",
                 error->http_status, plain ? " " : "", plain ? error->reason : "");
        return buffer;
}

/* ---- who the operator is */

static const char *behind_bracket(const char *text)
{
        size_t depth = 0;

        for (; *text; text++) {
                depth += *text == '(';
                if (*text == ')' && --depth == 0)
                        return text + 1;
        }
        return text;
}

/* " (SERVER, as IDENTITY)", as lib/kube adds it to a refusal. */
static size_t asked_as_size(const char *text)
{
        const char *end = behind_bracket(text + 1);

        return memmem(text, (size_t)(end - text), ", as ", 5) ? (size_t)(end - text) : 0;
}

/* User "NAME" cannot ..., as an API server says it. The text may have been cut before. */
static size_t user_size(const char *text)
{
        const char *end = strchr(text + strlen("User \""), '"');

        return !end ? strlen(text) : strncmp(end + 1, " cannot ", 8) == 0 ? (size_t)(end + 1 - text) : 0;
}

static bool begins(const char *text, const char *with, size_t size)
{
        return size > 0 && strncmp(text, with, size) == 0;
}

/* The address at which tenants would find us. */
struct address {
        const char *server, *host;
        size_t server_size, host_size; /* host_size 0: it may be any other's */
};

/* If a connection fails, libcurl's text names the host again. */
static struct address address_in(const char *text, const char *server)
{
        const char *scheme = strstr(server, "://");
        struct address address = {server, scheme ? scheme + 3 : server, strlen(server), 0};

        address.host += address.host[0] == '[';
        if (server[0] && strstr(text, server))
                address.host_size = strcspn(address.host, address.host[-1] == '[' ? "]" : ":/");
        return address;
}

/* The number of bytes here that must not be shown; 0 if there are none. */
static size_t hidden_size(const char *text, const struct address *address, const char **ret_instead)
{
        *ret_instead = "";
        if (begins(text, " (http", 6) && asked_as_size(text) > 0)
                return asked_as_size(text);
        *ret_instead = "the operator's user";
        if (begins(text, "User \"", 6) && user_size(text) > 0)
                return user_size(text);
        *ret_instead = "the API server";
        if (begins(text, address->server, address->server_size))
                return address->server_size;
        return begins(text, address->host, address->host_size) ? address->host_size : 0;
}

void confidential_hide_operator(const struct worker *worker, const char *text, char *buffer, size_t size)
{
        struct address address = address_in(text, kube_client_server(worker->client));
        const char *instead;
        size_t used = 0, hidden;

        while (*text && used + 1 < size) {
                hidden = hidden_size(text, &address, &instead);
                if (hidden == 0) {
                        buffer[used++] = *text++;
                        continue;
                }
                used += (size_t)snprintf(buffer + used, size - used, "%s", instead);
                text += hidden;
        }
        buffer[used < size ? used : size - 1] = '\0';
}
