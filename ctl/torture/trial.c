/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/trial.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "ctl/session/ctl-run.h"
#include "object/identity.h"
#include "os/file.h"
#include "os/temporary.h"
#include "yaml/yaml-tree.h"

#define FOLDER_MAX 85 /* a socket has 107, with "rig/run/..." */
#include "json/json.h"

/* ---- manifests */

static bool is_subject(const struct trial *trial, const cJSON *object)
{
        return strcmp(json_text(object, "kind"), trial->watch->kind) == 0 &&
               strcmp(json_text(object, "apiVersion"), trial->watch->api_version) == 0;
}

static const char *name_in(const cJSON *object, const char *member)
{
        return json_text(json_member(object, "metadata"), member);
}

static bool is_same_manifest(const cJSON *a, const cJSON *b)
{
        return strcmp(json_text(a, "kind"), json_text(b, "kind")) == 0 &&
               strcmp(json_text(a, "apiVersion"), json_text(b, "apiVersion")) == 0 &&
               strcmp(name_in(a, "name"), name_in(b, "name")) == 0 &&
               strcmp(name_in(a, "namespace"), name_in(b, "namespace")) == 0;
}

/* The same file may be named twice, or lie beside its copy. */
static bool is_listed_already(const cJSON *list, const cJSON *object)
{
        const cJSON *each;

        cJSON_ArrayForEach(each, list) if (is_same_manifest(each, object)) return true;
        return false;
}

/* What `kubectl get -o yaml` shows of an object that a server has, and refuses in a new one. */
static void drop_servers_own(cJSON *object)
{
        static const char *const own[] = {"uid",        "resourceVersion", "creationTimestamp",
                                          "generation", "managedFields",   "selfLink"};

        for (size_t i = 0; i < ELEMENTS(own); i++)
                cJSON_DeleteItemFromObjectCaseSensitive(json_member(object, "metadata"), own[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(object, "status");
}

static int take_manifest(cJSON *document, void *userdata, struct error *error)
{
        struct trial *trial = userdata;
        const cJSON *items = json_member(document, "items"), *item;
        cJSON *list = is_subject(trial, document) ? trial->subject : trial->loaded, *copy;
        int r = 0;

        if (cJSON_IsArray(items)) {
                cJSON_ArrayForEach(item, items)
                {
                        r = take_manifest((cJSON *)(uintptr_t)item, userdata, error);
                        if (r < 0)
                                return r;
                }
                return 0;
        }
        /* Beside the configuration there are other files, too. */
        if (!json_text(document, "apiVersion")[0] || !json_text(document, "kind")[0])
                return 0;
        if (is_subject(trial, document) && !name_in(document, "name")[0])
                return error_set(error, -EINVAL, "an object of the watch needs a metadata.name");
        if (is_listed_already(list, document))
                return 0;
        copy = cJSON_Duplicate(document, true);
        if (!copy)
                return error_set(error, -ENOMEM, "no memory");
        if (list == trial->subject)
                drop_servers_own(copy);
        cJSON_AddItemToArray(list, copy);
        return 0;
}

static int read_one_beside(struct trial *trial, const char *path)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = yaml_each_document(path, take_manifest, trial, &error);

        if (r < 0 && r != -ENOMEM)
                fprintf(stderr, "reconciledctl: note: %s; passed over\n", error_message(&error));
        return r == -ENOMEM ? r : 0;
}

/* Files of other programs lie there as well, so what cannot be read is passed over. */
static int read_beside(struct trial *trial)
{
        static const char *const place[] = {"*.yaml", "*.yml", "*.json", "deploy/crd.yaml"};
        int r = 0;

        for (size_t i = 0; i < ELEMENTS(place) && r != -ENOMEM; i++) {
                _cleanup_free_ char *pattern = format_string("%s/%s", trial->config_folder, place[i]);
                glob_t found = {0};

                if (!pattern)
                        return -ENOMEM;
                if (glob(pattern, 0, NULL, &found) == 0)
                        for (size_t j = 0; j < found.gl_pathc && r != -ENOMEM; j++)
                                r = read_one_beside(trial, found.gl_pathv[j]);
                globfree(&found);
        }
        return r == -ENOMEM ? r : 0;
}

static int read_manifests(struct trial *trial, struct error *error)
{
        const struct torture_options *options = trial->options;
        int r = 0;

        for (size_t i = 0; i < options->object_count && r >= 0; i++)
                r = yaml_each_document(options->object[i], take_manifest, trial, error);
        if (r >= 0 && options->object_count == 0)
                r = read_beside(trial);
        if (r < 0)
                return error_set(error, r, "no memory");
        if (!trial->subject->child)
                return error_set(
                        error, -ENOENT,
                        "there is no %s of %s in %s; --object FILE names a manifest (and one with its "
                        "definition)",
                        trial->watch->kind, trial->watch->api_version,
                        options->object_count > 0 ? "these files" : trial->config_folder);
        return 0;
}

/* ---- namespaces */

static bool has_namespace(const struct trial *trial, const char *name)
{
        static const char *const always[] = {"default", "kube-system", "kube-public", "kube-node-lease"};
        const cJSON *object;

        for (size_t i = 0; i < ELEMENTS(always); i++)
                if (strcmp(name, always[i]) == 0)
                        return true;
        cJSON_ArrayForEach(object,
                           trial->loaded) if (strcmp(json_text(object, "kind"), "Namespace") == 0 &&
                                              strcmp(json_text(json_member(object, "metadata"), "name"),
                                                     name) == 0) return true;
        return false;
}

/* Patterns name no namespace. */
static int need_namespace(struct trial *trial, const char *name)
{
        cJSON *object, *metadata;

        if (!name || !name[0] || strpbrk(name, "*?!") || has_namespace(trial, name))
                return 0;
        object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "apiVersion", "v1");
        cJSON_AddStringToObject(object, "kind", "Namespace");
        metadata = cJSON_AddObjectToObject(object, "metadata");
        cJSON_AddStringToObject(metadata, "name", name);
        /* Before what is in it. */
        return cJSON_InsertItemInArray(trial->loaded, 0, object) ? 0 : -ENOMEM;
}

