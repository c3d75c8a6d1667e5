/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that need more than one key: defaults, names, programs that must exist, values that contradict each
 * other. */
#include "config/check/check.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/text.h"
#include "config/check/check-handler.h"
#include "config/check/check-own.h"
#include "config/check/check-program.h"
#include "config/read/expand.h"
#include "config/read/problem.h"
#include "config/table.h"
#include "config/watch-notes.h"
#include "selector/requirement.h"

/* ---- selectors. The grammar alone: which fields a kind can be selected by is for the API server to say. */

typedef int (*parse_t)(const char *text, struct requirement **ret, struct error *error);

static void check_selector(struct reader *reader, const yaml_node_t *node, const char *key, const char *text,
                           parse_t parse)
{
        _cleanup_(requirements_free_pointer) struct requirement *list = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        if (!text)
                return;
        if (strpbrk(text, "\n\t")) {
                problem_add(reader, node, false, key, "must be on one line");
                return;
        }
        r = parse(text, &list, &error);
        if (r == -EINVAL)
                problem_add(reader, node, false, key, "%s", error_message(&error));
        else if (r < 0)
                reader->out_of_memory = true;
}

static void check_own(struct reader *reader, yaml_node_t *node, const char *path, const char *name,
                      char **value, parse_t parse)
{
        yaml_node_t *place = mapping_find(reader, node, name);
        char key[256];

        snprintf(key, sizeof(key), "%s.%s", path, name);
        if (*value && expand_text(reader, place, key, value))
                check_selector(reader, place, key, *value, parse);
}

static void check_kind_selectors(struct reader *reader, yaml_node_t *node, const char *path,
                                 const char *name, const struct config_owned *kind, size_t count)
{
        yaml_node_t *list = mapping_find(reader, node, name);

        for (size_t i = 0; i < count; i++) {
                yaml_node_t *entry = sequence_item(reader, list, i);
                char key[256];

                snprintf(key, sizeof(key), "%s.%s[%zu].labelSelector", path, name, i);
                check_selector(reader, mapping_find(reader, entry, "labelSelector"), key,
                               kind[i].label_selector, label_selector_parse);
        }
}

/* Whether the API server could read the selectors of a watch, and of the kinds that it owns or is related to. */
static void check_selectors(struct reader *reader, yaml_node_t *node, const char *path,
                            struct config_watch *watch)
{
        check_own(reader, node, path, "labelSelector", &watch->label_selector, label_selector_parse);
        check_own(reader, node, path, "fieldSelector", &watch->field_selector, field_selector_parse);
        check_kind_selectors(reader, node, path, "owns", watch->owns, watch->owns_count);
        check_kind_selectors(reader, node, path, "related", watch->related, watch->related_count);
}

#define CONDITION_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

#define NAME_MAX_LENGTH 63

#define HEARTBEAT_USEC (5 * USEC_PER_SEC)

void watch_defaults(struct config_watch *watch)
{
        *watch = (struct config_watch){
                .required = true,
                .events = true,
                .trigger = TRIGGER_ESSENCE,
                .handler = {.parallel = 1,
                            .batch_wait_usec = 20 * USEC_PER_MSEC,
                            .rate_burst = 1,
                            .timeout_usec = 2 * USEC_PER_MINUTE,
                            .grace_usec = 5 * USEC_PER_SEC,
                            .request_max = UINT64_C(32) << 20},
                .resync_usec = 10 * USEC_PER_HOUR,
                .retry_first_usec = USEC_PER_SEC,
                .retry_max_usec = 10 * USEC_PER_MINUTE,
                .retry_throttle_usec = USEC_PER_SEC,
                .settle_usec = 30 * USEC_PER_SEC,
                .quarantine_after = 3,
                .quarantine_usec = USEC_PER_HOUR,
                .deadline_usec = 5 * USEC_PER_MINUTE,
                .reconnect_first_usec = 800 * USEC_PER_MSEC,
                .stall_usec = 70 * USEC_PER_SEC,
                .watch_timeout_usec = 300 * USEC_PER_SEC,
                .initial_events_usec = 30 * USEC_PER_SEC,
                .reconnect_max_usec = 30 * USEC_PER_SEC,
        };
}

