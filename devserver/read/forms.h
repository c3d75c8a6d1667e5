/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The forms in which a client may want objects: as they are, as rows for kubectl, or metadata alone. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "devserver/http/http-request.h"

enum representation { REPRESENTATION_PLAIN, REPRESENTATION_TABLE, REPRESENTATION_METADATA };

enum representation representation_of(const struct request *request);

/* One object by itself. `head`: a table names its columns. */
void write_object(struct text *out, const struct resource *resource, const struct version *version,
                  enum representation representation, bool head);
/* Answers with one object, in the form that is asked for. */
void answer_version(struct request *request, int status, const struct version *version);
/* One object in a list: built-in kinds without apiVersion and kind, a table's row. */
void write_item(struct text *out, const struct resource *resource, const struct version *version,
                enum representation representation);
/* A list up to the content of its metadata, and from the end of the metadata to its first item. */
void write_list_head(struct text *out, const struct resource *resource, enum representation representation);
struct list_metadata {
        uint64_t resource_version;
        char token[48];   /* "" on the last page */
        size_t remaining; /* 0: not told */
};
void write_list_begin(struct text *out, const struct resource *resource, enum representation representation,
                      const struct list_metadata *metadata);
void write_list_end(struct text *out, const struct resource *resource, enum representation representation,
                    const struct list_metadata *metadata);

/* "5s", "3m10s", "4d2h": as kubectl shows ages. */
void age_format(int64_t seconds, char *out, size_t size);
/* The value at a path of a CRD's additionalPrinterColumns: ".spec.x", ".a['b']", ".a[0].b",
 * ".status.conditions[?(@.type==\"Ready\")].status". NULL when there is none. */
const cJSON *column_value(const cJSON *object, const char *path);
