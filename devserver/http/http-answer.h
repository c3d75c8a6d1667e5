/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers, and the Status object in the shape that the real server gives it. Each sets request->status. */
#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "devserver/http/http-request.h"
#include "devserver/schema/schema-mistakes.h"

void answer_json(struct request *request, int status, cJSON *body); /* takes the body */
void answer_raw(struct request *request, int status, const char *json);
void answer_status(struct request *request, int code, const char *reason, const char *format, ...)
        _printf_(4, 5);
/* causes: of details, taken; NULL: none. */
void answer_status_causes(struct request *request, int code, const char *reason, cJSON *causes,
                          const char *message);
void answer_not_found(struct request *request); /* 404 about the object of the URL */
/* 422 about the object of this name; the mistakes are taken. */
void answer_mistakes(struct request *request, const char *name, struct mistakes *mistakes);
/* The same with one mistake, as mistake_add() takes it. */
void answer_invalid(struct request *request, const char *name, const char *field, enum mistake_type type,
                    const char *value, const char *text);
/* 504, with its cause: a resourceVersion that there is not yet. */
void answer_too_large(struct request *request, uint64_t wanted);
/* A Status by itself, the caller's; "": without reason or message. */
cJSON *status_object(int code, const char *reason, const char *message);
