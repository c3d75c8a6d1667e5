/* SPDX-License-Identifier: Apache-2.0 */
/* See answer-list.h. */
#include "worker/run/answer-list.h"

#include <errno.h>

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