static int need_namespaces(struct trial *trial)
{
        const struct config_watch *watch = trial->watch;
        int r = need_namespace(trial, trial->config->namespace);
        const cJSON *object;

        for (size_t i = 0; i < watch->namespace_count && r >= 0; i++)
                r = need_namespace(trial, watch->namespace[i]);
        for (size_t i = 0; i < watch->child_namespace_count && r >= 0; i++)
                r = need_namespace(trial, watch->child_namespace[i]);
        if (r >= 0 && watch->handler.kubernetes_account)
                r = need_namespace(trial, watch->handler.kubernetes_namespace);
        cJSON_ArrayForEach(object, trial->subject) if (r >= 0) r =
                need_namespace(trial, json_text(json_member(object, "metadata"), "namespace"));
        return r;
}

static int write_manifests(struct trial *trial)
{
        const struct file_rules rules = {.mode = 0600};
        _cleanup_free_ char *new = format_string("%s/manifests.new", trial->folder);
        _cleanup_text_ struct text text = TEXT_EMPTY;
        const cJSON *object;

        trial->manifests = format_string("%s/manifests.yaml", trial->folder);
        cJSON_ArrayForEach(object, trial->loaded)
        {
                _cleanup_free_ char *json = cJSON_PrintUnformatted(object);

                text_printf(&text, "---\n%s\n", json ? json : "");
                text.failed = text.failed || !json;
        }
        if (!new || !trial->manifests || text.failed)
                return -ENOMEM;
        return file_replace(trial->manifests, new, text.data ? text.data : "", text.size, &rules);
}

/* ---- the configuration */

static int take_config(cJSON *document, void *userdata, struct error *error _unused_)
{
        struct trial *trial = userdata;

        cJSON_Delete(trial->tree);
        trial->tree = cJSON_Duplicate(document, true);
        return trial->tree ? 0 : -ENOMEM;
}

static void tree_put(cJSON *object, const char *name, cJSON *value)
{
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        if (value)
                cJSON_AddItemToObject(object, name, value);
}

static void tree_put_text(cJSON *object, const char *name, const char *value)
{
        tree_put(object, name, cJSON_CreateString(value));
}

static cJSON *member_object(cJSON *object, const char *name)
{
        cJSON *member = json_member(object, name);

        if (cJSON_IsObject(member))
                return member;
        tree_put(object, name, cJSON_CreateObject());
        return json_member(object, name);
}

static void resolve_path(const struct trial *trial, cJSON *item)
{
        const char *text = cJSON_GetStringValue(item);
        _cleanup_free_ char *path = NULL;

        if (!text || (strncmp(text, "./", 2) != 0 && strncmp(text, "../", 3) != 0))
                return;
        path = format_string("%s/%s", trial->config_folder, text);
        if (path)
                cJSON_SetValuestring(item, path);
}

