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

/* Texts are cut in many places, and go on with "; " or with what lib/kube adds. */
static size_t size_until_cut(const char *text)
{
        const char *next = strstr(text, "; "), *added = strstr(text, " (http");

        if (added && (!next || added < next))
                next = added;
        return next ? (size_t)(next - text) : strlen(text);
}

static const char *end_of_quoted(const char *text)
{
        for (; *text && *text != '"'; text++)
                if (*text == '\\' && text[1])
                        text++;
        return text;
}

/* User "NAME" cannot ..., as an API server says it, or user "NAME" (groups=[...]). is_certain: it is one even where the
 * text was cut before it shows. */
static size_t user_size(const char *text, bool is_certain)
{
        const char *quote = end_of_quoted(text + strlen("User \"")), *end = text + size_until_cut(text),
                   *list;

        if (quote >= end)
                return (size_t)(end - text);
        if (strncmp(quote, "\" (groups=[", 11) == 0) {
                list = strstr(quote, "])");
                return (size_t)((list ? list + 2 : end) - text);
        }
        return is_certain || strncmp(quote, "\" cannot ", 9) == 0 ? (size_t)(quote + 1 - text) : 0;
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

/* Of the whole, or of what is left of it where the text was cut: more than `least` bytes. */
static size_t part_size(const char *text, const char *whole, size_t whole_size, size_t least)
{
        size_t size = 0;

        while (size < whole_size && text[size] == whole[size])
                size++;
        return size == whole_size || (size > least && size == size_until_cut(text)) ? size : 0;
}

#define REFUSED "forbidden: "

/* The number of bytes here that must not be shown; 0 if there are none. */
static size_t hidden_size(const char *text, const struct address *address, const char **ret_instead)
{
        size_t refused = begins(text, REFUSED, strlen(REFUSED)) ? strlen(REFUSED) : 0, size;

        *ret_instead = "";
        if (begins(text, " (http", 6) && asked_as_size(text) > 0)
                return asked_as_size(text);
        *ret_instead = refused ? REFUSED "the operator's user" : "the operator's user";
        size = begins(text + refused, "User \"", 6) || begins(text + refused, "user \"", 6)
                       ? user_size(text + refused, refused > 0)
                       : 0;
        if (size > 0)
                return refused + size;
        *ret_instead = "the API server";
        size = part_size(text, address->server, address->server_size, strlen("https://"));
        return size > 0 ? size : part_size(text, address->host, address->host_size, 3);
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
