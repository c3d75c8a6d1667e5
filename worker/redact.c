/* SPDX-License-Identifier: Apache-2.0 */
/* See redact.h. JSON that holds no Secret is copied byte by byte. */
#include "worker/redact.h"

#include <string.h>

#include "worker/confidential.h"
#include "worker/watch.h"
#include "json/json.h"

DEFINE_CLEANUP(cJSON *, cJSON_Delete);

static void keep_only(cJSON *object, const char *const *name, size_t count)
{
        cJSON *member = object ? object->child : NULL;

        while (member) {
                cJSON *next = member->next;
                bool keep = false;

                for (size_t i = 0; i < count; i++)
                        keep = keep || (member->string && strcmp(member->string, name[i]) == 0);
                if (!keep)
                        cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
                member = next;
        }
}

/* Items of a SecretList lack their kind. */
static bool is_to_go(const struct worker *worker, const cJSON *value)
{
        const char *version = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "apiVersion"));
        const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "kind"));

        return kind && (strcmp(kind, "Secret") == 0 || strcmp(kind, "SecretList") == 0 ||
                        (version && is_confidential(worker, version, kind)));
}

static void reduce(cJSON *object)
{
        static const char *const of_object[] = {"apiVersion", "kind", "metadata", "type"};
        static const char *const of_metadata[] = {"name", "namespace", "uid"};

        keep_only(object, of_object, ELEMENTS(of_object));
        keep_only(cJSON_GetObjectItemCaseSensitive(object, "metadata"), of_metadata, ELEMENTS(of_metadata));
}

/* Its keys, each with the same word. NULL: the Secret has none, or no memory. */
static cJSON *redact_values(const cJSON *secret, const char *name, const char *word)
{
        const cJSON *values = cJSON_GetObjectItemCaseSensitive(secret, name), *value;
        cJSON *words = cJSON_IsObject(values) ? cJSON_CreateObject() : NULL;

        if (words)
                cJSON_ArrayForEach(value, values) cJSON_AddStringToObject(words, value->string, word);
        return words;
}

/* A handler that gets a recorded request again finds the keys that it looks for, and what it reads of `data` is
 * base64. */
static void reduce_secret(cJSON *secret)
{
        cJSON *data = redact_values(secret, "data", "cmVkYWN0ZWQ=");
        cJSON *strings = redact_values(secret, "stringData", "redacted");

        reduce(secret);
        if (data)
                cJSON_AddItemToObject(secret, "data", data);
        if (strings)
                cJSON_AddItemToObject(secret, "stringData", strings);
}

static bool redact(const struct worker *worker, cJSON *value)
{
        cJSON *member;
        bool found = false;

        if (is_to_go(worker, value)) {
                reduce_secret(value);
                return true;
        }
        cJSON_ArrayForEach(member, value) found = redact(worker, member) || found;
        return found;
}

/* Escapes may hide the word "Secret". */
static bool may_hold_secret(const struct worker *worker, const char *bytes, size_t size)
{
        for (size_t i = 0; i < worker->watch_count; i++)
                if (worker->watch[i].config->confidential)
                        return true;
        return memmem(bytes, size, "Secret", 6) || memmem(bytes, size, "\\u", 2);
}

/* In valid JSON, line breaks never stand inside a string. */
static void append_on_one_line(struct text *out, const char *bytes, size_t size)
{
        size_t start = out->size;

        if (text_append(out, bytes, size) < 0)
                return;
        for (size_t i = start; i < out->size; i++)
                if (out->data[i] == '\n' || out->data[i] == '\r')
                        out->data[i] = ' ';
}

void redact_append(const struct worker *worker, struct text *out, const char *bytes, size_t size,
                   bool confidential, bool *ret_redacted)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *tree = NULL;
        _cleanup_free_ char *left = NULL;
        bool suspect = confidential || may_hold_secret(worker, bytes, size);

        while (size > 0 && strchr(" \t\r\n", bytes[size - 1]))
                size--;
        if (size == 0) {
                text_append_string(out, "null");
                return;
        }
        tree = json_parse(bytes, size);
        if (!tree || (confidential && !cJSON_IsObject(tree))) {
                /* A text that merely begins like JSON could hold anything. */
                *ret_redacted = *ret_redacted || suspect;
                if (suspect)
                        text_append_string(out, "null");
                else
                        text_json_bytes(out, bytes, size);
                return;
        }
        if (confidential)
                reduce(tree);
        if (!confidential && (!suspect || !redact(worker, tree))) {
                append_on_one_line(out, bytes, size);
                return;
        }
        *ret_redacted = true;
        left = cJSON_PrintUnformatted(tree);
        text_append_string(out, left ? left : "null");
}