/* A process of the handler that finds the gate dies with its first request, as if it had crashed there. */
static cJSON *behind_gate(cJSON *command, const char *gate)
{
        static const char script[] =
                "gate=$1; shift; if rmdir \"$gate\" 2>/dev/null; then read -r request; kill -9 $$; fi; exec \"$@\"";
        cJSON *list = cJSON_CreateArray();

        cJSON_AddItemToArray(list, cJSON_CreateString("/bin/sh"));
        cJSON_AddItemToArray(list, cJSON_CreateString("-c"));
        cJSON_AddItemToArray(list, cJSON_CreateString(script));
        cJSON_AddItemToArray(list, cJSON_CreateString("handler"));
        cJSON_AddItemToArray(list, cJSON_CreateString(gate));
        while (command->child)
                cJSON_AddItemToArray(list, cJSON_DetachItemFromArray(command, 0));
        return list;
}

/* Where it has a kubeconfig, that is of another cluster. */
static const char *trial_account_namespace(const struct trial *trial)
{
        const struct config_handler *handler = &trial->watch->handler;

        return handler->kubernetes_account && handler->kubernetes_namespace ? handler->kubernetes_namespace
                                                                            : "default";
}

static const char *trial_account_name(const struct trial *trial)
{
        const char *name = trial->watch->handler.kubernetes_account;

        return name ? name : "handler";
}

char *trial_account(const struct trial *trial)
{
        return format_string("%s/%s", trial_account_namespace(trial), trial_account_name(trial));
}

static cJSON *account_of_handler(const struct trial *trial)
{
        cJSON *account = cJSON_CreateObject();

        cJSON_AddStringToObject(account, "serviceAccount", trial_account_name(trial));
        cJSON_AddStringToObject(account, "namespace", trial_account_namespace(trial));
        return account;
}

static void adapt_handler(const struct trial *trial, cJSON *handler, const char *gate)
{
        static const char *const dropped[] = {"credentials", "rate", "limits"};
        static const char *const command[] = {"exec", "serve"};

        for (size_t i = 0; i < ELEMENTS(dropped); i++)
                tree_put(handler, dropped[i], NULL);
        if (geteuid() != 0)
                tree_put(handler, "user", NULL);
        tree_put_text(member_object(handler, "environment"), "HOME", NO_HOME);
        if (trial->watch->handler.kubernetes)
                tree_put(handler, "kubernetes", account_of_handler(trial));
        else
                tree_put_text(member_object(handler, "environment"), "KUBECONFIG", NO_HOME "/kubeconfig");
        resolve_path(trial, json_member(handler, "plugin"));
        for (size_t i = 0; i < ELEMENTS(command); i++) {
                cJSON *list = json_member(handler, command[i]);

                if (!cJSON_IsArray(list) || !list->child)
                        continue;
                resolve_path(trial, list->child);
                if (gate)
                        tree_put(handler, command[i], behind_gate(list, gate));
        }
}

static void adapt_watch(const struct trial *trial, cJSON *watch, const char *gate)
{
        cJSON *retry = member_object(watch, "retry"), *reconnect = member_object(watch, "reconnect");

        tree_put_text(retry, "first", "20ms");
        tree_put_text(retry, "max", "200ms");
        tree_put(retry, "attempts", cJSON_CreateNumber(TRIAL_ATTEMPTS));
        tree_put_text(reconnect, "first", "50ms");
        tree_put_text(reconnect, "max", "1s");
        adapt_handler(trial, member_object(watch, "handler"), gate);
}

/* Adapts the watch that is tried, and removes the others. */
static void adapt_watches(const struct trial *trial, cJSON *tree, const char *gate)
{
        cJSON *list = json_member(tree, "watches"), *watch = list ? list->child : NULL;

        while (watch) {
                cJSON *next = watch->next;

                if (strcmp(json_text(watch, "name"), trial->watch->name) != 0)
                        cJSON_Delete(cJSON_DetachItemViaPointer(list, watch));
                else
                        adapt_watch(trial, watch, gate);
                watch = next;
        }
}

