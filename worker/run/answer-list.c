/* SPDX-License-Identifier: Apache-2.0 */
/* See answer-list.h. */
#include "worker/run/answer-list.h"

#include "base/text.h"
#include <errno.h>
#include <string.h>

int answer_list_wrong(const struct answer_list *list, int index, const char *key, const char *text,
                      struct error *error)
{
        return error_set(error, -EINVAL, "the handler's answer: %s[%d]%s%s: %s", list->name, index,
                         key[0] ? "." : "", key, text);
}

int answer_list_check_item(const struct answer_list *list, const cJSON *item, int index, struct error *error)
{
        const cJSON *member;

        if (!cJSON_IsObject(item))
                return answer_list_wrong(list, index, "", "must be an object", error);
        cJSON_ArrayForEach(member, item)
        {
                int r = list->check_member(member, index, error);

                if (r < 0)
                        return r;
        }
        for (const char *const *key = list->required; *key; key++)
                if (!cJSON_GetObjectItemCaseSensitive(item, *key))
                        return answer_list_wrong(list, index, *key, "is missing", error);
        return 0;
}

/* ---- events, by the rules of events.k8s.io/v1 */

#define EVENTS_MAX 100 /* in one answer */
#define WORD_MAX   128 /* the API's limit for reason and action */
#define WORD                                                                                                \
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                                    \
        "_-.:"

static int check_member(const cJSON *member, int index, struct error *error);

static const struct answer_list events = {"events", check_member, {"reason", NULL}};

static int wrong_event(struct error *error, int index, const char *key, const char *text)
{
        return answer_list_wrong(&events, index, key, text, error);
}

static int check_member(const cJSON *member, int index, struct error *error)
{
        const char *key = member->string, *text = cJSON_GetStringValue(member);
        bool is_word = strcmp(key, "reason") == 0 || strcmp(key, "action") == 0;

        if (!is_word && strcmp(key, "type") != 0 && strcmp(key, "note") != 0)
                return wrong_event(error, index, key, "is unknown; known are type, reason, action and note");
        if (!text)
                return wrong_event(error, index, key, "must be a text");
        if (strcmp(key, "type") == 0 && strcmp(text, "Normal") != 0 && strcmp(text, "Warning") != 0)
                return wrong_event(error, index, key, "must be \"Normal\" or \"Warning\"");
        if (is_word && (strlen(text) == 0 || strlen(text) > WORD_MAX || strspn(text, WORD) != strlen(text)))
                return wrong_event(error, index, key, "must be one word of at most 128 characters");
        return 0;
}

int events_check(const cJSON *list, struct error *error)
{
        const cJSON *item;
        int index = 0;

        if (!cJSON_IsArray(list))
                return error_set(error, -EINVAL, "the handler's answer: events: must be a list");
        cJSON_ArrayForEach(item, list)
        {
                int r = index == EVENTS_MAX ? wrong_event(error, index, "", "at most 100 are accepted")
                                            : answer_list_check_item(&events, item, index, error);

                if (r < 0)
                        return r;
                index++;
        }
        return 0;
}
