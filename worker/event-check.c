/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler may say in `events`: events.k8s.io/v1's own rules. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "worker/event.h"

#define EVENTS_MAX 100 /* of one answer */
#define WORD_MAX   128 /* the API's limit for reason and action */
#define WORD                                                                                                \
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                                    \
        "_-.:"

static int wrong(struct error *error, int index, const char *key, const char *text)
{
        return error_set(error, -EINVAL, "the handler's answer: events[%d]%s%s: %s", index,
                         key[0] ? "." : "", key, text);
}

static int check_member(const cJSON *member, int index, struct error *error)
{
        const char *key = member->string, *text = cJSON_GetStringValue(member);
        bool is_word = strcmp(key, "reason") == 0 || strcmp(key, "action") == 0;

        if (!is_word && strcmp(key, "type") != 0 && strcmp(key, "note") != 0)
                return wrong(error, index, key, "is unknown; known are type, reason, action and note");
        if (!text)
                return wrong(error, index, key, "must be a text");
        if (strcmp(key, "type") == 0 && strcmp(text, "Normal") != 0 && strcmp(text, "Warning") != 0)
                return wrong(error, index, key, "must be \"Normal\" or \"Warning\"");
        if (is_word && (strlen(text) == 0 || strlen(text) > WORD_MAX || strspn(text, WORD) != strlen(text)))
                return wrong(error, index, key, "must be one word of at most 128 characters");
        return 0;
}

int events_check(const cJSON *list, struct error *error)
{
        const cJSON *item, *member;
        int index = 0;

        if (!cJSON_IsArray(list))
                return error_set(error, -EINVAL, "the handler's answer: events: must be a list");
        cJSON_ArrayForEach(item, list)
        {
                if (index == EVENTS_MAX)
                        return wrong(error, index, "", "more than 100 are not taken");
                if (!cJSON_IsObject(item))
                        return wrong(error, index, "", "must be an object");
                cJSON_ArrayForEach(member, item)
                {
                        int r = check_member(member, index, error);

                        if (r < 0)
                                return r;
                }
                if (!cJSON_GetObjectItemCaseSensitive(item, "reason"))
                        return wrong(error, index, "reason", "is missing");
                index++;
        }
        return 0;
}
