/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small helpers over an object's tree. Texts that are absent read as "". */
#include "devserver/server.h"

cJSON *tree_metadata(const cJSON *object); /* NULL when there is none */
const char *tree_text(const cJSON *object, const char *name);
void tree_set_text(cJSON *object, const char *name, const char *text);
void tree_set_time(cJSON *object, const char *name); /* to now, as the API writes times */
size_t tree_finalizer_count(const cJSON *object);
bool request_is_dry_run(const struct request *request);
