/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The form in which a kube-apiserver writes objects: custom resources are maps, whose keys Go sorts; the
 * others are structs, with kind, apiVersion and metadata first and status last. In texts <, > and & are
 * escaped.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>

void form_arrange(cJSON *object, bool builtin);
void form_arrange_metadata(cJSON *metadata); /* of what is a struct */
bool form_is_of_metadata(const char *name);  /* a member of it has this name */
char *form_print(const cJSON *tree);         /* NULL: no memory */
