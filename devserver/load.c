/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests from files, and YAML in general: JSON is YAML, so one reader serves both. */
#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "devserver/number.h"
#include "devserver/server.h"
#include "devserver/tree.h"

#define DEPTH_MAX 100
#define NODES_MAX 1000000 /* aliases may repeat without end what is short in the file */

/* ---- YAML 1.1 to a tree, as kubectl and the real server read it */

struct reader {
        yaml_document_t *document;
        size_t nodes;
};

static bool is_one_of(const char *text, const char *const *word, size_t count)
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

static cJSON *scalar(const yaml_node_t *node)
{
        static const char *const null[] = {"", "~", "null", "Null", "NULL"};
        static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                          "on",   "On",   "ON",   "y",   "Y"};
        static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO",
                                         "off",   "Off",   "OFF",   "n",  "N"};
        const char *text = (const char *)node->data.scalar.value;
        cJSON *number;
        char *end;

        if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
                return cJSON_CreateString(text);
        if (is_one_of(text, null, ELEMENTS(null)))
                return cJSON_CreateNull();
        if (is_one_of(text, yes, ELEMENTS(yes)) || is_one_of(text, no, ELEMENTS(no)))
                return cJSON_CreateBool(is_one_of(text, yes, ELEMENTS(yes)));
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

static cJSON *mapping(struct reader *reader, const yaml_node_t *node, unsigned depth)
{
        cJSON *object = cJSON_CreateObject();

        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
                const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
                const char *name =
                        key && key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : NULL;

                if (name && !cJSON_HasObjectItem(object, name))
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
                return scalar(node);
        return node->type == YAML_SEQUENCE_NODE ? sequence(reader, node, depth + 1)
                                                : mapping(reader, node, depth + 1);
}

/* NULL: it is no mapping, or too much of one. */
static cJSON *document_tree(yaml_document_t *document)
{
        struct reader reader = {.document = document};
        const yaml_node_t *root = yaml_document_get_root_node(document);
        cJSON *value = root && root->type == YAML_MAPPING_NODE ? mapping(&reader, root, 0) : NULL;

        if (reader.nodes > NODES_MAX) {
                cJSON_Delete(value);
                return NULL;
        }
        return value;
}

cJSON *load_yaml_or_json(const struct text *text)
{
        cJSON *value = number_parse(text->data, text->size);
        yaml_document_t document;
        yaml_parser_t parser;

        if (value || !text->data || !yaml_parser_initialize(&parser))
                return value;
        yaml_parser_set_input_string(&parser, (const unsigned char *)text->data, text->size);
        if (yaml_parser_load(&parser, &document)) {
                value = document_tree(&document);
                yaml_document_delete(&document);
        }
        yaml_parser_delete(&parser);
        return value;
}

/* ---- files */

/* A namespace that each server has, as kube-system, keeps what was loaded for it. */
static bool replaces_builtin(const struct server *server, const struct resource *resource)
{
        return server->load_as_is && resource->builtin && strcmp(resource->plural, "namespaces") == 0;
}

static int check_place(struct server *server, const char *path, const struct resource *resource,
                       const char *namespace_name, const char *name, struct error *error)
{
        struct resource *namespaces = resource_find(&server->storage, "", "v1", "namespaces");
        _cleanup_free_ char *key = object_key(namespace_name, name);

        if (namespace_name[0] && !object_find(namespaces, namespace_name))
                return error_set(
                        error, -EINVAL,
                        "%s: %s \"%s\" is in namespace \"%s\", which does not exist; load that first", path,
                        resource->kind, name, namespace_name);
        if (!key)
                return error_set(error, -ENOMEM, "no memory");
        return object_find(resource, key) && !replaces_builtin(server, resource)
                       ? error_set(error, -EINVAL, "%s: %s \"%s\" is there already", path, resource->kind,
                                   name)
                       : 0;
}

static int check_object(const char *path, const struct resource *resource, const cJSON *object,
                        struct error *error)
{
        const char *name = tree_text(tree_metadata(object), "name");
        _cleanup_text_ struct text text = TEXT_EMPTY;
        const char *mistake = object_mistake(resource, object, &text);

