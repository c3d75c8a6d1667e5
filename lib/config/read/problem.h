/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The mistakes of a configuration, each with its place. Private to config/. */
#include "config/internal.h"

/* Where a key of the document itself was set. NULL: nowhere. */
const struct place *place_find(const struct reader *reader, const char *key);

/* Adds a problem at a node (NULL: where the key was set, or else the file). warning: it does not prevent the
 * start. key: as people write it, "watches[0].name". */
void problem_add(struct reader *reader, const yaml_node_t *node, bool warning, const char *key,
                 const char *format, ...) _printf_(5, 6);

/* Notes that a check was not possible. Where the reason is not the configuration, the next start may find it
 * right. error: a negative errno, or the answer of a program that was asked. */
void note_system_error(struct reader *reader, int error);
