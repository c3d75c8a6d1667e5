/* SPDX-License-Identifier: Apache-2.0 */
#include "config/read/node.h"

#include <string.h>

const char *node_text(const yaml_node_t *node)
{
        return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

yaml_node_t *mapping_find(struct reader *reader, yaml_node_t *mapping, const char *name)
{
        if (!mapping || mapping->type != YAML_MAPPING_NODE)
                return NULL;
        for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
             pair < mapping->data.mapping.pairs.top; pair++) {
                const char *text = node_text(yaml_document_get_node(reader->document, pair->key));

                if (text && strcmp(text, name) == 0)
                        return yaml_document_get_node(reader->document, pair->value);
        }
        return NULL;
}

yaml_node_t *sequence_item(struct reader *reader, yaml_node_t *list, size_t number)
{
        yaml_node_item_t *start;

        if (!list || list->type != YAML_SEQUENCE_NODE)
                return NULL;
        start = list->data.sequence.items.start;
        return number < (size_t)(list->data.sequence.items.top - start)
                       ? yaml_document_get_node(reader->document, start[number])
                       : NULL;
}
