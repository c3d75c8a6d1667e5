/* SPDX-License-Identifier: Apache-2.0 */
/* What a scalar means is decided by its text alone, unless it is quoted. */
#include "yaml/yaml-tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "yaml/json-number.h"
#include "json/json.h"

#define DEPTH_MAX 100
#define NODES_MAX 1000000 /* aliases may repeat without end what is short in the file */

/* ---- nodes to trees */

struct reader {
        yaml_document_t *document;
        size_t nodes;
        bool texts; /* scalars stay as they are written */
};

static bool is_word_of(const char *text, const char *const *word, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(text, word[i]) == 0)
                        return true;
        return false;
}

/* NULL: the text is no integer in another notation than decimal. */
static cJSON *other_integer(const char *text)
{
        const char *digits = text + (text[0] == '-' || text[0] == '+');
        int base = 0;
        char *end;
        long long value;

        if (digits[0] != '0' || digits[1] == '\0')
                return NULL;
        if (digits[1] == 'x')
                base = 16;
        else if (digits[1] == 'o' || digits[1] == 'b')
                base = digits[1] == 'o' ? 8 : 2;
        else if (strspn(digits, "01234567") == strlen(digits))
                base = 8;
        if (base == 0)
                return NULL;
        errno = 0;
        value = strtoll(digits + (digits[1] >= 'a' ? 2 : 1), &end, base);
        if (*end || errno != 0)
                return NULL;
        return json_new_integer(text[0] == '-' ? -value : value);
}

static cJSON *scalar(const struct reader *reader, const yaml_node_t *node)
{
        static const char *const null[] = {"", "~", "null", "Null", "NULL"};
        static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                          "on",   "On",   "ON",   "y",   "Y"};
        static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO",
                                         "off",   "Off",   "OFF",   "n",  "N"};
        const char *text = (const char *)node->data.scalar.value;
        cJSON *number;
        char *end;

        if (reader->texts || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
                return cJSON_CreateString(text);
        if (is_word_of(text, null, ELEMENTS(null)))
                return cJSON_CreateNull();
        if (is_word_of(text, yes, ELEMENTS(yes)) || is_word_of(text, no, ELEMENTS(no)))
                return cJSON_CreateBool(is_word_of(text, yes, ELEMENTS(yes)));
        number = other_integer(text);
        if (number)
                return number;
        strtod(text, &end);
        if (*end != '\0' || strspn(text, "0123456789+-.eE") != strlen(text))
                return cJSON_CreateString(text);
        number = number_parse(text, strlen(text));
        return number ? number : cJSON_CreateNumber(strtod(text, NULL)); /* ".5" and "+1" are no JSON */
}

static cJSON *tree(struct reader *reader, int index, unsigned depth);

static cJSON *sequence(struct reader *reader, const yaml_node_t *node, unsigned depth)
{
        cJSON *list = cJSON_CreateArray();

        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++)
                cJSON_AddItemToArray(list, tree(reader, *item, depth));
        return list;
}

static cJSON *tree_of_mapping(struct reader *reader, const yaml_node_t *node, unsigned depth)
{
        cJSON *object = cJSON_CreateObject();

        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
                const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
                const char *name =
                        key && key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : NULL;

                if (name && !cJSON_GetObjectItemCaseSensitive(object, name))
                        cJSON_AddItemToObject(object, name, tree(reader, pair->value, depth));
        }
        return object;
}

static cJSON *tree(struct reader *reader, int index, unsigned depth)
{
        const yaml_node_t *node = yaml_document_get_node(reader->document, index);

        if (!node || depth > DEPTH_MAX || ++reader->nodes > NODES_MAX)
                return cJSON_CreateNull();
        if (node->type == YAML_SCALAR_NODE)
                return scalar(reader, node);
        return node->type == YAML_SEQUENCE_NODE ? sequence(reader, node, depth + 1)
                                                : tree_of_mapping(reader, node, depth + 1);
}

/* NULL: it is no mapping, or too much of one. */
static cJSON *document_tree(yaml_document_t *document, bool texts)
{
        struct reader reader = {.document = document, .texts = texts};
        const yaml_node_t *root = yaml_document_get_root_node(document);
        cJSON *value = root && root->type == YAML_MAPPING_NODE ? tree_of_mapping(&reader, root, 0) : NULL;

        if (reader.nodes > NODES_MAX) {
                cJSON_Delete(value);
                return NULL;
        }
        return value;
}

/* ---- what is read */

#define PIECE 1024

struct input {
        FILE *file;
        yaml_parser_t parser;
};

/* Reads small pieces and looks at the level in between, as libyaml takes quadratic time over nested brackets. What is
 * deeper would become null anyway. */
