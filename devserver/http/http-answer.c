/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/http/http-answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/http/http-request.h"
#include "devserver/tree/form.h"

void answer_raw(struct request *request, int status, const char *json)
{
        request->status = status;
        text_clear(&request->answer);
        text_append_string(&request->answer, json);
        text_append_string(&request->answer, "\n");
}

void answer_json(struct request *request, int status, cJSON *body)
{
        char *json = form_print(body);

        answer_raw(request, status, json ? json : "{}");
        free(json);
        cJSON_Delete(body);
}

cJSON *status_object(int code, const char *reason, const char *message)
{
        cJSON *status = cJSON_CreateObject();

        cJSON_AddStringToObject(status, "kind", "Status");
        cJSON_AddStringToObject(status, "apiVersion", "v1");
        cJSON_AddObjectToObject(status, "metadata");
        cJSON_AddStringToObject(status, "status", code < 400 ? "Success" : "Failure");
        if (message[0])
                cJSON_AddStringToObject(status, "message", message);
        if (reason[0])
                cJSON_AddStringToObject(status, "reason", reason);
        cJSON_AddNumberToObject(status, "code", code);
        return status;
}

static cJSON *details(const struct request *request)
{
        cJSON *object = cJSON_CreateObject();

        if (request->name && request->name[0])
                cJSON_AddStringToObject(object, "name", request->name);
        if (request->group && request->group[0])
                cJSON_AddStringToObject(object, "group", request->group);
        if (request->plural)
                cJSON_AddStringToObject(object, "kind", request->plural);
        return object;
}

void answer_status_causes(struct request *request, int code, const char *reason, cJSON *causes,
                          const char *message)
{
        /* A request that cannot be decoded is about no object; a conflict of managers names only their
         * fields. */
        bool is_about_object =
                reason[0] && code != 400 && code != 415 && !(causes && strcmp(reason, "Conflict") == 0);
        cJSON *status = status_object(code, reason, message);
        cJSON *info = is_about_object ? details(request) : cJSON_CreateObject();
        cJSON *code_item = cJSON_DetachItemFromObjectCaseSensitive(status, "code");

        if (causes)
                cJSON_AddItemToObject(info, "causes", causes);
        if (request->retry_after > 0 || (request->retry_after == 0 && (code == 504 || code == 429)))
                cJSON_AddNumberToObject(info, "retryAfterSeconds",
                                        request->retry_after > 0 ? (double)request->retry_after : 1);
        if (info && info->child)
                cJSON_AddItemToObject(status, "details", info);
        else
                cJSON_Delete(info);
        cJSON_AddItemToObject(status, "code", code_item);
        answer_json(request, code, status);
}

void answer_status(struct request *request, int code, const char *reason, const char *format, ...)
{
        _cleanup_free_ char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&message, format, arguments) < 0)
                message = NULL;
        va_end(arguments);
        answer_status_causes(request, code, reason, NULL, message ? message : "");
}

void answer_not_found(struct request *request)
{
        answer_status(request, 404, "NotFound", "%s%s%s \"%s\" not found",
                      request->plural ? request->plural : "", request->group && request->group[0] ? "." : "",
                      request->group ? request->group : "", request->name ? request->name : "");
}

void answer_mistakes(struct request *request, const char *name, struct mistakes *mistakes)
{
        _cleanup_free_ char *list = mistakes_describe(mistakes), *kind = strdup(request->resource->kind);
        _cleanup_text_ struct text message = TEXT_EMPTY;

        text_printf(&message, "%s%s%s \"%s\" is invalid: %s", request->resource->kind,
                    request->group[0] ? "." : "", request->group, name, list ? list : "");
        /* For an invalid object the real server names the kind, not the resource. */
        if (kind) {
                free(request->plural);
                request->plural = TAKE_PTR(kind);
        }
        answer_status_causes(request, 422, "Invalid", mistakes->cause, message.data ? message.data : "");
        *mistakes = (struct mistakes){0};
}

void answer_invalid(struct request *request, const char *name, const char *field, enum mistake_type type,
                    const char *value, const char *text)
{
        struct mistakes mistakes = {0};

        mistake_add(&mistakes, type, field, value, "%s", text);
        answer_mistakes(request, name, &mistakes);
}

void answer_too_large(struct request *request, uint64_t wanted)
{
        unsigned long long newest = request->server->storage.resource_version;
        cJSON *causes = cJSON_CreateArray(), *cause = cJSON_CreateObject();
        char message[128];

        snprintf(message, sizeof(message), "Timeout: Too large resource version: %llu, current: %llu",
                 (unsigned long long)wanted, newest);
        cJSON_AddStringToObject(cause, "reason", "ResourceVersionTooLarge");
        cJSON_AddStringToObject(cause, "message", "Too large resource version");
        cJSON_AddItemToArray(causes, cause);
        answer_status_causes(request, 504, "Timeout", causes, message);
}
