/* SPDX-License-Identifier: Apache-2.0 */
/* Impersonation becomes request headers; an exec plugin is described, and run elsewhere
 * (credential/plugin.c). */
#include "kubeconfig/kubeconfig-user.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"

#define EXTENSION       "client.authentication.k8s.io/exec"
/* The extension becomes a part of one environment variable, which Linux limits to 128 KiB. */
#define EXEC_CONFIG_MAX ((size_t)64 * 1024)

static int yaml_no_memory(struct yaml_file *file)
{
        return error_set(file->error, -ENOMEM, "no memory");
}

/* ---- impersonation */

/* A key of `extra` may be any text: what a header's name cannot hold is escaped, as client-go does. */
static char *extra_name(const char *key)
{
        _cleanup_text_ struct text name = TEXT_EMPTY;

        text_append_string(&name, "Impersonate-Extra-");
        text_append_escaped(&name, key);
        return text_take(&name);
}

static int add_header(struct yaml_file *file, const yaml_node_t *node, const char *key, const char *name,
                      struct kubeconfig *config)
{
        const char *value = yaml_text(node);

        if (!value || strpbrk(value, "\r\n"))
                return yaml_error(file, node, key, "a text on one line is expected");
        return kubeconfig_pairs_add(&config->header, name, value) < 0 ? yaml_no_memory(file) : 0;
}

static int take_user_list(struct yaml_file *file, yaml_node_t *list, const char *key, const char *name,
                          struct kubeconfig *config)
{
        int r = 0;

        if (!list || yaml_is_empty(list))
                return 0;
        if (list->type != YAML_SEQUENCE_NODE)
                return yaml_error(file, list, key, "a list is expected");
        for (yaml_node_item_t *item = list->data.sequence.items.start;
             item < list->data.sequence.items.top && r >= 0; item++)
                r = add_header(file, yaml_document_get_node(&file->document, *item), key, name, config);
        return r;
}

static int take_extra(struct yaml_file *file, yaml_node_t *extra, struct kubeconfig *config)
{
        int r = 0;

        if (!extra || yaml_is_empty(extra))
                return 0;
        if (extra->type != YAML_MAPPING_NODE)
                return yaml_error(file, extra, "user.as-user-extra", "a mapping to lists is expected");
        for (yaml_node_pair_t *pair = extra->data.mapping.pairs.start;
             pair < extra->data.mapping.pairs.top && r >= 0; pair++) {
                const char *key = yaml_text(yaml_document_get_node(&file->document, pair->key));
                _cleanup_free_ char *name = extra_name(key ? key : "");

                r = name ? take_user_list(file, yaml_document_get_node(&file->document, pair->value),
                                          "user.as-user-extra", name, config)
                         : yaml_no_memory(file);
        }
        return r;
}

int user_take_impersonation(struct yaml_file *file, yaml_node_t *user, struct kubeconfig *config)
{
        static const char *const dependent[] = {"as-uid", "as-groups", "as-user-extra"};
        yaml_node_t *as = yaml_member(file, user, "as"), *uid = yaml_member(file, user, "as-uid");
        int r;

        if (!as || yaml_is_empty(as)) {
                for (size_t i = 0; i < ELEMENTS(dependent); i++) {
                        yaml_node_t *node = yaml_member(file, user, dependent[i]);

                        if (node && !yaml_is_empty(node))
                                return yaml_error(file, node, dependent[i], "needs `as`, which is missing");
                }
                return 0;
        }
        r = add_header(file, as, "user.as", "Impersonate-User", config);
        if (r >= 0 && uid && !yaml_is_empty(uid))
                r = add_header(file, uid, "user.as-uid", "Impersonate-Uid", config);
        if (r >= 0)
                r = take_user_list(file, yaml_member(file, user, "as-groups"), "user.as-groups",
                                   "Impersonate-Group", config);
        return r < 0 ? r : take_extra(file, yaml_member(file, user, "as-user-extra"), config);
}

/* ---- exec */

static int copy_text(struct yaml_file *file, char **place, const char *text)
{
        *place = strdup(text ? text : "");
        return *place ? 0 : yaml_no_memory(file);
}

