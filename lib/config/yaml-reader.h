/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Applies the tables to YAML, and has each watch checked as it is read. Private to config/. */
#include "config/internal.h"

struct key_table;

/* Reads a mapping into `target`; path is the key of the mapping ("" = the document). What is wrong with
 * it is added to the problems, and reading goes on. */
void read_mapping(struct reader *reader, yaml_node_t *node, const char *path, const struct key_table *table,
                  void *target);
void places_done(struct reader *reader); /* where each scalar was set, for the end */
