/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The mistakes of a configuration, each with its place. Private to config/. */
#include "config/internal.h"

/* Where a top-level key was set; NULL if it was not. */
const struct place *place_find(const struct reader *reader, const char *key);

/* Adds a problem at a node (NULL: where the key was set, or else the file). warning: it does not prevent the
 * start. key: as people write it, "watches[0].name". */
void problem_add(struct reader *reader, const yaml_node_t *node, bool warning, const char *key,
                 const char *format, ...) _printf_(5, 6);

/* Notes that a check was not possible. Where the reason is not the configuration, the next start may find it
 * right. error: a negative errno, or the answer of a program that was asked. */
void note_system_error(struct reader *reader, int error);

/* Nodes of the document that is being read, which owns all that these return. Private to config/. */
const char *node_text(const yaml_node_t *node); /* NULL: it is no scalar, or NULL */

/* The value of a key. NULL if there is none, or `mapping` is no mapping, or NULL. */
yaml_node_t *mapping_find(struct reader *reader, yaml_node_t *mapping, const char *name);
/* One item of a list, counted from 0. NULL: there are fewer, or `list` is no list, or NULL. */
yaml_node_t *sequence_item(struct reader *reader, yaml_node_t *list, size_t number);
