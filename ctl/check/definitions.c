/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/check/definitions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "object/identity.h"
#include "os/file.h"

#define FILE_MAX ((size_t)64 << 20) /* all definitions of a large cluster */

static yaml_node_t *member(yaml_document_t *document, const yaml_node_t *node, const char *name)
{
        if (!node || node->type != YAML_MAPPING_NODE)
                return NULL;
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
                const yaml_node_t *key = yaml_document_get_node(document, pair->key);

                if (key->type == YAML_SCALAR_NODE && strcmp((char *)key->data.scalar.value, name) == 0)
                        return yaml_document_get_node(document, pair->value);
        }
        return NULL;
}

/* "" if there is none. */
static const char *member_text(yaml_document_t *document, const yaml_node_t *node, const char *name)
{
        const yaml_node_t *found = member(document, node, name);

        return found && found->type == YAML_SCALAR_NODE ? (const char *)found->data.scalar.value : "";
}

static void definition_done(struct definition *definition)
{
        free(definition->group);
        free(definition->kind);
        free(definition->plural);
}

static int add_definition(struct definitions *definitions, yaml_document_t *document,
                          const yaml_node_t *manifest)
{
        const yaml_node_t *spec = member(document, manifest, "spec"),
                          *names = member(document, spec, "names");
        struct definition *grown,
                added = {
                        .group = strdup(member_text(document, spec, "group")),
                        .kind = strdup(member_text(document, names, "kind")),
                        .plural = strdup(member_text(document, names, "plural")),
                        .of_cluster = strcmp(member_text(document, spec, "scope"), "Cluster") == 0,
                };

        grown = added.group && added.kind && added.plural
                        ? reallocarray(definitions->item, definitions->count + 1, sizeof(*grown))
                        : NULL;
        if (!grown) {
                definition_done(&added);
                return -ENOMEM;
        }
        definitions->item = grown;
        grown[definitions->count++] = added;
        return 0;
}

static int add_manifest_definitions(struct definitions *definitions, yaml_document_t *document,
                                    const yaml_node_t *manifest)
{
        const char *kind = member_text(document, manifest, "kind");
        const yaml_node_t *items = member(document, manifest, "items");
        int r = 0;

        if (strcmp(kind, "CustomResourceDefinition") == 0)
                return add_definition(definitions, document, manifest);
        if (!items || items->type != YAML_SEQUENCE_NODE)
                return 0;
        for (yaml_node_item_t *item = items->data.sequence.items.start;
             item < items->data.sequence.items.top && r >= 0; item++) {
                const yaml_node_t *each = yaml_document_get_node(document, *item);

                /* Items of a CustomResourceDefinitionList lack a kind. */
                if (strcmp(kind, "CustomResourceDefinitionList") == 0 ||
                    strcmp(member_text(document, each, "kind"), "CustomResourceDefinition") == 0)
                        r = add_definition(definitions, document, each);
        }
        return r;
}

/* 1: there are no more documents. */
static int read_definition(struct definitions *definitions, const char *path, yaml_parser_t *parser)
{
        yaml_document_t document;
        yaml_node_t *root;
        int r;

        if (!yaml_parser_load(parser, &document)) {
                if (parser->error == YAML_MEMORY_ERROR || !parser->problem)
                        return -ENOMEM;
                fprintf(stderr, "reconciledctl: %s:%zu: is not valid YAML: %s\n", path,
                        parser->problem_mark.line + 1, parser->problem);
                return -EINVAL;
        }
        root = yaml_document_get_root_node(&document);
        r = root ? add_manifest_definitions(definitions, &document, root) : 1;
        yaml_document_delete(&document);
        return r;
}

int definitions_read(struct definitions *definitions, const char *path)
{
        size_t size, before = definitions->count;
        _cleanup_free_ char *data = NULL;
        yaml_parser_t parser;
        int r = file_read(path, FILE_MAX, &data, &size);

        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s: %s\n", path, strerror(-r));
                return r;
        }
        if (text_nests_too_deep(data)) {
                fprintf(stderr, "reconciledctl: %s: too many nested brackets\n", path);
                return -EINVAL;
        }
        if (!yaml_parser_initialize(&parser))
                return -ENOMEM;
        yaml_parser_set_input_string(&parser, (const unsigned char *)data, size);
        while ((r = read_definition(definitions, path, &parser)) == 0)
                continue;
        yaml_parser_delete(&parser);
        if (r < 0 || definitions->count > before)
                return r < 0 ? r : 0;
        fprintf(stderr, "reconciledctl: %s: has no CustomResourceDefinition\n", path);
        return -EINVAL;
}

void definitions_done(struct definitions *definitions)
{
        for (size_t i = 0; i < definitions->count; i++)
                definition_done(&definitions->item[i]);
        free(definitions->item);
        *definitions = (struct definitions){0};
}

const struct definition *definition_find(const struct definitions *definitions, const char *api_version,
                                         const char *kind)
{
        size_t size = api_group_size(api_version);

        FOREACH_ARRAY(one, definitions->item, definitions->count)
                if (strcmp(one->kind, kind) == 0 && strlen(one->group) == size &&
                    strncmp(one->group, api_version, size) == 0)
                        return one;
        return NULL;
}
