/* SPDX-License-Identifier: Apache-2.0 */
/* Every member has its row in one table. */
#include "devserver/fault/fault-read.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/text.h"
#include "devserver/fault/fault.h"
#include "devserver/server.h"
#include "yaml/yaml-tree.h"
#include "json/json.h"

#define NUMBER_MAX 1e15

enum member_kind {
        MEMBER_TEXT,
        MEMBER_COUNT,
        MEMBER_TRUE,  /* only `true` says something */
        MEMBER_FALSE, /* only `false` does */
        MEMBER_OTHER  /* read by a function of its own */
};

struct member {
        const char *name;
        enum member_kind kind;
        size_t offset;
};

#define AT(field) offsetof(struct fault, field)

static const struct member fault_member[] = {
        {"match", MEMBER_OTHER, 0},
        {"after", MEMBER_COUNT, AT(after)},
        {"times", MEMBER_COUNT, AT(times)},
        {"status", MEMBER_OTHER, 0},
        {"retryAfter", MEMBER_OTHER, 0},
        {"reason", MEMBER_TEXT, AT(reason)},
        {"message", MEMBER_TEXT, AT(message)},
        {"body", MEMBER_TEXT, AT(body)},
        {"contentType", MEMBER_TEXT, AT(content_type)},
        {"causes", MEMBER_OTHER, 0},
        {"hang", MEMBER_TRUE, AT(hang)},
        {"reset", MEMBER_TRUE, AT(reset)},
        {"carriedOut", MEMBER_TRUE, AT(carried_out)},
        {"latency", MEMBER_OTHER, 0},
        {"warning", MEMBER_TEXT, AT(warning)},
        {"atEvent", MEMBER_OTHER, 0},
        {"atByte", MEMBER_OTHER, 0},
        {"error", MEMBER_OTHER, 0},
        {"line", MEMBER_OTHER, 0},
        {"bytes", MEMBER_OTHER, 0},
        {"close", MEMBER_OTHER, 0},
        {"stall", MEMBER_OTHER, 0},
        {"bytesPerSecond", MEMBER_COUNT, AT(bytes_per_second)},
        {"pieces", MEMBER_COUNT, AT(pieces)},
        {"bookmarks", MEMBER_FALSE, AT(no_bookmarks)},
        {"initialEventsEnd", MEMBER_FALSE, AT(no_initial_events_end)},
};

#define IN_MATCH(field) offsetof(struct fault_match, field)

static const struct member match_member[] = {
        {"verb", MEMBER_TEXT, IN_MATCH(verb)},
        {"resource", MEMBER_TEXT, IN_MATCH(resource)},
        {"namespace", MEMBER_TEXT, IN_MATCH(namespace_name)},
        {"name", MEMBER_TEXT, IN_MATCH(name)},
        {"path", MEMBER_TEXT, IN_MATCH(path)},
        {"userAgent", MEMBER_TEXT, IN_MATCH(user_agent)},
        {"continue", MEMBER_OTHER, 0},
};

static int refuse_member(struct error *error, const char *name, const char *expected)
{
        return error_set(error, -EINVAL, "%s: %s is expected", name, expected);
}

static bool read_count(const cJSON *item, uint64_t *ret)
{
        if (!json_is_number(item) || item->valuedouble < 0 || item->valuedouble > NUMBER_MAX ||
            item->valuedouble != floor(item->valuedouble))
                return false;
        *ret = (uint64_t)item->valuedouble;
        return true;
}

static int read_fault_text(const cJSON *item, char **place, struct error *error)
{
        char *copy;

        if (!cJSON_IsString(item))
                return refuse_member(error, item->string, "a text");
        copy = strdup(item->valuestring);
        if (!copy)
                return error_set(error, -ENOMEM, "no memory");
        free(*place);
        *place = copy;
        return 0;
}

/* 1: it is for the caller to read. */
static int read_plain(const struct member *member, const cJSON *item, void *target, struct error *error)
{
        void *place = (char *)target + member->offset;

        switch (member->kind) {
        case MEMBER_TEXT:
                return read_fault_text(item, place, error);
        case MEMBER_COUNT:
                return read_count(item, place) ? 0
                                               : refuse_member(error, item->string, "a number from 0 up");
        case MEMBER_TRUE:
        case MEMBER_FALSE:
                if (!cJSON_IsBool(item))
                        return refuse_member(error, item->string, "true or false");
                *(bool *)place = cJSON_IsTrue(item) == (member->kind == MEMBER_TRUE);
                return 0;
        case MEMBER_OTHER:
                break;
        }
        return 1;
}

static const struct member *find_member(const struct member *table, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(table[i].name, name) == 0)
                        return &table[i];
        return NULL;
}

/* ---- match */

