/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/answer.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"

/* What later versions bring is refused by name: nobody shall believe that it was done. */
static const char *const later[] = {"conditions", "children", "events", "done"};

/* Members of the object that a patch may not touch, and why. */
static const struct {
        const char *parent, *name, *why;
} untouchable[] = {
        {NULL, "apiVersion", "an object cannot change its kind"},
        {NULL, "kind", "an object cannot change its kind"},
        {NULL, "status", "use the answer's own key `status`"},
        {"metadata", "name", "an object cannot change its name"},
        {"metadata", "namespace", "an object cannot change its namespace"},
        {"metadata", "uid", "it belongs to the API server"},
        {"metadata", "resourceVersion",
         "it is set by reconciled, so that no change of others is overwritten"},
        {"metadata", "managedFields", "it belongs to the API server"},
        {"metadata", "creationTimestamp", "it belongs to the API server"},
        {"metadata", "generation", "it belongs to the API server"},
};

static int wrong(struct error *error, const char *key, const char *text)
{
        return error_set(error, -EINVAL, "the handler's answer: %s: %s", key, text);
}

static int check_patch(const cJSON *patch, struct error *error)
{
        for (size_t i = 0; i < ELEMENTS(untouchable); i++) {
                const char *parent = untouchable[i].parent;
                const cJSON *object = parent ? cJSON_GetObjectItemCaseSensitive(patch, parent) : patch;
                char key[64];

                if (!cJSON_GetObjectItemCaseSensitive(object, untouchable[i].name))
                        continue;
                snprintf(key, sizeof(key), "patch.%s%s%s", parent ? parent : "", parent ? "." : "",
                         untouchable[i].name);
                return wrong(error, key, untouchable[i].why);
        }
        return 0;
}

static int take_requeue(struct answer *answer, const cJSON *value, struct error *error)
{
        const char *text = cJSON_GetStringValue(value);

        if (!text || duration_parse(text, &answer->requeue_after_usec) < 0)
                return wrong(error, "requeueAfter", "must be a duration as text, like \"30s\" or \"1h30m\"");
        return 0;
}

static int take_object(const cJSON **place, const cJSON *value, const char *key, struct error *error)
{
        if (cJSON_IsNull(value))
                return 0;
        if (!cJSON_IsObject(value))
                return wrong(error, key, "must be an object");
        *place = value;
        return 0;
}

static int unknown_key(const char *key, struct error *error)
{
        for (size_t i = 0; i < ELEMENTS(later); i++)
                if (strcmp(later[i], key) == 0)
                        return wrong(error, key, "is not supported by this version");
        return wrong(error, key, "is unknown; known are status, patch, requeueAfter and message");
}

static int take_member(struct answer *answer, const cJSON *value, struct error *error)
{
        const char *key = value->string;

        if (strcmp(key, "status") == 0)
                return take_object(&answer->status, value, key, error);
        if (strcmp(key, "patch") == 0) {
                int r = take_object(&answer->patch, value, key, error);

                return r < 0 || !answer->patch ? r : check_patch(answer->patch, error);
        }
        if (strcmp(key, "requeueAfter") == 0)
                return take_requeue(answer, value, error);
        if (strcmp(key, "message") != 0)
                return unknown_key(key, error);
        if (!cJSON_IsString(value))
                return wrong(error, key, "must be a text");
        answer->message = cJSON_GetStringValue(value);
        return 0;
}

static bool is_space(char c)
{
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

int answer_parse(const char *output, size_t size, struct answer *ret, struct error *error)
{
        struct answer answer = {0};
        const char *end = NULL;
        const cJSON *member;

        while (size > 0 && is_space(*output)) {
                output++;
                size--;
        }
        while (size > 0 && is_space(output[size - 1]))
                size--;
        if (size == 0) {
                *ret = answer;
                return 0;
        }
        if (*output != '{')
                return 1;
        answer.root = cJSON_ParseWithLengthOpts(output, size, &end, false);
        if (!answer.root || end != output + size) {
                cJSON_Delete(answer.root);
                return error_set(error, -EINVAL,
                                 "the handler's answer is no valid JSON (at byte %zu of stdout)",
                                 (size_t)((end ? end : output) - output));
        }
        cJSON_ArrayForEach(member, answer.root)
        {
                int r = take_member(&answer, member, error);

                if (r < 0) {
                        answer_done(&answer);
                        return r;
                }
        }
        *ret = answer;
        return 0;
}

void answer_done(struct answer *answer)
{
        cJSON_Delete(answer->root);
        *answer = (struct answer){0};
}

/* ---- RFC 7386 */

cJSON *merge_patch(cJSON *target, const cJSON *patch)
{
        const cJSON *member;

        if (!cJSON_IsObject(patch)) {
                cJSON_Delete(target);
                return cJSON_Duplicate(patch, true);
        }
        if (!cJSON_IsObject(target)) {
                cJSON_Delete(target);
                target = cJSON_CreateObject();
        }
        cJSON_ArrayForEach(member, patch)
        {
                cJSON *old, *merged;

                if (!target)
                        return NULL;
                old = cJSON_DetachItemFromObjectCaseSensitive(target, member->string);
                if (cJSON_IsNull(member)) {
                        cJSON_Delete(old);
                        continue;
                }
                merged = merge_patch(old, member);
                if (!merged || !cJSON_AddItemToObject(target, member->string, merged)) {
                        cJSON_Delete(merged);
                        cJSON_Delete(target);
                        return NULL;
                }
        }
        return target;
}