        if (!object_name_is_valid(resource, name))
                mistake = "metadata.name: a DNS-1123 subdomain is expected";
        return mistake ? error_set(error, -EINVAL, "%s: %s \"%s\" is invalid: %s", path, resource->kind,
                                   name, mistake)
                       : 0;
}

static int add_namespace(struct server *server, const char *name)
{
        struct resource *namespaces = resource_find(&server->storage, "", "v1", "namespaces");
        cJSON *object;
        bool done;

        if (!namespaces || object_find(namespaces, name))
                return 0;
        object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "apiVersion", "v1");
        cJSON_AddStringToObject(object, "kind", "Namespace");
        cJSON_AddStringToObject(cJSON_AddObjectToObject(object, "metadata"), "name", name);
        done = object_insert(server, namespaces, "", object) != NULL;
        cJSON_Delete(object);
        return done ? 0 : -ENOMEM;
}

static int load_object(struct server *server, const char *path, cJSON *object, struct error *error)
{
        const char *api_version = tree_text(object, "apiVersion"), *kind = tree_text(object, "kind");
        const char *name = tree_text(tree_metadata(object), "name");
        const char *namespace_name = tree_text(tree_metadata(object), "namespace");
        struct resource *resource;
        int r;

        if (!api_version[0] || !kind[0] || !name[0])
                return error_set(error, -EINVAL, "%s: an object lacks apiVersion, kind or metadata.name",
                                 path);
        resource = resource_find_kind(&server->storage, api_version, kind);
        if (!resource && server->load_as_is)
                resource = crd_make_up(server, api_version, kind, namespace_name[0] != '\0');
        if (!resource)
                return error_set(error, -EINVAL,
                                 "%s: there is no kind %s in %s; load its CustomResourceDefinition first",
                                 path, kind, api_version);
        if (strcmp(kind, "Namespace") == 0 && resource->builtin && object_find(resource, name) &&
            !tree_text(tree_metadata(object), "uid")[0])
                return 0;
        if (!resource->namespaced)
                namespace_name = "";
        else if (!namespace_name[0])
                namespace_name = "default";
        r = check_object(path, resource, object, error);
        if (r >= 0 && server->load_as_is && namespace_name[0])
                r = add_namespace(server, namespace_name);
        if (r >= 0)
                r = check_place(server, path, resource, namespace_name, name, error);
        if (r >= 0 && !object_insert(server, resource, namespace_name, object))
                r = error_set(error, -ENOMEM, "no memory");
        return r;
}

int load_account(struct server *server, const char *account, struct error *error)
{
        const char *slash = strchr(account, '/');
        const struct resource *accounts = resource_find(&server->storage, "", "v1", "serviceaccounts");
        _cleanup_free_ char *namespace_name = slash ? strndup(account, (size_t)(slash - account)) : NULL;
        cJSON *object, *metadata;
        int r;

        if (!namespace_name || !namespace_name[0] || !slash[1])
                return error_set(error, -EINVAL, "--service-account takes NAMESPACE/NAME, not \"%s\"",
                                 account);
        if (accounts && object_find(accounts, account))
                return 0;
        object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "apiVersion", "v1");
        cJSON_AddStringToObject(object, "kind", "ServiceAccount");
        metadata = cJSON_AddObjectToObject(object, "metadata");
        cJSON_AddStringToObject(metadata, "name", slash + 1);
        cJSON_AddStringToObject(metadata, "namespace", namespace_name);
        r = add_namespace(server, namespace_name);
        if (r >= 0)
                r = load_object(server, "--service-account", object, error);
        cJSON_Delete(object);
        return r;
}

/* 0: there is none. */
static uint64_t version_of(const cJSON *object)
{
        const char *version = tree_text(tree_metadata(object), "resourceVersion");

        return version_is_number(version) ? strtoull(version, NULL, 10) : 0;
}

/* A List with a resourceVersion of its own (as a server answers it): its objects keep their versions, and
 * the server goes on from the List's. No watch can begin at an older version. */