int fault_match_read(const cJSON *json, struct fault_match *ret, struct error *error)
{
        static const char verbs[] = " list watch get create update patch delete discovery ";
        const cJSON *item;

        ret->continued = -1;
        if (json && !cJSON_IsObject(json))
                return refuse_member(error, "match", "an object");
        cJSON_ArrayForEach(item, json)
        {
                const struct member *member =
                        find_member(match_member, ELEMENTS(match_member), item->string);
                int r;

                if (!member)
                        return error_set(error, -EINVAL,
                                         "match.%s is unknown; there are verb, resource, namespace, name, "
                                         "path and continue",
                                         item->string);
                r = read_plain(member, item, ret, error);
                if (r < 0)
                        return r;
                if (r > 0 && !cJSON_IsBool(item))
                        return refuse_member(error, "match.continue", "true or false");
                if (r > 0)
                        ret->continued = cJSON_IsTrue(item) ? 1 : 0;
        }
        if (ret->verb) {
                char word[32];

                snprintf(word, sizeof(word), " %.28s ", ret->verb);
                if (!strstr(verbs, word))
                        return refuse_member(error, "match.verb",
                                             "list, watch, get, create, update, patch, delete or discovery");
        }
        return 0;
}

static int read_status(struct fault *fault, const cJSON *item, struct error *error)
{
        uint64_t status;

        if (!read_count(item, &status) || status < 200 || status > 599)
                return refuse_member(error, "status", "an HTTP status from 200 to 599");
        fault->status = (int)status;
        return 0;
}

static int read_retry_after(struct fault *fault, const cJSON *item, struct error *error)
{
        uint64_t seconds;

        if (!read_count(item, &seconds) || seconds > 1000000)
                return refuse_member(error, "retryAfter", "a number of seconds");
        fault->retry_after = (long)seconds;
        return 0;
}

static int read_latency(struct fault *fault, const cJSON *item, struct error *error)
{
        if (!cJSON_IsString(item) || duration_parse(item->valuestring, &fault->latency_usec) < 0 ||
            fault->latency_usec == 0 || fault->latency_usec > USEC_PER_HOUR)
                return refuse_member(error, "latency", "a time like \"20ms\", up to an hour,");
        return 0;
}

static int read_position(struct fault *fault, const cJSON *item, struct error *error)
{
        bool byte = strcmp(item->string, "atByte") == 0;
        uint64_t at;

        if (fault->has_position)
                return error_set(error, -EINVAL, "atEvent and atByte exclude each other");
        if (!read_count(item, &at) || (!byte && at == 0))
                return refuse_member(error, item->string,
                                     byte ? "a number of bytes" : "the number of an event, from 1");
        fault->has_position = true;
        fault->at_byte = byte;
        fault->position = byte ? at : at - 1;
        return 0;
}

static int read_error(struct fault *fault, const cJSON *item, struct error *error)
{
        _cleanup_free_ char *status = cJSON_PrintUnformatted(item);

        if (!cJSON_IsObject(item))
                return refuse_member(error, "error", "a Status object");
        text_printf(&fault->payload, "{\"type\":\"ERROR\",\"object\":%s}\n", status ? status : "{}");
        return status ? 0 : error_set(error, -ENOMEM, "no memory");
}

static int read_bytes(struct fault *fault, const cJSON *item, struct error *error)
{
        gnutls_datum_t input, output;

        if (!cJSON_IsString(item))
                return refuse_member(error, "bytes", "base64");
        input = (gnutls_datum_t){.data = (unsigned char *)item->valuestring,
                                 .size = (unsigned)strlen(item->valuestring)};
        if (gnutls_base64_decode2(&input, &output) < 0)
                return refuse_member(error, "bytes", "base64");
        text_append(&fault->payload, output.data, output.size);
        gnutls_free(output.data);
        return 0;
}

static int read_line(struct fault *fault, const cJSON *item, struct error *error)
{
        if (!cJSON_IsString(item))
                return refuse_member(error, "line", "a text");
        text_append_string(&fault->payload, item->valuestring);
        text_append_string(&fault->payload, "\n");
        return 0;
}

/* An ERROR ends its stream in order, as on a real server, unless `close` is false. */
static int read_close(struct fault *fault, const cJSON *item, struct error *error)
{
        const char *text = cJSON_GetStringValue(item);

        if (text && strcmp(text, "clean") == 0)
                fault->close = CLOSE_CLEAN;
        else if (text && strcmp(text, "cut") == 0)
                fault->close = CLOSE_CUT;
        else if (cJSON_IsFalse(item))
                fault->close = CLOSE_NOT;
        else
                return refuse_member(error, "close", "\"clean\", \"cut\" or false");
        return 0;
}

static int read_stall(struct fault *fault, const cJSON *item, struct error *error)
{
        if (!cJSON_IsBool(item))
                return refuse_member(error, "stall", "true or false");
        if (cJSON_IsTrue(item))
                fault->close = CLOSE_STALL;
        return 0;
}

static int read_causes(struct fault *fault, const cJSON *item, struct error *error)
{
        if (!cJSON_IsArray(item))
                return refuse_member(error, "causes", "a list of {reason, message, field}");
        fault->causes = item;
        return 0;
}

static int read_match(struct fault *fault, const cJSON *item, struct error *error)
{
        return fault_match_read(item, &fault->match, error);
}