int trial_write_config(const struct trial *trial, const char *path, const char *kubeconfig,
                       const char *record, const char *gate)
{
        static const char *const dropped[] = {"replicas", "gateway", "schedules",
                                              "startup",  "cluster", "record"};
        const struct file_rules rules = {.mode = 0600};
        _cleanup_json_ cJSON *tree = cJSON_Duplicate(trial->tree, true);
        _cleanup_free_ char *json = NULL, *new = format_string("%s.new", path);

        if (!tree || !new)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTS(dropped); i++)
                tree_put(tree, dropped[i], NULL);
        tree_put_text(member_object(tree, "cluster"), "kubeconfig", kubeconfig);
        tree_put_text(member_object(tree, "stop"), "grace", "2s");
        tree_put(tree, "workers", cJSON_CreateNumber(1));
        if (record)
                tree_put_text(tree, "record", record);
        adapt_watches(trial, tree, gate);
        json = cJSON_PrintUnformatted(tree);
        return json ? file_replace(path, new, json, strlen(json), &rules) : -ENOMEM;
}

/* ---- the schema */

const char *trial_spec_name(const struct trial *trial)
{
        return json_member(trial->subject->child, "spec") || !json_member(trial->subject->child, "data")
                       ? "spec"
                       : "data";
}

static const cJSON *version_schema(const struct trial *trial, const cJSON *definition)
{
        const char *slash = strchr(trial->watch->api_version, '/');
        const cJSON *spec = json_member(definition, "spec"), *version;

        if (!slash || strcmp(json_text(json_member(spec, "names"), "kind"), trial->watch->kind) != 0 ||
            strncmp(json_text(spec, "group"), trial->watch->api_version,
                    (size_t)(slash - trial->watch->api_version)) != 0)
                return NULL;
        cJSON_ArrayForEach(version,
                           json_member(spec, "versions")) if (strcmp(json_text(version, "name"),
                                                                     slash + 1) == 0) return version;
        return NULL;
}

const cJSON *trial_spec_schema(const struct trial *trial)
{
        const cJSON *object, *version;

        cJSON_ArrayForEach(object, trial->loaded)
        {
                version = strcmp(json_text(object, "kind"), "CustomResourceDefinition") == 0
                                  ? version_schema(trial, object)
                                  : NULL;
                if (version)
                        return json_member(
                                json_member(json_member(json_member(version, "schema"), "openAPIV3Schema"),
                                            "properties"),
                                trial_spec_name(trial));
        }
        return NULL;
}

/* ---- all of it */

static int find_config_folder(struct trial *trial, const char *path, struct error *error)
{
        _cleanup_free_ char *real = realpath(path, NULL);

        if (!real)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        trial->config_folder = strndup(real, (size_t)(strrchr(real, '/') - real));
        return trial->config_folder ? 0 : error_set(error, -ENOMEM, "no memory");
}

int trial_new(const struct torture_options *options, const struct config *config,
              const struct config_watch *watch, struct trial **ret, struct error *error)
{
        const char *path = options->config ? options->config : RECONCILED_SYSCONFDIR "/reconciled.yaml";
        _cleanup_(trial_free_pointer) struct trial *trial = calloc(1, sizeof(*trial));
        int r;

        if (!trial)
                return error_set(error, -ENOMEM, "no memory");
        *trial = (struct trial){.options = options, .config = config, .watch = watch};
        trial->loaded = cJSON_CreateArray();
        trial->subject = cJSON_CreateArray();
        if (!trial->loaded || !trial->subject)
                return error_set(error, -ENOMEM, "no memory");
        r = find_config_folder(trial, path, error);
        if (r >= 0)
                r = yaml_each_text_document(path, take_config, trial, error);
        if (r >= 0)
                r = read_manifests(trial, error);
        if (r >= 0)
                r = temporary_folder_new(true, &trial->folder, error);
        if (r >= 0 && (trial->folder[0] != '/' || strlen(trial->folder) > FOLDER_MAX))
                r = error_set(
                        error, -EINVAL,
                        "%s: $TMPDIR must be an absolute path of at most %d bytes, for the operator's sockets",
                        trial->folder, FOLDER_MAX);
        if (r < 0)
                return error_set(error, r, "%s", strerror(-r));
        r = need_namespaces(trial);
        if (r >= 0)
                r = write_manifests(trial);
        if (r < 0)
                return error_set(error, r, "%s: %s", trial->folder, strerror(-r));
        *ret = TAKE_PTR(trial);
        return 0;
}

void trial_free(struct trial *trial)
{
        if (!trial)
                return;
        cJSON_Delete(trial->tree);
        cJSON_Delete(trial->loaded);
        cJSON_Delete(trial->subject);
        temporary_folder_remove(trial->folder);
        free(trial->folder);
        free(trial->manifests);
        free(trial->config_folder);
        free(trial);
}