static int load_versioned(struct server *server, const char *path, cJSON *items, uint64_t version,
                          struct error *error)
{
        struct storage *storage = &server->storage;
        uint64_t newest = storage->resource_version > version ? storage->resource_version : version;
        cJSON *item;
        int r = 0;

        cJSON_ArrayForEach(item, items)
        {
                if (r < 0)
                        break;
                if (version_of(item) > version)
                        return error_set(error, -EINVAL, "%s: an object is newer than its list", path);
                storage->resource_version = version_of(item) > 0 ? version_of(item) - 1 : newest++;
                r = load_object(server, path, item, error);
        }
        storage_compact(storage, UINT64_MAX);
        storage->resource_version = storage->history_lost = newest;
        return r;
}

/* One object, or a List of them. */
static int load_document(struct server *server, const char *path, cJSON *document, struct error *error)
{
        cJSON *items = cJSON_GetObjectItemCaseSensitive(document, "items"), *item;
        int r = 0;

        if (!cJSON_IsArray(items) || strcmp(tree_text(document, "kind"), "List") != 0)
                return load_object(server, path, document, error);
        if (server->load_as_is && version_of(document) > 0)
                return load_versioned(server, path, items, version_of(document), error);
        cJSON_ArrayForEach(item, items)
        {
                if (r >= 0)
                        r = load_object(server, path, item, error);
        }
        return r;
}

/* "---" and nothing behind it. */
static bool is_empty(yaml_document_t *document)
{
        const yaml_node_t *root = yaml_document_get_root_node(document);

        return root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0;
}

/* The parser is the caller's to delete, and reads the file, which is the caller's as well. */
static int begin_yaml(const char *path, FILE **ret, yaml_parser_t *parser, struct error *error)
{
        *ret = fopen(path, "re");
        if (!*ret)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        if (!yaml_parser_initialize(parser))
                return error_set(error, -ENOMEM, "no memory");
        yaml_parser_set_input_file(parser, *ret);
        return 0;
}

static int not_yaml(const char *path, const yaml_parser_t *parser, struct error *error)
{
        return error_set(error, -EINVAL, "%s:%zu: %s", path, parser->problem_mark.line + 1,
                         parser->problem ? parser->problem : "not valid YAML");
}

static int load_documents(struct server *server, const char *path, yaml_parser_t *parser,
                          struct error *error)
{
        bool more = true;
        int r = 0;

        while (more && r >= 0) {
                yaml_document_t document;

                if (!yaml_parser_load(parser, &document))
                        return not_yaml(path, parser, error);
                more = yaml_document_get_root_node(&document) != NULL;
                if (more) {
                        cJSON *object = document_tree(&document);

                        if (object)
                                r = load_document(server, path, object, error);
                        else if (!is_empty(&document))
                                r = error_set(error, -EINVAL, "%s: a document is no object, or too large",
                                              path);
                        cJSON_Delete(object);
                }
                yaml_document_delete(&document);
        }
        return r;
}

int load_file(struct server *server, const char *path, struct error *error)
{
        _cleanup_fclose_ FILE *file = NULL;
        yaml_parser_t parser;
        int r;

        r = begin_yaml(path, &file, &parser, error);
        if (r < 0)
                return r;
        r = load_documents(server, path, &parser, error);
        yaml_parser_delete(&parser);
        gc_run(server);
        return r;
}

/* ---- a list of anything, one entry at a time */

static int load_entries(const char *path, yaml_document_t *document, load_entry_t take, void *userdata,
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

int load_list(const char *path, load_entry_t take, void *userdata, struct error *error)
{
        _cleanup_fclose_ FILE *file = NULL;
        yaml_document_t document;
        yaml_parser_t parser;
        int r;

        r = begin_yaml(path, &file, &parser, error);
        if (r < 0)
                return r;
        if (yaml_parser_load(&parser, &document)) {
                r = load_entries(path, &document, take, userdata, error);
                yaml_document_delete(&document);
        } else {
                r = not_yaml(path, &parser, error);
        }
        yaml_parser_delete(&parser);
        return r;
}