static const struct {
        const char *name;
        int (*read)(struct fault *fault, const cJSON *item, struct error *error);
} special[] = {
        {"match", read_match},      {"status", read_status},   {"retryAfter", read_retry_after},
        {"atEvent", read_position}, {"atByte", read_position}, {"error", read_error},
        {"line", read_line},        {"bytes", read_bytes},     {"close", read_close},
        {"stall", read_stall},      {"causes", read_causes},   {"latency", read_latency},
};

static int read_special(struct fault *fault, const cJSON *item, struct error *error)
{
        for (size_t i = 0; i < ELEMENTS(special); i++)
                if (strcmp(special[i].name, item->string) == 0)
                        return special[i].read(fault, item, error);
        return -EINVAL;
}

static int read_member(struct fault *fault, const cJSON *item, struct error *error)
{
        const struct member *member = find_member(fault_member, ELEMENTS(fault_member), item->string);
        int r;

        if (!member)
                return error_set(error, -EINVAL,
                                 "%s is unknown; docs/devserver.md lists what a fault may say",
                                 item->string);
        r = read_plain(member, item, fault, error);
        return r > 0 ? read_special(fault, item, error) : r;
}

/* ---- the whole */

static bool acts_on_body(const struct fault *fault)
{
        return fault->payload.size > 0 || fault->close != CLOSE_NOT || fault->bytes_per_second > 0 ||
               fault->pieces > 0 || fault->no_bookmarks || fault->no_initial_events_end;
}

static int check(struct fault *fault, struct error *error)
{
        int answers = (fault->status > 0) + fault->hang + fault->reset;

        if (fault->payload.failed)
                return error_set(error, -ENOMEM, "no memory");
        if (answers > 1)
                return error_set(error, -EINVAL, "status, hang and reset exclude each other");
        if (answers == 1 && acts_on_body(fault))
                return error_set(
                        error, -EINVAL,
                        "status, hang and reset take the place of the answer: nothing can be done to "
                        "its body as well");
        if (answers == 0 && fault->carried_out)
                return error_set(error, -EINVAL,
                                 "carriedOut: only beside status, hang and reset; else all requests are");
        if (answers == 0 && !acts_on_body(fault) && fault->latency_usec == 0 && !fault->warning)
                return error_set(
                        error, -EINVAL,
                        "it does nothing: one of status, hang, reset, latency, warning, error, line, bytes, close, stall, "
                        "bytesPerSecond, pieces, bookmarks or initialEventsEnd is missing");
        if (fault->has_position && fault->payload.size == 0 && fault->close == CLOSE_NOT)
                return error_set(error, -EINVAL,
                                 "atEvent and atByte say where: what happens there is missing");
        return 0;
}

static int read_fault(struct fault *fault, const cJSON *json, struct error *error)
{
        const cJSON *item;
        int r = 0;

        if (!cJSON_IsObject(json))
                return error_set(error, -EINVAL, "a fault is an object");
        fault->match.continued = -1;
        fault->retry_after = -1;
        fault->times = 1;
        fault->references = 1;
        fault->json = cJSON_Duplicate(json, true);
        if (!fault->json)
                return error_set(error, -ENOMEM, "no memory");
        fault->close = cJSON_HasObjectItem(json, "error") ? CLOSE_CLEAN : CLOSE_NOT;
        cJSON_ArrayForEach(item, fault->json) if (r >= 0) r = read_member(fault, item, error);
        return r < 0 ? r : check(fault, error);
}

static int add_one(struct server *server, const cJSON *json, struct error *error)
{
        struct fault *fault = calloc(1, sizeof(*fault)), **place = &server->fault;
        int r = fault ? read_fault(fault, json, error) : error_set(error, -ENOMEM, "no memory");

        if (r < 0 || !fault) {
                fault_unref(fault);
                return r;
        }
        fault->id = ++server->last_fault;
        while (*place)
                place = &(*place)->next;
        *place = fault;
        return 0;
}

int faults_add(struct server *server, const cJSON *json, uint64_t *ret_first, struct error *error)
{
        uint64_t first = server->last_fault + 1;
        const cJSON *item;
        int r = 0;

        if (!cJSON_IsArray(json))
                r = add_one(server, json, error);
        else
                cJSON_ArrayForEach(item, json) if (r >= 0) r = add_one(server, item, error);
        if (r < 0)
                for (uint64_t id = first; id <= server->last_fault; id++)
                        faults_remove(server, id);
        else
                *ret_first = first;
        return r;
}

struct load {
        struct server *server;
        const char *path;
};

static int load_one(const cJSON *json, size_t line, void *userdata, struct error *error)
{
        struct load *load = userdata;
        _cleanup_error_ struct error inner = ERROR_NONE;
        int r = add_one(load->server, json, &inner);

        return r < 0 ? error_set(error, r, "%s:%zu: %s", load->path, line, error_message(&inner)) : 0;
}

int faults_load(struct server *server, const char *path, struct error *error)
{
        struct load load = {server, path};

        return yaml_each_entry(path, load_one, &load, error);
}
