/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The JSON lines that a worker writes of its runs (worker/recording.h). */
#include <cjson/cJSON.h>

/* Calls for each line; a negative return ends it, and is returned. A line that is no JSON is -EBADMSG. */
int trace_visit(const char *lines, int (*visit)(const cJSON *line, const char *type, void *userdata),
                void *userdata);
/* Of a line: "" and 0 where there is none. */
const char *trace_text(const cJSON *line, const char *name);
double trace_number(const cJSON *line, const char *name);