static int read_yaml(void *userdata, unsigned char *buffer, size_t size, size_t *ret)
{
        struct input *input = userdata;

        if (input->parser.flow_level > DEPTH_MAX)
                return 0;
        *ret = fread(buffer, 1, size < PIECE ? size : PIECE, input->file);
        return !ferror(input->file);
}

static int input_begin(struct input *input, FILE *file)
{
        *input = (struct input){.file = file};
        if (!file)
                return -errno;
        if (!yaml_parser_initialize(&input->parser))
                return -ENOMEM;
        yaml_parser_set_input(&input->parser, read_yaml, input);
        return 0;
}

static void input_end(struct input *input)
{
        cleanup_fclose(&input->file);
        yaml_parser_delete(&input->parser);
}

cJSON *yaml_parse_object(const struct text *text)
{
        cJSON *value = number_parse(text->data, text->size);
        _cleanup_(input_end) struct input input = {0};
        yaml_document_t document;

        if (value || !text->data || input_begin(&input, fmemopen(text->data, text->size, "re")) < 0)
                return value;
        if (yaml_parser_load(&input.parser, &document)) {
                value = document_tree(&document, false);
                yaml_document_delete(&document);
        }
        return value;
}

/* ---- files */

/* "---" and nothing after it. */
static bool is_empty(yaml_document_t *document)
{
        const yaml_node_t *root = yaml_document_get_root_node(document);

        return root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0;
}

static int begin_yaml(const char *path, struct input *input, struct error *error)
{
        int r = input_begin(input, fopen(path, "re"));

        return r < 0 ? error_set(error, r, "%s: %s", path, strerror(-r)) : 0;
}

static int not_yaml(const char *path, const yaml_parser_t *parser, struct error *error)
{
        if (parser->flow_level > DEPTH_MAX)
                return error_set(error, -EINVAL, "%s:%zu: too many nested brackets", path,
                                 parser->mark.line + 1);
        return error_set(error, -EINVAL, "%s:%zu: %s", path, parser->problem_mark.line + 1,
                         parser->problem ? parser->problem : "not valid YAML");
}

static int take_documents(const char *path, yaml_parser_t *parser, bool texts, yaml_object_t take,
                          void *userdata, struct error *error)
{
        bool more = true;
        int r = 0;

        while (more && r >= 0) {
                yaml_document_t document;

                if (!yaml_parser_load(parser, &document))
                        return not_yaml(path, parser, error);
                more = yaml_document_get_root_node(&document) != NULL;
                if (more) {
                        cJSON *object = document_tree(&document, texts);

                        if (object)
                                r = take(object, userdata, error);
                        else if (!is_empty(&document))
                                r = error_set(error, -EINVAL, "%s: a document is no object, or too large",
                                              path);
                        cJSON_Delete(object);
                }
                yaml_document_delete(&document);
        }
        return r;
}

static int each_document(const char *path, bool texts, yaml_object_t take, void *userdata,
                         struct error *error)
{
        _cleanup_(input_end) struct input input = {0};
        int r = begin_yaml(path, &input, error);

        return r < 0 ? r : take_documents(path, &input.parser, texts, take, userdata, error);
}

int yaml_each_document(const char *path, yaml_object_t take, void *userdata, struct error *error)
{
        return each_document(path, false, take, userdata, error);
}

int yaml_each_text_document(const char *path, yaml_object_t take, void *userdata, struct error *error)
{
        return each_document(path, true, take, userdata, error);
}

/* ---- a list of anything, one entry at a time */

static int take_entries(const char *path, yaml_document_t *document, yaml_entry_t take, void *userdata,
                        struct error *error)
{
        const yaml_node_t *root = yaml_document_get_root_node(document);
        int r = 0;

        if (!root)
                return 0;
        if (root->type != YAML_SEQUENCE_NODE)
                return error_set(error, -EINVAL, "%s:%zu: a list is expected", path,
                                 root->start_mark.line + 1);
        for (yaml_node_item_t *item = root->data.sequence.items.start;
             item < root->data.sequence.items.top && r >= 0; item++) {
                struct reader reader = {.document = document};
                const yaml_node_t *node = yaml_document_get_node(document, *item);
                cJSON *entry = tree(&reader, *item, 0);

                r = entry ? take(entry, node->start_mark.line + 1, userdata, error)
                          : error_set(error, -ENOMEM, "no memory");
                cJSON_Delete(entry);
        }
        return r;
}

int yaml_each_entry(const char *path, yaml_entry_t take, void *userdata, struct error *error)
{
        _cleanup_(input_end) struct input input = {0};
        yaml_document_t document;
        int r = begin_yaml(path, &input, error);

        if (r < 0)
                return r;
        if (!yaml_parser_load(&input.parser, &document))
                return not_yaml(path, &input.parser, error);
        r = take_entries(path, &document, take, userdata, error);
        yaml_document_delete(&document);
        return r;
}
