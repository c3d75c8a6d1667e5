/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of service accounts (TokenRequest), which are good for this server until they expire, or their
 * account is gone. There are no roles here: a client with a token may do everything.
 */
#include "devserver/cluster/account-token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

#define LIFE_DEFAULT_SEC 3600
#define LIFE_MIN_SEC     600
#define LIFE_MAX_SEC     (INT64_C(1) << 32)

struct account_token {
        struct account_token *next;
        char *text, *key, *uid; /* of the account */
        uint64_t until_boottime;
};

static void token_free(struct account_token *token)
{
        free(token->text);
        free(token->key);
        free(token->uid);
        free(token);
}

void account_tokens_free(struct server *server)
{
        while (server->account_token) {
                struct account_token *token = server->account_token;

                server->account_token = token->next;
                token_free(token);
        }
}

static const struct version *find_account(struct server *server, const char *key)
{
        const struct resource *resource = resource_find(&server->storage, "", "v1", "serviceaccounts");

        return resource ? object_find(resource, key) : NULL;
}

bool account_token_is_valid(struct server *server, const char *text)
{
        const uint64_t now = clock_boottime_usec();

        for (struct account_token *token = server->account_token; token; token = token->next) {
                const struct version *account;

                if (strcmp(token->text, text) != 0)
                        continue;
                account = find_account(server, token->key);
                return now < token->until_boottime && account && strcmp(account->uid, token->uid) == 0;
        }
        return false;
}

static void forget_expired(struct server *server)
{
        const uint64_t now = clock_boottime_usec();

        for (struct account_token **place = &server->account_token; *place;) {
                struct account_token *token = *place;

                if (now < token->until_boottime) {
                        place = &token->next;
                        continue;
                }
                *place = token->next;
                token_free(token);
        }
}

static struct account_token *make_token(struct server *server, const struct version *account,
                                        uint64_t life_sec)
{
        struct account_token *token = calloc(1, sizeof(*token));
        uint64_t random[3];

        if (!token || getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
                free(token);
                return NULL;
        }
        if (asprintf(&token->text, "devserver-%016" PRIx64 "%016" PRIx64 "%016" PRIx64, random[0], random[1],
                     random[2]) < 0)
                token->text = NULL;
        token->key = strdup(account->key);
        token->uid = strdup(account->uid);
        token->until_boottime = clock_boottime_usec() + life_sec * USEC_PER_SEC;
        if (!token->text || !token->key || !token->uid) {
                token_free(token);
                return NULL;
        }
        forget_expired(server);
        token->next = server->account_token;
        server->account_token = token;
        return token;
}

/* It is the request that is invalid, not the account. */
static void answer_invalid_life(struct request *request, const char *text)
{
        static const char field[] = "spec.expirationSeconds", kind[] = "TokenRequest",
                          group[] = "authentication.k8s.io";
        cJSON *causes = cJSON_CreateArray(), *cause = cJSON_CreateObject();
        _cleanup_free_ char *message = NULL;

        if (asprintf(&message, "%s.%s \"\" is invalid: %s: %s", kind, group, field, text) < 0)
                message = NULL;
        cJSON_AddStringToObject(cause, "reason", "FieldValueInvalid");
        cJSON_AddStringToObject(cause, "message", text);
        cJSON_AddStringToObject(cause, "field", field);
        cJSON_AddItemToArray(causes, cause);
        free(request->group);
        free(request->plural);
        free(request->name);
        request->group = strdup(group);
        request->plural = strdup(kind);
        request->name = NULL;
        answer_status_causes(request, 422, "Invalid", causes, message ? message : text);
}

/* 0: answered. */
static int64_t life_of(struct request *request, const cJSON *body)
{
        const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(
                cJSON_GetObjectItemCaseSensitive(body, "spec"), "expirationSeconds");
        const int64_t seconds = wanted ? (int64_t)json_number(wanted, 0) : LIFE_DEFAULT_SEC;
        const int64_t most = (int64_t)(request->server->token_life_usec / USEC_PER_SEC);
        const char *problem = seconds < LIFE_MIN_SEC ? "may not specify a duration less than 10 minutes"
                              : seconds > LIFE_MAX_SEC
                                      ? "may not specify a duration larger than 2^32 seconds"
                                      : NULL;
        _cleanup_free_ char *text = NULL;

        if (!problem)
                return most > 0 && seconds > most ? most : seconds;
        if (asprintf(&text, "Invalid value: %" PRId64 ": %s", seconds, problem) < 0)
                text = NULL;
        answer_invalid_life(request, text ? text : problem);
        return 0;
}

static void add_time(cJSON *object, const char *name, time_t seconds)
{
        char text[32];
        struct tm tm;

        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
        cJSON_AddStringToObject(object, name, text);
}

static void answer_token(struct request *request, const cJSON *body, const char *token, int64_t life)
{
        const cJSON *audiences = cJSON_GetObjectItemCaseSensitive(
                cJSON_GetObjectItemCaseSensitive(body, "spec"), "audiences");
        cJSON *answer = cJSON_CreateObject(), *part, *copy;

        cJSON_AddStringToObject(answer, "kind", "TokenRequest");
        cJSON_AddStringToObject(answer, "apiVersion", "authentication.k8s.io/v1");
        part = cJSON_AddObjectToObject(answer, "metadata");
        cJSON_AddStringToObject(part, "name", request->name);
        cJSON_AddStringToObject(part, "namespace", request->namespace_name);
        add_time(part, "creationTimestamp", time(NULL));
        part = cJSON_AddObjectToObject(answer, "spec");
        if (cJSON_GetArraySize(audiences) > 0) {
                cJSON_AddItemToObject(part, "audiences", cJSON_Duplicate(audiences, true));
        } else {
                copy = cJSON_AddArrayToObject(part, "audiences");
                cJSON_AddItemToArray(copy, cJSON_CreateString(request->server->url));
        }
        cJSON_AddItemToObject(part, "expirationSeconds", json_new_integer(life));
        cJSON_AddNullToObject(part, "boundObjectRef");
        part = cJSON_AddObjectToObject(answer, "status");
        cJSON_AddStringToObject(part, "token", token);
        add_time(part, "expirationTimestamp", time(NULL) + (time_t)life);
        answer_json(request, 201, answer);
}

static bool is_token_wanted(struct request *request, const cJSON *body)
{
        const char *api_version = json_text(body, "apiVersion"), *kind = json_text(body, "kind");

        if (body && (!kind[0] || strcmp(kind, "TokenRequest") == 0) &&
            (!api_version[0] || strcmp(api_version, "authentication.k8s.io/v1") == 0))
                return true;
        answer_status(request, 400, "BadRequest",
                      "the body of the request is no TokenRequest of authentication.k8s.io/v1");
        return false;
}

void account_token_handle(struct request *request)
{
        _cleanup_free_ char *key = object_key(request->namespace_name, request->name);
        const struct version *account = key ? find_account(request->server, key) : NULL;
        const struct account_token *token;
        cJSON *body;
        int64_t life;

        if (strcmp(request->method, "POST") != 0) {
                answer_status(request, 405, "MethodNotAllowed",
                              "the server does not allow this method on the requested resource");
                return;
        }
        body = json_parse(request->body.data ? request->body.data : "", request->body.size);
        if (is_token_wanted(request, body) && !account) {
                answer_not_found(request);
        } else if (account && request->status == 0 && (life = life_of(request, body)) > 0) {
                token = make_token(request->server, account, (uint64_t)life);
                if (token)
                        answer_token(request, body, token->text, life);
                else
                        answer_status(request, 500, "InternalError", "no memory");
        }
        cJSON_Delete(body);
}
