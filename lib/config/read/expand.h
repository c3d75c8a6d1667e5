/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Texts that stand for others. Private to config/. */
#include "config/internal.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_" /* of a variable */

/* ${NAME} becomes what the environment says, $$ a dollar sign; *value is replaced. false: a problem
 * was added, or there is no memory, and *value is as it was written. */
bool expand_text(struct reader *reader, const yaml_node_t *node, const char *key, char **value);
/* "./" and "../" are of the file that is read; *path is replaced. */
void find_beside_file(struct reader *reader, char **path);
/* *place becomes a copy of the text. 0, or -ENOMEM, which is noted. */
int keep_text(struct reader *reader, char **place, const char *text);
