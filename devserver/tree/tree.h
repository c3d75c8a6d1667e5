/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small helpers over an object's tree. Texts that are absent read as "". */
#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

cJSON *tree_metadata(const cJSON *object); /* NULL when there is none */
void tree_set_text(cJSON *object, const char *name, const char *text);
void tree_set_integer(cJSON *object, const char *name, int64_t value);
void tree_set_time(cJSON *object, const char *name); /* to now, as the API writes times */
void tree_set_uid(cJSON *metadata);                  /* a new one */
/* Drops the empty members of Go's metadata, so that no manager owns a field for them. */
void tree_drop_empty_metadata(const cJSON *object);
void tree_encode_secret(cJSON *secret); /* stringData into data; type Opaque unless given */
/* Replaces the member of `to` by that of `from`, or drops it if `from` has none. */
void tree_copy_member(cJSON *to, const cJSON *from, const char *name);
/* How many finalizers hold the object, without the server's own, which its collector takes away. */
size_t tree_finalizer_count(const cJSON *object);
#define FOREGROUND_FINALIZER "foregroundDeletion"
#define ORPHAN_FINALIZER     "orphan"
