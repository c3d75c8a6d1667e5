/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Nodes of the document that is being read, which owns all that these return. Private to config/. */
#include "config/internal.h"

const char *node_text(const yaml_node_t *node); /* NULL: it is no scalar, or NULL */
/* The value of a key. NULL: there is none, or `mapping` is no mapping, or NULL. */
yaml_node_t *mapping_find(struct reader *reader, yaml_node_t *mapping, const char *name);
