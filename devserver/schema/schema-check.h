/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is wrong with a schema. */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "devserver/schema/schema-mistakes.h"

struct schema_report {
        struct mistakes *mistakes;
        cJSON *unknown;        /* a list of text: the ways to keywords that no schema has */
        bool rules;            /* it has rules in CEL */
        char undecodable[400]; /* "", or why there is no more to say */
};

/* Takes out what is unknown or null. prefix: the way to the schema; sent_prefix: the same as it was sent. Only a
 * schema in which nothing is wrong may be used for objects. */
void schema_check(cJSON *schema, const char *prefix, const char *sent_prefix, bool status_subresource,
                  struct schema_report *report);
