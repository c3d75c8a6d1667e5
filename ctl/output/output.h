/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is written for people and for programs. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

/* Sets the look of what is printed from now on, where colours are wanted. */
enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_RED };
void ctl_colour(enum colour colour);
bool ctl_wants_colour(void); /* the output is a terminal with colours, and NO_COLOR is not set */

/* Prints a line for people; control characters in texts of others are escaped. */
void ctl_line(const char *format, ...) _printf_(1, 2);
/* JSON, with what a terminal would obey in its texts as \uXXXX. */
void ctl_put_json(const char *json);
int ctl_print_json(const cJSON *answer); /* 0; -1: no memory, and {} was printed */
void ctl_print_yaml(const cJSON *answer);
/* Reports what was done: prints a line, or for programs the answer (may be NULL) with the members done and
 * message added. Returns the exit code. */
int ctl_done(bool json, cJSON *answer, const char *format, ...) _printf_(3, 4);

/* Says what failed; returns the exit code. */
int ctl_failed(int status, const struct error *error);

/* What differs between two JSON values, one line a leaf: "- path: old", "+ path: new". Without what the API server alone
 * keeps of an object (managedFields, resourceVersion and the like). Either may be NULL: all of the other is new,
 * or gone. Returns how many leaves were written to stdout. */
size_t difference_print(const cJSON *before, const cJSON *after, const char *indent);

/* Manifests as YAML. */
#define MANIFEST_COMMENT "#" /* a member with a text that stands above its object, which is in a list */

/* A document of its own, with the line "---" above it. Scalars, objects, lists of strings and lists of
 * objects. */
void manifest_write(struct text *out, const cJSON *manifest);
void manifest_strip_comments(cJSON *value);