void watch_done(struct config_watch *watch)
{
        table_done(&watch_table, watch);
        table_done(&due_table, watch);
        free(watch->own_name);
        notes_done(watch);
        free(watch->handler.home);
        free(watch->related_names);
        free(watch->owner);
        free(watch->file);
        free(watch->place);
}

static void sub(char *out, size_t size, const char *path, const char *name)
{
        snprintf(out, size, "%s%s%s", path, path[0] ? "." : "", name);
}

/* ---- names */

static bool is_watch_name(const char *text, const char *extra)
{
        size_t length = strlen(text);

        if (length == 0 || length > NAME_MAX_LENGTH || !isalnum((unsigned char)text[0]))
                return false;
        for (; *text; text++)
                if (!isalnum((unsigned char)*text) && !strchr(extra, *text))
                        return false;
        return true;
}

/* As the API server wants one: no empty label, and none that begins or ends with a dash. */
#define OPERATOR_MAX 128 /* bytes of a field manager, and of who reports an Event; the server's limit */

static void check_operator_name(struct reader *reader, const char *key, const char *name)
{
        if (!name)
                problem_add(reader, NULL, false, key,
                            "is missing; give the operator a name like widgets.example.com");
        else if (!is_subdomain(name) || !strchr(name, '.'))
                problem_add(reader, NULL, false, key,
                            "\"%s\" is not a DNS name with a dot, like widgets.example.com (it prefixes "
                            "finalizers and is the field manager)",
                            name);
        else if (strlen(name) > OPERATOR_MAX)
                problem_add(reader, NULL, false, key,
                            "\"%s\" is longer than %d bytes: the API server accepts no longer field manager",
                            name, OPERATOR_MAX);
}

static void check_name(struct reader *reader, yaml_node_t *node, const char *path,
                       const struct config_watch *watch)
{
        const struct config *config = reader->config;
        char key[256];

        sub(key, sizeof(key), path, "name");
        if (!watch->name)
                return;
        if (!is_watch_name(watch->name, "-._"))
                problem_add(reader, mapping_find(reader, node, "name"), false, key,
                            "\"%s\" must be at most 63 letters, digits, '-', '.' or '_', and begin with a "
                            "letter or digit: it "
                            "names folders",
                            watch->name);
        for (size_t i = 0; i + 1 < config->watch_count; i++)
                if (config->watch[i].name && strcmp(config->watch[i].name, watch->name) == 0)
                        problem_add(reader, mapping_find(reader, node, "name"), false, key,
                                    "\"%s\" is taken by the watch at %s:%u", watch->name,
                                    config->watch[i].file, config->watch[i].line);
}

static bool is_namespace_pattern(const char *text)
{
        text += text[0] == '!';
        return text[0] && strlen(text) <= NAME_MAX_LENGTH &&
               strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-*?") == strlen(text);
}

static void check_namespaces(struct reader *reader, yaml_node_t *list, const char *path, const char *name,
                             char *const *pattern, size_t count)
{
        char key[256];

        sub(key, sizeof(key), path, name);
        for (size_t i = 0; i < count; i++) {
                if (!is_namespace_pattern(pattern[i]))
                        problem_add(
                                reader, list, false, key,
                                "\"%s\" is neither the name of a namespace nor a pattern (team-*, !kube-*)",
                                pattern[i]);
                for (size_t j = 0; j < i; j++)
                        if (strcmp(pattern[j], pattern[i]) == 0)
                                problem_add(reader, list, false, key, "\"%s\" is given twice", pattern[i]);
        }
}

/* The namespaces of the watch, and those in which its handler may write besides the object's own. */
static void check_all_namespaces(struct reader *reader, yaml_node_t *node, const char *path,
                                 const struct config_watch *watch)
{
        yaml_node_t *patches = mapping_find(reader, node, "patches");

        check_namespaces(reader, mapping_find(reader, node, "namespaces"), path, "namespaces",
                         watch->own ? watch->related_namespace : watch->namespace,
                         watch->own ? watch->related_namespace_count : watch->namespace_count);
        check_namespaces(reader, mapping_find(reader, mapping_find(reader, node, "children"), "namespaces"),
                         path, "children.namespaces", watch->child_namespace, watch->child_namespace_count);
        for (size_t i = 0; i < watch->patches_count; i++) {
                yaml_node_t *entry = sequence_item(reader, patches, i);
                char name[64];

                snprintf(name, sizeof(name), "patches[%zu].namespaces", i);
                check_namespaces(reader, mapping_find(reader, entry, "namespaces"), path, name,
                                 watch->patches[i].namespace, watch->patches[i].namespace_count);
        }
}

