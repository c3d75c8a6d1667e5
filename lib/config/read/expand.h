/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Expansion of texts. Private to config/. */
#include "config/internal.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_" /* of a variable */

/* Replaces ${NAME} in *value by the variable of the environment, and $$ by a dollar sign. False if a problem
 * was added, or without memory; then *value is unchanged. */
bool expand_text(struct reader *reader, const yaml_node_t *node, const char *key, char **value);
/* "./" and "../" are of the file that is read; *path is replaced. */
void find_beside_file(struct reader *reader, char **path);
/* *place becomes a copy of the text. 0, or -ENOMEM, which is noted. */
int keep_text(struct reader *reader, char **place, const char *text);
