/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/tree.h"

#include <string.h>
#include <time.h>

cJSON *tree_metadata(const cJSON *object)
{
        return cJSON_GetObjectItemCaseSensitive(object, "metadata");
}

const char *tree_text(const cJSON *object, const char *name)
{
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

        return text ? text : "";
}

void tree_set_text(cJSON *object, const char *name, const char *text)
{
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        cJSON_AddStringToObject(object, name, text);
}

void tree_set_time(cJSON *object, const char *name)
{
        time_t now = time(NULL);
        struct tm tm;
        char text[32];

        gmtime_r(&now, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        tree_set_text(object, name, text);
}

bool request_is_dry_run(const struct request *request)
{
        const char *value = request_argument(request, "dryRun");

        return value && strcmp(value, "All") == 0;
}

size_t tree_finalizer_count(const cJSON *object)
{
        return (size_t)cJSON_GetArraySize(
                cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "finalizers"));
}
