/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube-error.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/message.h"
#include "object/scan-value.h"
#include "json/json.h"

#define TEXT_MAX        1024 /* of a server's message that is kept: it goes to logs and to the ledger */
#define TOO_LARGE_CAUSE "ResourceVersionTooLarge"
#define TOO_LARGE_TEXT  "Too large resource version"

static char *copy_capped(const char *text, size_t size)
{
        char *copy;

        size = strnlen(text, size < TEXT_MAX ? size : TEXT_MAX);
        copy = strndup(text, size);
        if (!copy)
                return NULL;
        /* One line, since it becomes a part of a log line. */
        for (char *c = copy; *c; c++)
                if (*c == '\n' || *c == '\r')
                        *c = ' ';
        utf8_clean(copy);
        return copy;
}

static const char *string_of(const cJSON *object, const char *name)
{
        return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static bool contains(const char *text, const char *part)
{
        return text && strstr(text, part);
}

/* Older servers know no such type of cause: they have it in a cause's message only, or in the message of the
 * whole ("Timeout: Too large resource version: 10, current: 5", kubernetes#91073). */
static bool is_too_large(int http_status, const cJSON *details, const char *message)
{
        const cJSON *cause;

        cJSON_ArrayForEach(cause, cJSON_GetObjectItemCaseSensitive(details, "causes"))
        {
                const char *type = string_of(cause, "reason");

                if (type && strcmp(type, TOO_LARGE_CAUSE) == 0)
                        return true;
                if (http_status == 504 && contains(string_of(cause, "message"), TOO_LARGE_TEXT))
                        return true;
        }
        return http_status == 504 && contains(message, TOO_LARGE_TEXT);
}

/* A PATCH that names another UID is invalid in a field that is immutable; an apply to nothing is a conflict,
 * as is a precondition that does not hold. */
static bool is_other_uid(int http_status, const cJSON *details, const char *message)
{
        const cJSON *cause;

        if (http_status == 409)
                return contains(message, "uid mismatch") || contains(message, "UID in precondition");
        cJSON_ArrayForEach(cause, cJSON_GetObjectItemCaseSensitive(details, "causes"))
        {
                const char *field = string_of(cause, "field");

                if (http_status == 422 && field && strcmp(field, "metadata.uid") == 0)
                        return true;
        }
        return false;
}

static int take_status(struct kube_error *error, const cJSON *status)
{
        const char *message = string_of(status, "message"), *reason = string_of(status, "reason");
        const cJSON *details = cJSON_GetObjectItemCaseSensitive(status, "details");
        const cJSON *code = cJSON_GetObjectItemCaseSensitive(status, "code");
        const cJSON *retry = cJSON_GetObjectItemCaseSensitive(details, "retryAfterSeconds");

        if (error->http_status == 0 && cJSON_IsNumber(code) && code->valueint >= 100 &&
            code->valueint <= 599)
                error->http_status = code->valueint;
        if (cJSON_IsNumber(retry) && retry->valueint > 0)
                error->retry_after_sec =
                        retry->valueint < KUBE_RETRY_AFTER_MAX ? retry->valueint : KUBE_RETRY_AFTER_MAX;
        error->names_object = string_of(details, "name") != NULL && string_of(details, "name")[0];
        error->other_uid = is_other_uid(error->http_status, details, message);
        error->resource_version_too_large = is_too_large(error->http_status, details, message);
        if (reason && reason[0] && !(error->reason = copy_capped(reason, strlen(reason))))
                return -ENOMEM;
        if (!message || !message[0])
                message = error->reason;
        if (message && !(error->message = copy_capped(message, strlen(message))))
                return -ENOMEM;
        return 0;
}

/* The body is not a Status: its first line says most. */
static int take_plain(struct kube_error *error, const char *body, size_t size)
{
        const char *end;

        while (size > 0 && strchr(" \t\r\n", *body)) {
                body++;
                size--;
        }
        end = size > 0 ? memchr(body, '\n', size) : NULL;
        if (end)
                size = (size_t)(end - body);
        while (size > 0 && strchr(" \t\r", body[size - 1]))
                size--;
        if (size == 0)
                return 0;
        error->message = copy_capped(body, size);
        return error->message ? 0 : -ENOMEM;
}

int kube_error_from_status(struct kube_error *error, int http_status, const char *body, size_t size)
{
        bool is_small = size > 0 && scan_count_values(body, size) <= JSON_BOUNDED_MAX;
        cJSON *status = is_small ? cJSON_ParseWithLength(body, size) : NULL;
        int retry_after_sec = error->retry_after_sec, r;
        bool of_read = error->of_read;

        kube_error_done(error);
        error->failure = KUBE_FAILURE_HTTP;
        error->http_status = http_status;
        error->retry_after_sec = retry_after_sec;
        error->of_read = of_read;
        r = cJSON_IsObject(status) ? take_status(error, status) : 0;
        cJSON_Delete(status);
        if (r >= 0 && !error->message)
                r = take_plain(error, body, size);
        if (r < 0)
                return r;
        if (!error->message)
                error->message = format_string("HTTP status %d without an explanation", error->http_status);
        return error->message ? 0 : -ENOMEM;
}

int kube_error_set(struct kube_error *error, enum kube_failure failure, const char *format, ...)
{
        va_list arguments;
        char *message;

        va_start(arguments, format);
        if (vasprintf(&message, format, arguments) < 0)
                message = NULL;
        va_end(arguments);
        kube_error_done(error); /* only now: the arguments may be its own */
        error->failure = failure;
        error->message = message;
        if (!error->message)
                return -ENOMEM;
        utf8_clean(error->message);
        return 0;
}

bool kube_error_is_gone(const struct kube_error *error)
{
        return error->failure == KUBE_FAILURE_HTTP && error->http_status == 410;
}

bool kube_error_is_not_found(const struct kube_error *error)
{
        return error->failure == KUBE_FAILURE_HTTP && error->http_status == 404 && error->names_object &&
               error->reason && strcmp(error->reason, "NotFound") == 0;
}

bool kube_error_is_withheld(const struct kube_error *error)
{
        return error->failure == KUBE_FAILURE_HTTP &&
               (error->http_status == 403 || error->http_status == 404);
}

/* What follows the object's name, which is quoted as Go does it (%q) and comes first. Names of roles and their bindings may
 * have blanks and colons, and so say anything. */
static const char *skip_name(const char *message)
{
        const char *quote = strchr(message, '"'), *colon = strstr(message, ": "), *end;

        if (!quote || (colon && colon < quote))
                return message;
        for (end = quote + 1; *end && *end != '"'; end++)
                if (*end == '\\' && end[1])
                        end++;
        return end;
}

/* The authorizer refuses us, in words like `widgets "a" is forbidden: User "x" cannot ...`. */
static bool is_about_rights(const char *message)
{
        static const char *const words[] = {
                "forbidden: User \"",
                "forbidden: cannot set blockOwnerDeletion", /* OwnerReferencesPermissionEnforcement */
                "forbidden: cannot set an ownerRef",        /* likewise */
        };
        const char *rest = message ? skip_name(message) : "", *colon = strstr(rest, ": "), *start;

        if (!colon || colon - rest < (ptrdiff_t)strlen("forbidden"))
                return false;
        start = colon - strlen("forbidden");
        for (size_t i = 0; i < ELEMENTS(words); i++)
                if (strncmp(start, words[i], strlen(words[i])) == 0)
                        return true;
        return false;
}

/* 403 is also what admission says of one object, after our rights were found to suffice. Nothing but the
 * words tells that: the server's own plugins and webhooks have the reason of the authorizer. Who writes an object chooses
 * what a plugin finds wrong with it, and perhaps what it quotes; so words that are unknown blame the object, unless
 * no admission has looked. */
static enum kube_blame blame_forbidden(const struct kube_error *error)
{
        static const struct {
                const char *words;
                enum kube_blame blame;
        } said[] = {
                {"denied the request", KUBE_BLAME_REQUEST}, /* admission webhook "x" ... */
                {"ValidatingAdmissionPolicy", KUBE_BLAME_REQUEST},
                {"violates PodSecurity", KUBE_BLAME_REQUEST},
                {"security context constraint", KUBE_BLAME_REQUEST},
                {"is attempting to grant RBAC permissions", KUBE_BLAME_REQUEST},
                {"exceeded quota", KUBE_BLAME_OBJECT},
                {"failed quota", KUBE_BLAME_OBJECT},
                {" usage per ", KUBE_BLAME_OBJECT},            /* a LimitRange */
                {"it is being terminated", KUBE_BLAME_OBJECT}, /* its namespace */
        };

        if (error->of_read || is_about_rights(error->message))
                return KUBE_BLAME_RIGHTS;
        for (size_t i = 0; i < ELEMENTS(said); i++)
                if (contains(error->message, said[i].words))
                        return said[i].blame;
        return KUBE_BLAME_OBJECT;
}

enum kube_blame kube_error_blame(const struct kube_error *error)
{
        if (error->failure == KUBE_FAILURE_PROTOCOL && error->http_status == 0)
                return KUBE_BLAME_OBJECT;
        switch (error->http_status) {
        case 0:
        case 408:
        case 425:
        case 429:
                return KUBE_BLAME_SERVER;
        case 401:
                return KUBE_BLAME_RIGHTS;
        case 403:
                return blame_forbidden(error);
        case 404:
        case 409:
        case 410:
                return KUBE_BLAME_OBJECT;
        case 500: /* a field of another type than the kind has, in an apply */
                return contains(error->message, "failed to create typed patch object") ? KUBE_BLAME_OBJECT
                                                                                       : KUBE_BLAME_SERVER;
        default:
                return error->http_status >= 500   ? KUBE_BLAME_SERVER
                       : error->http_status >= 400 ? KUBE_BLAME_REQUEST
                                                   : KUBE_BLAME_OBJECT;
        }
}

const char *kube_error_rights_advice(const struct kube_error *error)
{
        return error->http_status == 403 && kube_error_blame(error) == KUBE_BLAME_RIGHTS
                       ? "; the operator's user lacks this right (RBAC), `reconciledctl rbac` prints all it needs"
                       : "";
}

bool kube_error_is_passing(const struct kube_error *error)
{
        return error->http_status == 401 || kube_error_blame(error) == KUBE_BLAME_SERVER;
}

uint64_t kube_error_wish_usec(const struct kube_error *error)
{
        if (error->retry_after_sec <= 0 || (error->http_status != 429 && error->http_status < 500))
                return 0;
        return (uint64_t)error->retry_after_sec * USEC_PER_SEC;
}

int kube_error_copy(const struct kube_error *from, struct kube_error *ret)
{
        struct kube_error copy = *from;

        copy.reason = from->reason ? strdup(from->reason) : NULL;
        copy.message = from->message ? strdup(from->message) : NULL;
        copy.resource = from->resource ? strdup(from->resource) : NULL;
        if ((from->reason && !copy.reason) || (from->message && !copy.message) ||
            (from->resource && !copy.resource)) {
                kube_error_done(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

void kube_error_done(struct kube_error *error)
{
        free(error->reason);
        free(error->message);
        free(error->resource);
        *error = KUBE_ERROR_NONE;
}

const char *kube_failure_name(enum kube_failure failure)
{
        static const char *const name[KUBE_FAILURE_COUNT] = {
                [KUBE_FAILURE_NONE] = "none",
                [KUBE_FAILURE_HTTP] = "http",
                [KUBE_FAILURE_CONNECT] = "connect",
                [KUBE_FAILURE_TLS] = "tls",
                [KUBE_FAILURE_INTERRUPTED] = "interrupted",
                [KUBE_FAILURE_TIMEOUT] = "timeout",
                [KUBE_FAILURE_HELD] = "held",
                [KUBE_FAILURE_CANCELLED] = "cancelled",
                [KUBE_FAILURE_PROTOCOL] = "protocol",
        };

        return (unsigned)failure < KUBE_FAILURE_COUNT ? name[failure] : "invalid";
}
