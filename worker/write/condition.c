/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/write/condition.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "object/scan.h"
#include "worker/run/answer-list.h"
#include "json/json.h"

#define CONDITIONS_MAX 100 /* in one answer; each is looked up among the others */

#define TYPE_MAX    316
#define REASON_MAX  1024
#define MESSAGE_MAX 32768

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define DIGITS  "0123456789"

/* ---- what a handler may say */

static int check_condition_member(const cJSON *member, int index, struct error *error);

static const struct answer_list conditions = {
        "conditions", check_condition_member, {"type", "status", NULL}};

static int wrong_condition(struct error *error, int index, const char *key, const char *text)
{
        return answer_list_wrong(&conditions, index, key, text, error);
}

static bool is_made_of(const char *text, size_t max, const char *first, const char *inner, const char *last)
{
        size_t length = strlen(text);

        return length > 0 && length <= max && strchr(first, text[0]) && strspn(text, inner) == length &&
               strchr(last, text[length - 1]);
}

/* Whether it is a DNS subdomain, as the API server checks it. */
static bool is_prefix(const char *text, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                bool edge = i == 0 || i + 1 == size || text[i - 1] == '.' || text[i + 1] == '.';

                if (!strchr(edge && (i == 0 || i + 1 == size || text[i] != '.') ? LOWER DIGITS
                                                                                : LOWER DIGITS "-.",
                            text[i]))
                        return false;
                if (text[i] == '.' && text[i - 1] == '.')
                        return false;
        }
        return size > 0 && size <= 253;
}

static bool is_type(const char *text)
{
        const char *slash = strchr(text, '/');

        return is_made_of(slash ? slash + 1 : text, TYPE_MAX, LETTERS DIGITS, LETTERS DIGITS "-_.",
                          LETTERS DIGITS) &&
               (!slash || is_prefix(text, (size_t)(slash - text)));
}

static bool is_reason(const char *text)
{
        return is_made_of(text, REASON_MAX, LETTERS, LETTERS DIGITS "_,:", LETTERS DIGITS "_");
}

static bool is_status(const char *text)
{
        return strcmp(text, "True") == 0 || strcmp(text, "False") == 0 || strcmp(text, "Unknown") == 0;
}

static int check_condition_member(const cJSON *member, int index, struct error *error)
{
        const char *key = member->string, *text = cJSON_GetStringValue(member);

        if (strcmp(key, "lastTransitionTime") == 0 || strcmp(key, "observedGeneration") == 0)
                return wrong_condition(error, index, key, "it is set by reconciled");
        if (strcmp(key, "type") != 0 && strcmp(key, "status") != 0 && strcmp(key, "reason") != 0 &&
            strcmp(key, "message") != 0)
                return wrong_condition(error, index, key,
                                       "is unknown; known are type, status, reason and message");
        if (!text)
                return wrong_condition(error, index, key, "must be a text");
        if (strcmp(key, "type") == 0 && !is_type(text))
                return wrong_condition(
                        error, index, key,
                        "must be a name like Available or example.com/Available (letters, digits, '-', "
                        "'_', '.')");
        if (strcmp(key, "status") == 0 && !is_status(text))
                return wrong_condition(error, index, key, "must be \"True\", \"False\" or \"Unknown\"");
        if (strcmp(key, "reason") == 0 && !is_reason(text))
                return wrong_condition(error, index, key, "must be one word like MinimumReplicasAvailable");
        if (strcmp(key, "message") == 0 && strlen(text) > MESSAGE_MAX)
                return wrong_condition(error, index, key, "has more than 32768 bytes");
        return 0;
}

static cJSON *find(const cJSON *list, const char *type)
{
        cJSON *item;

        cJSON_ArrayForEach(item, list)
        {
                const char *text = json_text_of(item, "type");

                if (text && strcmp(text, type) == 0)
                        return item;
        }
        return NULL;
}

const cJSON *conditions_find(const cJSON *list, const char *type)
{
        return find(list, type);
}

int conditions_check(const cJSON *list, struct error *error)
{
        const cJSON *item;
        int index = 0;

        if (!cJSON_IsArray(list))
                return error_set(error, -EINVAL, "the handler's answer: conditions: must be a list");
        if (cJSON_GetArraySize(list) > CONDITIONS_MAX)
                return error_set(error, -EINVAL, "the handler's answer: conditions: more than %d",
                                 CONDITIONS_MAX);
        cJSON_ArrayForEach(item, list)
        {
                int r = answer_list_check_item(&conditions, item, index, error);

                if (r < 0)
                        return r;
                if (find(list, condition_read(item).type) != item)
                        return wrong_condition(error, index, "type", "stands there twice");
                index++;
        }
        return 0;
}

struct condition condition_read(const cJSON *item)
{
        return (struct condition){
                .type = json_text_of(item, "type"),
                .status = json_text_of(item, "status"),
                .reason = json_text_of(item, "reason"),
                .message = json_text_of(item, "message"),
        };
}

/* ---- merging */

int conditions_of(const char *json, cJSON **ret)
{
        struct scan_object object;
        struct span list = {0};
        int r = scan_object(json, strlen(json), &object);

        if (r >= 0)
                list = scan_get(object.status, "conditions");
        if (r >= 0 && list.start && list.start[0] == '[')
                return json_read_bounded(list.start, list.size, ret, NULL);
        if (r >= 0)
                *ret = cJSON_CreateArray();
        return r < 0 ? r : *ret ? 0 : -ENOMEM;
}

static int put(cJSON *item, const char *key, cJSON *value)
{
        if (!value)
                return -ENOMEM;
        if (json_member(item, key) ? cJSON_ReplaceItemInObjectCaseSensitive(item, key, value)
                                   : cJSON_AddItemToObject(item, key, value))
                return 0;
        cJSON_Delete(value);
        return -ENOMEM;
}

static bool says(const cJSON *item, const char *key, const char *text)
{
        const char *said = json_text_of(item, key);

        return said && strcmp(said, text) == 0;
}

static int put_text(cJSON *item, const char *key, const char *text)
{
        return says(item, key, text) ? 0 : put(item, key, cJSON_CreateString(text));
}

static const char *default_reason(const char *status)
{
        return strcmp(status, "True") == 0    ? "Succeeded"
               : strcmp(status, "False") == 0 ? "Failed"
                                              : "Unknown";
}

int condition_set(cJSON *list, const struct condition *condition, int64_t generation, const char *now)
{
        const char *reason = condition->reason ? condition->reason : default_reason(condition->status);
        cJSON *item = find(list, condition->type);
        int r = 0;

        if (!item) {
                item = cJSON_CreateObject();
                if (!item || !cJSON_AddItemToArray(list, item)) {
                        cJSON_Delete(item);
                        return -ENOMEM;
                }
        }
        if (!says(item, "status", condition->status) || !json_text_of(item, "lastTransitionTime"))
                r = put_text(item, "lastTransitionTime", now);
        if (r >= 0)
                r = put_text(item, "type", condition->type);
        if (r >= 0)
                r = put_text(item, "status", condition->status);
        if (r >= 0)
                r = put_text(item, "reason", reason);
        if (r >= 0)
                r = put_text(item, "message", condition->message ? condition->message : "");
        if (r >= 0 && generation > 0)
                r = put(item, "observedGeneration", json_new_integer(generation));
        return r;
}
