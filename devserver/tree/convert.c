/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events are the one built-in kind that is served by two groups: kept as core/v1 has them, and renamed for
 * clients that read or write events.k8s.io/v1.
 */
#include "devserver/tree/convert.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "json/json.h"

#define GROUP_VERSION "events.k8s.io/v1"

/* Which members there are, in the order of Go's structs, and their values when nothing was said. */
struct member {
        const char *name;
        enum { ABSENT, EMPTY_OBJECT, EMPTY_TEXT, NONE } otherwise;
};

static const struct member of_core[] = {
        {"involvedObject", EMPTY_OBJECT},
        {"reason", ABSENT},
        {"message", ABSENT},
        {"source", EMPTY_OBJECT},
        {"firstTimestamp", NONE},
        {"lastTimestamp", NONE},
        {"count", ABSENT},
        {"type", ABSENT},
        {"eventTime", NONE},
        {"series", ABSENT},
        {"action", ABSENT},
        {"related", ABSENT},
        {"reportingComponent", EMPTY_TEXT},
        {"reportingInstance", EMPTY_TEXT},
};

static const struct member of_group[] = {
        {"eventTime", NONE},
        {"series", ABSENT},
        {"reportingController", ABSENT},
        {"reportingInstance", ABSENT},
        {"action", ABSENT},
        {"reason", ABSENT},
        {"regarding", EMPTY_OBJECT},
        {"related", ABSENT},
        {"note", ABSENT},
        {"type", ABSENT},
        {"deprecatedSource", EMPTY_OBJECT},
        {"deprecatedFirstTimestamp", NONE},
        {"deprecatedLastTimestamp", NONE},
        {"deprecatedCount", ABSENT},
};

static const struct {
        const char *core, *group;
} renamed[] = {
        {"involvedObject", "regarding"},
        {"message", "note"},
        {"source", "deprecatedSource"},
        {"firstTimestamp", "deprecatedFirstTimestamp"},
        {"lastTimestamp", "deprecatedLastTimestamp"},
        {"count", "deprecatedCount"},
        {"reportingComponent", "reportingController"},
};

bool convert_is_event(const cJSON *object)
{
        const char *version = json_text(object, "apiVersion");

        return strcmp(json_text(object, "kind"), "Event") == 0 &&
               (strcmp(version, "v1") == 0 || strcmp(version, GROUP_VERSION) == 0);
}

static int rename_member(cJSON *object, const char *from, const char *to)
{
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(object, from);

        if (!item)
                return 0;
        cJSON_DeleteItemFromObjectCaseSensitive(object, to);
        return cJSON_AddItemToObject(object, to, item) ? 0 : -ENOMEM;
}

int convert_to(cJSON *object, const char *api_version)
{
        cJSON *item = cJSON_GetObjectItemCaseSensitive(object, "apiVersion");
        bool to_group = strcmp(api_version, GROUP_VERSION) == 0;

        if (!cJSON_IsString(item) || strcmp(item->valuestring, api_version) == 0)
                return 0;
        for (size_t i = 0; convert_is_event(object) && i < ELEMENTS(renamed); i++)
                if (rename_member(object, to_group ? renamed[i].core : renamed[i].group,
                                  to_group ? renamed[i].group : renamed[i].core) < 0)
                        return -ENOMEM;
        return cJSON_SetValuestring(item, api_version) ? 0 : -ENOMEM;
}

static bool is_empty(const cJSON *item)
{
        return !item || cJSON_IsNull(item) || (cJSON_IsString(item) && !item->valuestring[0]) ||
               (cJSON_IsNumber(item) && item->valuedouble == 0);
}

static cJSON *otherwise(const struct member *member)
{
        return member->otherwise == EMPTY_OBJECT ? cJSON_CreateObject()
               : member->otherwise == EMPTY_TEXT ? cJSON_CreateString("")
                                                 : cJSON_CreateNull();
}

/* Taken out and put to the end one by one, which leaves them in order. */
static void put_in_order(cJSON *event, const struct member *member, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(event, member[i].name);

                if (is_empty(item)) {
                        cJSON_Delete(item);
                        item = member[i].otherwise == ABSENT ? NULL : otherwise(&member[i]);
                }
                if (item)
                        cJSON_AddItemToObject(event, member[i].name, item);
        }
}

void convert_arrange_event(cJSON *event)
{
        if (strcmp(json_text(event, "apiVersion"), GROUP_VERSION) == 0)
                put_in_order(event, of_group, ELEMENTS(of_group));
        else
                put_in_order(event, of_core, ELEMENTS(of_core));
}
