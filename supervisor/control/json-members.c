/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/json-members.h"

#include <inttypes.h>

#include "base/text.h"

void json_string(struct text *json, const char *name, const char *value)
{
        text_printf(json, "\"%s\":", name);
        text_json_string(json, value ? value : "");
        text_append(json, ",", 1);
}

void json_uint64(struct text *json, const char *name, uint64_t value)
{
        text_printf(json, "\"%s\":%" PRIu64 ",", name, value);
}

void json_bool(struct text *json, const char *name, bool value)
{
        text_printf(json, "\"%s\":%s,", name, value ? "true" : "false");
}

void json_close(struct text *json, const char *bracket)
{
        if (json->size > 0 && json->data[json->size - 1] == ',')
                json->size--;
        text_append_string(json, bracket);
}