/* ---- what stands together */

static void check_order(struct reader *reader, yaml_node_t *node, const char *path, const char *name,
                        uint64_t first, uint64_t max)
{
        char key[256];

        sub(key, sizeof(key), path, name);
        if (first > max)
                problem_add(reader, mapping_find(reader, node, name), false, key,
                            "first is larger than max");
}

#define SOCKET_PATH_MAX 107

static bool is_port(const char *text)
{
        size_t digits = strspn(text, "0123456789");

        return digits > 0 && digits <= 5 && text[digits] == '\0' && strtol(text, NULL, 10) <= 65535;
}

static void default_text(struct reader *reader, char **place, const char *text)
{
        if (!*place)
                (void)keep_text(reader, place, text);
}

/* true and false, or a type of its own. */
static void settle_ready_condition(struct reader *reader, yaml_node_t *node, const char *path,
                                   struct config_watch *watch)
{
        const char *type = watch->ready_condition;
        char key[256];

        if (strcmp(type, "true") == 0 || strcmp(type, "false") == 0) {
                (void)keep_text(reader, &watch->ready_condition, type[0] == 't' ? "Ready" : "");
                return;
        }
        if (!type[0] || (strlen(type) <= 63 && strspn(type, CONDITION_CHARACTERS) == strlen(type) &&
                         isalpha((unsigned char)type[0])))
                return;
        sub(key, sizeof(key), path, "readyCondition");
        problem_add(reader, mapping_find(reader, node, "readyCondition"), false, key,
                    "\"%s\" is neither true nor false nor the type of a condition (letters and digits: "
                    "Installed)",
                    type);
}

/* The program that names related objects; owned ones are found without a program. */
static void check_names(struct reader *reader, yaml_node_t *node, const char *path,
                        const struct config_watch *watch)
{
        char key[256], place[64];

        for (size_t i = 0; i < watch->owns_count; i++)
                if (watch->owns[i].names) {
                        snprintf(place, sizeof(place), "owns[%zu].names", i);
                        sub(key, sizeof(key), path, place);
                        problem_add(
                                reader, mapping_find(reader, node, "owns"), false, key,
                                "is for `related`: what an object owns is found by its owner references");
                }
        for (size_t i = 0; i < watch->related_count; i++) {
                snprintf(place, sizeof(place), "related[%zu].names", i);
                sub(key, sizeof(key), path, place);
                check_program(reader, mapping_find(reader, node, "related"), key, watch->related[i].names);
        }
}

static bool is_api_version(const char *text)
{
        const char *slash = strchr(text, '/');

        return text[0] && slash != text && (!slash || (slash[1] && !strchr(slash + 1, '/')));
}

static void check_api_version(struct reader *reader, yaml_node_t *node, const char *path,
                              const char *api_version)
{
        if (api_version && !is_api_version(api_version))
                problem_add(reader, node, false, path,
                            "\"%s\" is neither a version (v1) nor group/version (example.com/v1)",
                            api_version);
}

/* Whether two entries mean the very same objects. Where a text is missing, that is a mistake of its own. */
static bool is_same_kind(const struct config_owned *a, const struct config_owned *b)
{
        return a->api_version && a->kind && is_same_text(a->api_version, b->api_version) &&
               is_same_text(a->kind, b->kind) && is_same_text(a->label_selector, b->label_selector) &&
               is_same_text(a->names, b->names);
}

static void check_repeated(struct reader *reader, yaml_node_t *list, const char *path, const char *name,
                           const struct config_owned *kind, size_t number)
{
        char key[256], place[64];

        for (size_t i = 0; i < number; i++)
                if (is_same_kind(&kind[i], &kind[number])) {
                        snprintf(place, sizeof(place), "%s[%zu]", name, number);
                        sub(key, sizeof(key), path, place);
                        problem_add(reader, sequence_item(reader, list, number), true, key,
                                    "says the same as %s[%zu] (%s %s); keep one", name, i,
                                    kind[i].api_version, kind[i].kind);
                        return;
                }
}

