/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* YAML 1.1 as trees, as kubectl and the real server read it; JSON is YAML, so one reader serves both. */
#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/* One object in JSON or YAML. The tree is the caller's; NULL: it is neither, too large, or there is no
 * memory. */
cJSON *yaml_parse_object(const struct text *text);

/* Visits each document of a file that is an object; empty ones are left out. A negative return ends that,
 * and is returned. -EINVAL: it is no YAML, or a document is no object, with file:line in the error; or the
 * file's errno. */
typedef int (*yaml_object_t)(cJSON *document, void *userdata, struct error *error);
int yaml_each_document(const char *path, yaml_object_t take, void *userdata, struct error *error);

/* Likewise, but each scalar is a text, just as it is written: 1.10, 0x10, yes. */
int yaml_each_text_document(const char *path, yaml_object_t take, void *userdata, struct error *error);

/* Visits each entry of a file that is a list, with its line. Errors as above. */
typedef int (*yaml_entry_t)(const cJSON *entry, size_t line, void *userdata, struct error *error);
int yaml_each_entry(const char *path, yaml_entry_t take, void *userdata, struct error *error);
