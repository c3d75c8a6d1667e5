/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Nodes of the document that is being read, which owns all that these return. Private to config/. */
#include "config/internal.h"

const char *node_text(const yaml_node_t *node); /* NULL: it is no scalar, or NULL */
/* The value of a key. NULL: there is none, or `mapping` is no mapping, or NULL. */
yaml_node_t *mapping_find(struct reader *reader, yaml_node_t *mapping, const char *name);
/* One item of a list, counted from 0. NULL: there are fewer, or `list` is no list, or NULL. */
yaml_node_t *sequence_item(struct reader *reader, yaml_node_t *list, size_t number);
