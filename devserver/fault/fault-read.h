/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Faults from JSON or YAML: what is not known, or of another type, is refused by name. */
#include <cjson/cJSON.h>

#include "base/error.h"
#include "devserver/fault/fault.h"

/* Adds faults: one object or an array of them. 0, or -EINVAL with the key and what would be right; then none
 * is added. *ret_first: the id of the first, the others follow. */
int faults_add(struct server *server, const cJSON *json, uint64_t *ret_first, struct error *error);
/* A YAML list of them; errors carry file:line. */
int faults_load(struct server *server, const char *path, struct error *error);
/* Reads a "match" object, which the caller clears (fault_match_done()), also after an error; -EINVAL with
 * what is wrong. */
int fault_match_read(const cJSON *json, struct fault_match *ret, struct error *error);
