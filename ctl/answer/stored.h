/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <cjson/cJSON.h>

#include "store/record.h"
#include "store/store.h"

/* Reads from the watch's store the object that an answer to "explain" is about. 0; -ENOENT: it is not there;
 * or the errno of the store. */
int ctl_read_store(const cJSON *answer, const char *key, struct store_object *ret);
