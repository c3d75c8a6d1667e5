/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests from files, and YAML in general: JSON is YAML, so one reader serves both. */
#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "devserver/json.h"
#include "devserver/server.h"

#define DEPTH_MAX 100

/* ---- YAML to a tree */

static cJSON *scalar(const yaml_node_t *node)
{
        const char *text = (const char *)node->data.scalar.value;
        char *end;
        double number;

        if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
                return cJSON_CreateString(text);
        if (strcmp(text, "") == 0 || strcmp(text, "null") == 0 || strcmp(text, "~") == 0)
                return cJSON_CreateNull();
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
                return cJSON_CreateBool(text[0] == 't');
        number = strtod(text, &end);
        if (*end == '\0' && strspn(text, "0123456789+-.eE") == strlen(text)) {
                cJSON *exact = text[0] == '+' || text[0] == '.' ? NULL : json_parse(text, strlen(text));

                return exact ? exact : cJSON_CreateNumber(number);
        }
        return cJSON_CreateString(text);
}

static cJSON *tree(yaml_document_t *document, const yaml_node_t *node, unsigned depth)
{
        cJSON *value;

        if (!node || depth > DEPTH_MAX)
                return cJSON_CreateNull();
        if (node->type == YAML_SCALAR_NODE)
                return scalar(node);
        if (node->type == YAML_SEQUENCE_NODE) {
                value = cJSON_CreateArray();
                for (yaml_node_item_t *item = node->data.sequence.items.start;
                     item < node->data.sequence.items.top; item++)
                        cJSON_AddItemToArray(
                                value, tree(document, yaml_document_get_node(document, *item), depth + 1));
                return value;
        }
        value = cJSON_CreateObject();
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
                const yaml_node_t *key = yaml_document_get_node(document, pair->key);

                if (key && key->type == YAML_SCALAR_NODE)
                        cJSON_AddItemToObject(
                                value, (const char *)key->data.scalar.value,
                                tree(document, yaml_document_get_node(document, pair->value), depth + 1));
        }
        return value;
}

cJSON *load_yaml_or_json(const struct text *text)
{
        cJSON *value = json_parse(text->data, text->size);
        yaml_document_t document;
        yaml_parser_t parser;

        if (value || !text->data || !yaml_parser_initialize(&parser))
                return value;
        yaml_parser_set_input_string(&parser, (const unsigned char *)text->data, text->size);
        if (yaml_parser_load(&parser, &document)) {
                const yaml_node_t *root = yaml_document_get_root_node(&document);

                if (root && root->type == YAML_MAPPING_NODE)
                        value = tree(&document, root, 0);
                yaml_document_delete(&document);
        }
        yaml_parser_delete(&parser);
        return value;
}

/* ---- files */

static int load_object(struct server *server, const char *path, cJSON *object, struct error *error)
{
        const char *api_version =
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "apiVersion"));
        const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "kind"));
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "name"));
        const char *namespace_name =
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "namespace"));
        struct resource *resource;

        if (!api_version || !kind || !name)
                return error_set(error, -EINVAL, "%s: an object lacks apiVersion, kind or metadata.name",
                                 path);
        resource = resource_find_kind(&server->storage, api_version, kind);
        if (!resource)
                return error_set(error, -EINVAL,
                                 "%s: there is no kind %s in %s; load its CustomResourceDefinition first",
                                 path, kind, api_version);
        if (!namespace_name)
                namespace_name = "default";
        if (!object_insert(server, resource, resource->namespaced ? namespace_name : "", object))
                return error_set(error, -ENOMEM, "no memory");
        return 0;
}

int load_file(struct server *server, const char *path, struct error *error)
{
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        yaml_parser_t parser;
        bool more = true;
        int r = 0;

        if (!file)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        if (!yaml_parser_initialize(&parser))
                return error_set(error, -ENOMEM, "no memory");
        yaml_parser_set_input_file(&parser, file);
        while (more && r >= 0) {
                yaml_document_t document;
                const yaml_node_t *root;

                if (!yaml_parser_load(&parser, &document)) {
                        r = error_set(error, -EINVAL, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                                      parser.problem ? parser.problem : "not valid YAML");
                        break;
                }
                root = yaml_document_get_root_node(&document);
                more = root != NULL;
                if (root && root->type == YAML_MAPPING_NODE) {
                        cJSON *object = tree(&document, root, 0);

                        r = load_object(server, path, object, error);
                        cJSON_Delete(object);
                }
                yaml_document_delete(&document);
        }
        yaml_parser_delete(&parser);
        return r;
}
