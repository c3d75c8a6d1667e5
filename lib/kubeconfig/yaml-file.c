/* SPDX-License-Identifier: Apache-2.0 */
#include "kubeconfig/yaml-file.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "kubeconfig/secret.h"

static int parse_yaml(struct yaml_file *file, const char *data, struct error *error)
{
        yaml_parser_t parser;
        int r = 0;

        if (text_nests_too_deep(data))
                return error_set(error, -EINVAL, "%s: is not a kubeconfig: too many nested brackets",
                                 file->path);
        if (!yaml_parser_initialize(&parser))
                return error_set(error, -ENOMEM, "no memory");
        yaml_parser_set_input_string(&parser, (const unsigned char *)data, strlen(data));
        if (yaml_parser_load(&parser, &file->document)) {
                file->loaded = true;
                if (yaml_document_get_root_node(&file->document) &&
                    yaml_document_get_root_node(&file->document)->type != YAML_MAPPING_NODE)
                        r = error_set(error, -EINVAL, "%s:1: is not a kubeconfig: a mapping is expected",
                                      file->path);
        } else if (parser.error == YAML_MEMORY_ERROR || !parser.problem) { /* it does not always say so */
                r = error_set(error, -ENOMEM, "%s: no memory to read it", file->path);
        } else {
                r = error_set(error, -EINVAL, "%s:%zu: is not valid YAML: %s", file->path,
                              parser.problem_mark.line + 1, parser.problem);
        }
        yaml_parser_delete(&parser);
        return r;
}

int yaml_file_load(const char *path, struct yaml_file *ret, struct error *error)
{
        struct yaml_file file = {.path = strdup(path)};
        char *data = NULL;
        int r;

        if (!file.path)
                return error_set(error, -ENOMEM, "no memory");
        r = secret_read_file(path, &data, error);
        if (r >= 0)
                r = parse_yaml(&file, data, error);
        secret_wipe(&data);
        if (r < 0) {
                yaml_file_done(&file);
                return r;
        }
        *ret = file;
        return 0;
}

static void wipe_document(yaml_document_t *document)
{
        for (yaml_node_t *node = document->nodes.start; node < document->nodes.top; node++)
                if (node->type == YAML_SCALAR_NODE)
                        explicit_bzero(node->data.scalar.value, node->data.scalar.length);
}

void yaml_file_done(struct yaml_file *file)
{
        if (file->loaded) {
                wipe_document(&file->document);
                yaml_document_delete(&file->document);
        }
        file->loaded = false;
        free(file->path);
        file->path = NULL;
}

yaml_node_t *yaml_root(struct yaml_file *file)
{
        return file->loaded ? yaml_document_get_root_node(&file->document) : NULL;
}

const char *yaml_text(const yaml_node_t *node)
{
        const char *text;

        if (!node || node->type != YAML_SCALAR_NODE)
                return NULL;
        text = (const char *)node->data.scalar.value;
        if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
            (strcmp(text, "null") == 0 || strcmp(text, "~") == 0))
                return NULL;
        return text;
}

bool yaml_is_empty(const yaml_node_t *node)
{
        switch (node->type) {
        case YAML_SCALAR_NODE:
                return !yaml_text(node) || node->data.scalar.value[0] == '\0';
        case YAML_SEQUENCE_NODE:
                return node->data.sequence.items.start == node->data.sequence.items.top;
        case YAML_MAPPING_NODE:
                return node->data.mapping.pairs.start == node->data.mapping.pairs.top;
        default:
                return true;
        }
}

yaml_node_t *yaml_member(struct yaml_file *file, yaml_node_t *node, const char *key)
{
        if (!node || node->type != YAML_MAPPING_NODE)
                return NULL;
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
                const char *name = yaml_text(yaml_document_get_node(&file->document, pair->key));

                if (name && strcmp(name, key) == 0)
                        return yaml_document_get_node(&file->document, pair->value);
        }
        return NULL;
}

const char *yaml_member_text(struct yaml_file *file, yaml_node_t *node, const char *key)
{
        const char *text = yaml_text(yaml_member(file, node, key));

        return text && text[0] ? text : NULL;
}

yaml_node_t *yaml_named(struct yaml_file *file, const char *list, const char *name, const char *field)
{
        yaml_node_t *node = yaml_member(file, yaml_root(file), list);

        if (!node || node->type != YAML_SEQUENCE_NODE)
                return NULL;
        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++) {
                yaml_node_t *entry = yaml_document_get_node(&file->document, *item);
                const char *entry_name = yaml_member_text(file, entry, "name");

                if (entry_name && strcmp(entry_name, name) == 0)
                        return yaml_member(file, entry, field);
        }
        return NULL;
}

int yaml_error(const struct yaml_file *file, const yaml_node_t *node, const char *key, const char *format,
               ...)
{
        _cleanup_free_ char *text = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&text, format, arguments) < 0)
                text = NULL;
        va_end(arguments);
        return error_set(file->error, -EINVAL, "%s:%zu: %s: %s", file->path,
                         node ? node->start_mark.line + 1 : 1, key, text ? text : "wrong");
}
