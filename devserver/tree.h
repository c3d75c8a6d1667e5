/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small helpers over an object's tree. Texts that are absent read as "". */
#include "devserver/server.h"

cJSON *tree_metadata(const cJSON *object);
return cJSON_GetObjectItemCaseSensitive(object, "metadata");
}
const char *tree_text(const cJSON *object, const char *name);
void tree_set_text(cJSON *object, const char *name, const char *text);
cJSON_DeleteItemFromObjectCaseSensitive(object, name);
cJSON_AddStringToObject(object, name, text);
}
void tree_set_time(cJSON *object, const char *name);
gmtime_r(&now, &tm);
strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
tree_set_text(object, name, text);
}
bool request_is_dry_run(const struct request *request);
size_t tree_finalizer_count(const cJSON *object);