static int take_arguments(struct yaml_file *file, yaml_node_t *list, struct kubeconfig_exec *exec)
{
        size_t count = 0, room = 0;

        if (list && !yaml_is_empty(list)) {
                if (list->type != YAML_SEQUENCE_NODE)
                        return yaml_error(file, list, "user.exec.args", "a list is expected");
                room = (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
        }
        exec->argument = calloc(room + 1, sizeof(char *));
        if (!exec->argument)
                return yaml_no_memory(file);
        for (; count < room; count++) {
                const yaml_node_t *item =
                        yaml_document_get_node(&file->document, list->data.sequence.items.start[count]);

                if (!yaml_text(item))
                        return yaml_error(file, item, "user.exec.args", "a text is expected");
                if (copy_text(file, &exec->argument[count], yaml_text(item)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int take_environment(struct yaml_file *file, yaml_node_t *list, struct kubeconfig_exec *exec)
{
        if (!list || yaml_is_empty(list))
                return 0;
        if (list->type != YAML_SEQUENCE_NODE)
                return yaml_error(file, list, "user.exec.env", "a list of {name, value} is expected");
        for (yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top;
             item++) {
                yaml_node_t *entry = yaml_document_get_node(&file->document, *item);
                const char *name = yaml_member_text(file, entry, "name"),
                           *value = yaml_member_text(file, entry, "value");

                if (!name || !name[0] || strchr(name, '='))
                        return yaml_error(file, entry, "user.exec.env.name", "is missing, or not a name");
                if (kubeconfig_pairs_add(&exec->environment, name, value ? value : "") < 0)
                        return yaml_no_memory(file);
        }
        return 0;
}

/* An operator has no terminal for a plugin to ask at. */
static int check_interactive(struct yaml_file *file, yaml_node_t *node, const char *api_version)
{
        const char *mode = yaml_member_text(file, node, "interactiveMode");

        if (!mode && strcmp(api_version, "client.authentication.k8s.io/v1") == 0)
                return yaml_error(file, node, "user.exec.interactiveMode",
                                  "is missing; Never or IfAvailable is right for an operator");
        if (mode && strcmp(mode, "Always") == 0)
                return yaml_error(
                        file, yaml_member(file, node, "interactiveMode"), "user.exec.interactiveMode",
                        "is Always: this plugin needs a terminal, which an operator does not have");
        if (mode && strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0)
                return yaml_error(file, yaml_member(file, node, "interactiveMode"),
                                  "user.exec.interactiveMode",
                                  "\"%s\" is neither Never, IfAvailable nor Always", mode);
        return 0;
}

static int take_api_version(struct yaml_file *file, yaml_node_t *node, struct kubeconfig_exec *exec)
{
        const char *version = yaml_member_text(file, node, "apiVersion");

        if (!version)
                return yaml_error(file, node, "user.exec.apiVersion", "is missing");
        if (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
            strcmp(version, "client.authentication.k8s.io/v1beta1") != 0)
                return yaml_error(file, yaml_member(file, node, "apiVersion"), "user.exec.apiVersion",
                                  "\"%s\" is neither client.authentication.k8s.io/v1 nor .../v1beta1",
                                  version);
        return copy_text(file, &exec->api_version, version);
}

/* A path with a '/' is relative to the file that names it; a plain name is looked for in PATH. */
static int take_command(struct yaml_file *file, yaml_node_t *node, struct kubeconfig_exec *exec)
{
        const char *command = yaml_member_text(file, node, "command"), *slash = strrchr(file->path, '/');

        if (!command)
                return yaml_error(file, node, "user.exec.command", "is missing");
        if (command[0] == '/' || !strchr(command, '/') || !slash)
                return copy_text(file, &exec->command, command);
        exec->command = format_string("%.*s/%s", (int)(slash - file->path), file->path, command);
        if (!exec->command)
                return yaml_no_memory(file);
        return 0;
}

int user_take_exec(struct yaml_file *file, yaml_node_t *user, struct kubeconfig *config)
{
        yaml_node_t *node = yaml_member(file, user, "exec"), *info;
        struct kubeconfig_exec *exec = &config->exec;
        int r;

        if (!node || yaml_is_empty(node))
                return 0;
        if (node->type != YAML_MAPPING_NODE)
                return yaml_error(file, node, "user.exec", "a mapping is expected");
        r = take_api_version(file, node, exec);
        if (r >= 0)
                r = check_interactive(file, node, exec->api_version);
        if (r >= 0)
                r = take_command(file, node, exec);
        if (r >= 0)
                r = take_arguments(file, yaml_member(file, node, "args"), exec);
        if (r >= 0)
                r = take_environment(file, yaml_member(file, node, "env"), exec);
        if (r >= 0)
                r = copy_text(file, &exec->install_hint, yaml_member_text(file, node, "installHint"));
        info = yaml_member(file, node, "provideClusterInfo");
        exec->provide_cluster_info = info && yaml_text(info) && strcmp(yaml_text(info), "true") == 0;
        return r;
}

/* ---- what the cluster tells plugins */

/* An alias may name what holds it, or the same large text a thousand times: `room` is what is still allowed.
 */
struct json_writer {
        struct yaml_file *file;
        size_t room;
        bool too_large;
};

static cJSON *to_json(struct json_writer *writer, const yaml_node_t *node, unsigned depth);

static bool take_room(struct json_writer *writer, size_t size)
{
        if (size >= writer->room)
                writer->too_large = true;
        else
                writer->room -= size + 1;
        return !writer->too_large;
}

static cJSON *scalar_to_json(const yaml_node_t *node)
{
        const char *text = (const char *)node->data.scalar.value;
        char *end;
        double number;

        if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
                return cJSON_CreateString(text);
        if (!yaml_text(node))
                return cJSON_CreateNull();
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
                return cJSON_CreateBool(text[0] == 't');
        number = strtod(text, &end);
        return text[0] && *end == '\0' && strspn(text, "0123456789+-.eE") == strlen(text)
                       ? cJSON_CreateNumber(number)
                       : cJSON_CreateString(text);
}

static cJSON *mapping_to_json(struct json_writer *writer, const yaml_node_t *node, unsigned depth)
{
        cJSON *object = cJSON_CreateObject();

        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top && !writer->too_large; pair++) {
                const yaml_node_t *key = yaml_document_get_node(&writer->file->document, pair->key);

                if (key && key->type == YAML_SCALAR_NODE && take_room(writer, key->data.scalar.length))
                        cJSON_AddItemToObject(
                                object, (const char *)key->data.scalar.value,
                                to_json(writer, yaml_document_get_node(&writer->file->document, pair->value),
                                        depth));
        }
        return object;
}

static cJSON *list_to_json(struct json_writer *writer, const yaml_node_t *node, unsigned depth)
{
        cJSON *list = cJSON_CreateArray();

        for (yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top && !writer->too_large; item++)
                cJSON_AddItemToArray(
                        list,
                        to_json(writer, yaml_document_get_node(&writer->file->document, *item), depth));
        return list;
}

static cJSON *to_json(struct json_writer *writer, const yaml_node_t *node, unsigned depth)
{
        if (!node)
                return cJSON_CreateNull();
        if (depth > BRACKETS_MAX)
                writer->too_large = true;
        if (!take_room(writer, node->type == YAML_SCALAR_NODE ? node->data.scalar.length : 0))
                return NULL;
        if (node->type == YAML_MAPPING_NODE)
                return mapping_to_json(writer, node, depth + 1);
        return node->type == YAML_SEQUENCE_NODE ? list_to_json(writer, node, depth + 1)
                                                : scalar_to_json(node);
}

static yaml_node_t *find_extension(struct yaml_file *file, yaml_node_t *list)
{
        if (!list || list->type != YAML_SEQUENCE_NODE)
                return NULL;
        for (yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top;
             item++) {
                yaml_node_t *entry = yaml_document_get_node(&file->document, *item);
                const char *name = yaml_member_text(file, entry, "name");

                if (name && strcmp(name, EXTENSION) == 0)
                        return yaml_member(file, entry, "extension");
        }
        return NULL;
}

int cluster_take_exec_config(struct yaml_file *file, yaml_node_t *cluster, struct kubeconfig *config)
{
        yaml_node_t *extension = find_extension(file, yaml_member(file, cluster, "extensions"));
        struct json_writer writer = {.file = file, .room = EXEC_CONFIG_MAX};
        cJSON *json;

        if (!extension)
                return 0;
        json = to_json(&writer, extension, 0);
        config->exec.cluster_config = json && !writer.too_large ? cJSON_PrintUnformatted(json) : NULL;
        cJSON_Delete(json);
        if (writer.too_large)
                return yaml_error(file, extension, "cluster.extensions",
                                  "the input of plugins is larger than 64 KiB, or contains itself");
        return config->exec.cluster_config ? 0 : yaml_no_memory(file);
}