static void check_kinds(struct reader *reader, yaml_node_t *node, const char *path, const char *name,
                        const struct config_owned *kind, size_t count)
{
        char key[256], place[64];

        for (size_t i = 0; i < count; i++) {
                snprintf(place, sizeof(place), "%s[%zu].apiVersion", name, i);
                sub(key, sizeof(key), path, place);
                check_api_version(reader, node, key, kind[i].api_version);
                check_repeated(reader, node, path, name, kind, i);
        }
}

static void check_all_kinds(struct reader *reader, yaml_node_t *node, const char *path,
                            const struct config_watch *watch)
{
        check_kinds(reader, mapping_find(reader, node, "owns"), path, "owns", watch->owns,
                    watch->owns_count);
        check_kinds(reader, mapping_find(reader, node, "related"), path, "related", watch->related,
                    watch->related_count);
        check_kinds(reader, mapping_find(reader, mapping_find(reader, node, "children"), "kinds"), path,
                    "children.kinds", watch->answers, watch->answers_count);
        check_kinds(reader, mapping_find(reader, node, "patches"), path, "patches", watch->patches,
                    watch->patches_count);
}

/* Without a wait, nothing is ready or not: children go when the others are written. */
static void check_prune(struct reader *reader, yaml_node_t *node, const char *path,
                        const struct config_watch *watch)
{
        char key[256];

        if (watch->children_prune != PRUNE_BEFORE || watch->wait_usec > 0)
                return;
        sub(key, sizeof(key), path, "children.prune");
        problem_add(reader, mapping_find(reader, mapping_find(reader, node, "children"), "prune"), true, key,
                    "`before` means before the others are ready, which nothing waits for: set children.wait "
                    "too");
}

/* What is set on objects of others is given up before the object goes. */
static void check_patches(struct reader *reader, yaml_node_t *node, const char *path,
                          const struct config_watch *watch)
{
        char key[256];

        if (watch->patches_count == 0 || watch->finalizer)
                return;
        sub(key, sizeof(key), path, "patches");
        problem_add(reader, mapping_find(reader, node, "patches"), false, key,
                    "needs `finalizer: true`: without it, the fields would stay when the object is gone");
}

/* Secrets are always confidential; other kinds may hold credentials as well, and only people know which. */
static bool is_secret(const char *api_version, const char *kind)
{
        return api_version && kind && strcmp(api_version, "v1") == 0 && strcmp(kind, "Secret") == 0;
}

void check_watch(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch)
{
        char key[256];

        sub(key, sizeof(key), path, "apiVersion");
        check_api_version(reader, mapping_find(reader, node, "apiVersion"), key, watch->api_version);
        check_name(reader, node, path, watch);
        check_all_namespaces(reader, node, path, watch);
        check_selectors(reader, node, path, watch);
        check_handler(reader, node, path, watch);
        sub(key, sizeof(key), path, "trigger.jq");
        check_program(reader, mapping_find(reader, node, "trigger"), key, watch->trigger_jq);
        sub(key, sizeof(key), path, "filter");
        check_program(reader, mapping_find(reader, node, "filter"), key, watch->filter);
        check_names(reader, node, path, watch);
        check_all_kinds(reader, node, path, watch);
        check_patches(reader, node, path, watch);
        check_prune(reader, node, path, watch);
        default_text(reader, &watch->ready_condition, "");
        if (watch->ready_condition)
                settle_ready_condition(reader, node, path, watch);
        if (watch->ready_condition && watch->ready_condition[0] && watch->metadata_only) {
                sub(key, sizeof(key), path, "readyCondition");
                problem_add(reader, mapping_find(reader, node, "readyCondition"), false, key,
                            "needs the object's status, which metadataOnly leaves out");
        }
        check_order(reader, node, path, "retry", watch->retry_first_usec, watch->retry_max_usec);
        check_order(reader, node, path, "reconnect", watch->reconnect_first_usec, watch->reconnect_max_usec);
        default_text(reader, &watch->label_selector, "");
        default_text(reader, &watch->related_names, "");
        default_text(reader, &watch->field_selector, "");
        default_text(reader, &watch->trigger_jq, "");
        default_text(reader, &watch->filter, "");
        check_id(reader, node, path, watch);
        watch->confidential = watch->confidential || is_secret(watch->api_version, watch->kind);
        if (watch->previous && watch->confidential) {
                sub(key, sizeof(key), path, "previous");
                problem_add(
                        reader, mapping_find(reader, node, "previous"), false, key,
                        "is not kept of Secrets and of other confidential objects, since it lies on a disk");
        }
}

