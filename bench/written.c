/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/written.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_SIZE 64 /* ,"annotations": and ,"status": */

/* Members one by one: null removes. What a member holds is replaced whole, which is enough for both. */
static void merge_members(cJSON *into, const cJSON *patch)
{
        const cJSON *member;

        cJSON_ArrayForEach(member, patch)
        {
                cJSON_DeleteItemFromObjectCaseSensitive(into, member->string);
                if (!cJSON_IsNull(member))
                        cJSON_AddItemToObject(into, member->string, cJSON_Duplicate(member, 1));
        }
}

static void merge(char **text, const cJSON *patch)
{
        cJSON *object;

        if (!cJSON_IsObject(patch))
                return;
        object = *text ? cJSON_Parse(*text) : cJSON_CreateObject();
        if (!object)
                return;
        merge_members(object, patch);
        free(*text);
        *text = object->child ? cJSON_PrintUnformatted(object) : NULL;
        cJSON_Delete(object);
}

void written_merge(struct written *written, const char *body, size_t size)
{
        cJSON *patch = cJSON_ParseWithLength(body, size);

        if (!patch)
                return;
        merge(&written->annotations,
              cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(patch, "metadata"),
                                               "annotations"));
        merge(&written->status, cJSON_GetObjectItemCaseSensitive(patch, "status"));
        cJSON_Delete(patch);
}

size_t written_size(const struct written *written)
{
        return NAMES_SIZE + (written->annotations ? strlen(written->annotations) : 0) +
               (written->status ? strlen(written->status) : 0);
}
