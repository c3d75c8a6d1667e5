/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/trace.h"

#include <errno.h>
#include <string.h>

#include "json/json.h"

const char *trace_text(const cJSON *line, const char *name)
{
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, name));

        return text ? text : "";
}

double trace_number(const cJSON *line, const char *name)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(line, name);

        return json_number(value, 0);
}

int trace_visit(const char *lines, int (*visit)(const cJSON *line, const char *type, void *userdata),
                void *userdata)
{
        while (*lines) {
                size_t size = strcspn(lines, "\n");
                cJSON *line = json_parse(lines, size);
                int r;

                if (!line)
                        return -EBADMSG;
                r = visit(line, trace_text(line, "type"), userdata);
                cJSON_Delete(line);
                if (r < 0)
                        return r;
                lines += size + (lines[size] == '\n');
        }
        return 0;
}