static void check_absolute(struct reader *reader, const char *key, const char *path)
{
        if (path && path[0] && path[0] != '/')
                problem_add(reader, NULL, false, key, "\"%s\" is not an absolute path", path);
}

static void check_tls(struct reader *reader)
{
        char *certificate = reader->config->gateway_certificate_file,
             *key = reader->config->gateway_key_file;

        check_absolute(reader, "gateway.tls.certificateFile", certificate);
        check_absolute(reader, "gateway.tls.keyFile", key);
        if (certificate && key && certificate[0] == '/' && key[0] == '/')
                check_certificate(reader, certificate, key);
}

static void check_gateway(struct reader *reader)
{
        struct config *config = reader->config;
        const char *listen, *colon;

        default_text(reader, &config->gateway_listen, "127.0.0.1:9464");
        default_text(reader, &config->gateway_token_file, "");
        default_text(reader, &config->gateway_certificate_file, "");
        default_text(reader, &config->gateway_key_file, "");
        check_tls(reader);
        check_absolute(reader, "gateway.tokenFile", config->gateway_token_file);
        listen = config->gateway_listen;
        if (!listen)
                return;
        colon = strrchr(listen, ':');
        if (strncmp(listen, "unix:", 5) == 0 ? listen[5] != '/' || strlen(listen + 5) > SOCKET_PATH_MAX
                                             : !colon || !is_port(colon + 1))
                problem_add(reader, NULL, false, "gateway.listen",
                            "\"%s\" is neither ADDRESS:PORT (127.0.0.1:9464, [::1]:9464) nor unix:/PATH",
                            listen);
}

/* ---- owned kinds */

/* What a schedule is related to is not only where its own object is. */
static int copy_namespaces(const struct config_watch *from, struct config_watch *to)
{
        char *const *namespace = from->own ? from->related_namespace : from->namespace;
        size_t count = from->own ? from->related_namespace_count : from->namespace_count;

        to->namespace = calloc(count + 1, sizeof(char *));
        if (!to->namespace)
                return -ENOMEM;
        for (; to->namespace_count < count; to->namespace_count++) {
                to->namespace[to->namespace_count] = strdup(namespace[to->namespace_count]);
                if (!to->namespace[to->namespace_count])
                        return -ENOMEM;
        }
        return 0;
}

/* The name of the watch that follows an `owns` or `related` entry; number counts `owns` first. */
static char *owned_name(const struct config_watch *parent, size_t number)
{
        bool is_related = number >= parent->owns_count;
        size_t place = is_related ? number - parent->owns_count : number;
        const struct config_owned *owned = is_related ? &parent->related[place] : &parent->owns[place];
        return format_string("%s.%s.%s.%zu", parent->name, is_related ? "related" : "owns",
                             owned->kind ? owned->kind : "", place);
}

/* Two of one name would share a store. */
static void check_owned_names(struct reader *reader)
{
        const struct config *config = reader->config;

        FOREACH_ARRAY(parent, config->watch, config->watch_count) {
                for (size_t k = 0; parent->name && k < parent->owns_count + parent->related_count; k++) {
                        _cleanup_free_ char *name = owned_name(parent, k);

                        for (size_t j = 0; name && j < config->watch_count; j++)
                                if (config->watch[j].name && strcmp(config->watch[j].name, name) == 0)
                                        problem_add(
                                                reader, NULL, false, "watches",
                                                "\"%s\" (line %u) is also the name of a watch of the kind "
                                                "that watch %s %s",
                                                name, config->watch[j].line, parent->name,
                                                k < parent->owns_count ? "owns" : "is related to");
                }
        }
}

/* Makes a watch that is as patient as that of the owners, and of the same namespaces. */
static int make_owned(const struct config_watch *parent, size_t number, struct config_watch *ret)
{
        bool is_related = number >= parent->owns_count;
        size_t place = is_related ? number - parent->owns_count : number;
        const struct config_owned *owned = is_related ? &parent->related[place] : &parent->owns[place];

        watch_defaults(ret);
        ret->is_related = is_related;
        ret->metadata_only = owned->metadata_only;
        ret->confidential = owned->confidential || is_secret(owned->api_version, owned->kind);
        ret->name = owned_name(parent, number);
        ret->owner = strdup(parent->name);
        ret->api_version = strdup(owned->api_version);
        ret->kind = strdup(owned->kind);
        ret->label_selector = strdup(text_or_empty(owned->label_selector));
        ret->ready_condition = strdup("");
        ret->related_names = strdup(text_or_empty(owned->names));
        ret->field_selector = strdup("");
        ret->trigger_jq = strdup("");
        ret->filter = strdup("");
        ret->file = strdup(text_or_empty(parent->file));
        ret->line = owned->line;
        ret->place = format_string("%s.%s[%zu]", parent->place, is_related ? "related" : "owns", place);
        ret->trigger = TRIGGER_ANY;
        ret->on_deadline = parent->on_deadline;
        ret->deadline_usec = parent->deadline_usec;
        ret->reconnect_first_usec = parent->reconnect_first_usec;
        ret->reconnect_max_usec = parent->reconnect_max_usec;
        ret->stall_usec = parent->stall_usec;
        ret->watch_timeout_usec = parent->watch_timeout_usec;
        ret->initial_events_usec = parent->initial_events_usec;
        return ret->name && ret->owner && ret->api_version && ret->kind && ret->label_selector &&
                               ret->field_selector && ret->related_names && ret->ready_condition &&
                               ret->trigger_jq && ret->filter && ret->file && ret->place
                       ? copy_namespaces(parent, ret)
                       : -ENOMEM;
}

int expand_owned(struct config *config)
{
        size_t ordinary = config->watch_count, count = ordinary;
        struct config_watch *grown;

        for (size_t i = 0; i < ordinary; i++)
                count += config->watch[i].owns_count + config->watch[i].related_count;
        grown = reallocarray(config->watch, count, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        config->watch = grown;
        for (size_t i = 0; i < ordinary; i++)
                for (size_t k = 0; k < grown[i].owns_count + grown[i].related_count; k++) {
                        int r = make_owned(&grown[i], k, &grown[config->watch_count++]);

                        if (r < 0)
                                return r;
                }
        return 0;
}

/* Often enough that three may be lost. Each costs two processes a wakeup. */
static void default_heartbeat(struct config *config)
{
        const uint64_t quarter = config->heartbeat_deadline_usec / 4;

        if (config->heartbeat_interval_usec == 0)
                config->heartbeat_interval_usec = quarter < HEARTBEAT_USEC ? quarter : HEARTBEAT_USEC;
}

/* The supervisor and reconciledctl read the kubeconfig later, and blame the right line. */
static void keep_cluster_place(struct reader *reader)
{
        const struct place *place = place_find(reader, "cluster.kubeconfig");

        default_text(reader, &reader->config->kubeconfig_file, place && place->file ? place->file : "");
        reader->config->kubeconfig_line = place ? place->line : 0;
}

void check_config(struct reader *reader)
{
        struct config *config = reader->config;

        keep_cluster_place(reader);
        default_text(reader, &config->kubeconfig, "");
        default_text(reader, &config->context, "");
        check_operator_name(reader, "operator", config->operator_name);
        for (size_t i = 0; i < config->former_count; i++) {
                check_operator_name(reader, "formerNames", config->former[i]);
                if (config->operator_name && strcmp(config->former[i], config->operator_name) == 0)
                        problem_add(reader, NULL, false, "formerNames", "\"%s\" is the operator's name now",
                                    config->former[i]);
                for (size_t j = 0; j < i; j++)
                        if (strcmp(config->former[i], config->former[j]) == 0) {
                                problem_add(reader, NULL, true, "formerNames", "\"%s\" is given twice",
                                            config->former[i]);
                                break;
                        }
        }
        check_owned_names(reader);
        check_own_objects(reader);
        check_replicas(reader);
        for (size_t i = 0; i < config->watch_count; i++)
                if (config->watch[i].name)
                        check_separate(reader, &config->watch[i]);
        check_gateway(reader);
        default_text(reader, &config->record, "");
        check_absolute(reader, "record", config->record);
        if (config->watch_count == 0)
                problem_add(reader, NULL, false, "watches",
                            "is missing or empty, and so are schedules and startup; there is nothing to do");
        default_heartbeat(config);
        if (config->heartbeat_deadline_usec < 3 * config->heartbeat_interval_usec)
                problem_add(reader, NULL, false, "heartbeat.deadline",
                            "must be at least three times heartbeat.interval");
}
