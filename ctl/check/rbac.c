/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl rbac`: the least roles that a configuration needs, as manifests. No server is asked: the
 * plural of a kind is formed as Kubernetes itself guesses it, and --plural corrects that. A definition (--crd) tells plural
 * and scope.
 */
#include "ctl/check/rbac.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "config/config-watch.h"
#include "config/config.h"
#include "ctl/output/output.h"
#include "object/identity.h"

#define RBAC_GROUP   "rbac.authorization.k8s.io"
#define RBAC_VERSION RBAC_GROUP "/v1"

/* As meta.UnsafeGuessKindToResource does it. */
static void guess_plural(const char *kind, char *plural, size_t size)
{
        char lower[128];
        size_t length = strlen(kind) < sizeof(lower) ? strlen(kind) : sizeof(lower) - 1;
        char last = length > 0 ? (char)tolower((unsigned char)kind[length - 1]) : '\0';

        for (size_t i = 0; i < length; i++)
                lower[i] = (char)tolower((unsigned char)kind[i]);
        lower[length] = '\0';
        if (strcmp(lower, "endpoints") == 0)
                snprintf(plural, size, "%s", lower);
        else if (last == 's')
                snprintf(plural, size, "%ses", lower);
        else if (last == 'y')
                snprintf(plural, size, "%.*sies", (int)length - 1, lower);
        else
                snprintf(plural, size, "%ss", lower);
}

static void find_plural(const struct rbac_options *options, const char *api_version, const char *kind,
                        char *plural, size_t size)
{
        const struct definition *definition = definition_find(&options->definitions, api_version, kind);
        size_t length = strlen(kind);

        for (size_t i = 0; i < options->plural_count; i++)
                if (strncmp(options->plural[i], kind, length) == 0 && options->plural[i][length] == '=') {
                        snprintf(plural, size, "%s", options->plural[i] + length + 1);
                        return;
                }
        if (definition)
                snprintf(plural, size, "%s", definition->plural);
        else
                guess_plural(kind, plural, size);
}

static bool names_kind(const struct config_owned *kind, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(kind[i].kind, name) == 0)
                        return true;
        return false;
}

/* Owned and related kinds have watches of their own, so one list holds them all. */
static bool is_kind_of(const struct config *config, const char *name)
{
        FOREACH_ARRAY(watch, config->watch, config->watch_count)
                if (strcmp(watch->kind, name) == 0 ||
                    names_kind(watch->answers, watch->answers_count, name) ||
                    names_kind(watch->patches, watch->patches_count, name))
                        return true;
        return false;
}

/* A plural of another kind is a word with a mistake: the role would lack what it is meant to have. */
static int check_plurals(const struct rbac_options *options, const struct config *config)
{
        for (size_t i = 0; i < options->plural_count; i++) {
                const char *given = options->plural[i];
                _cleanup_free_ char *kind = strndup(given, strcspn(given, "="));

                if (!kind)
                        return EXIT_CODE_SOFTWARE;
                if (is_kind_of(config, kind))
                        continue;
                fprintf(stderr, "reconciledctl: --plural %s: the configuration names no kind %s\n", given,
                        kind);
                return EXIT_CODE_USAGE;
        }
        return EXIT_CODE_OK;
}

/* ---- where */

static bool is_pattern(const char *namespace)
{
        return strpbrk(namespace, "*?!") != NULL;
}

static bool has_pattern(char *const *namespace, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (is_pattern(namespace[i]))
                        return true;
        return false;
}

static bool has_name(char *const *namespace, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(namespace[i], name) == 0)
                        return true;
        return false;
}

/* Kubernetes' own kinds that belong to no namespace, and what is defined so; others are taken to belong to one. */
static bool is_of_cluster(const struct rbac_options *options, const char *api_version, const char *kind)
{
        static const char *const known[] = {"APIService",
                                            "CSIDriver",
                                            "CertificateSigningRequest",
                                            "ClusterRole",
                                            "ClusterRoleBinding",
                                            "CustomResourceDefinition",
                                            "IngressClass",
                                            "MutatingWebhookConfiguration",
                                            "Namespace",
                                            "Node",
                                            "PersistentVolume",
                                            "PriorityClass",
                                            "RuntimeClass",
                                            "StorageClass",
                                            "ValidatingAdmissionPolicy",
                                            "ValidatingAdmissionPolicyBinding",
                                            "ValidatingWebhookConfiguration"};

        const struct definition *definition = definition_find(&options->definitions, api_version, kind);

        if (definition)
                return definition->of_cluster;
        for (size_t i = 0; i < ELEMENTS(known); i++)
                if (strcmp(known[i], kind) == 0)
                        return true;
        return false;
}

static bool is_cluster_wide(const struct config_watch *watch)
{
        return watch->namespace_count == 0 || has_pattern(watch->namespace, watch->namespace_count);
}

static bool grants_in(const struct config_watch *watch, const char *namespace)
{
        return !is_cluster_wide(watch) && has_name(watch->namespace, watch->namespace_count, namespace);
}

/* Whether the role of `place` (a namespace, or NULL for the ClusterRole) has the rules for the watch's own kind. */
static bool is_watched_in(const struct config_watch *watch, const char *place)
{
        return place ? grants_in(watch, place) : is_cluster_wide(watch);
}

struct kind {
        const char *api_version, *kind;
};

/* The same for a kind that its handlers may write beside the object: in the object's own namespace (a Namespace is its own)
 * and in those that are named. */
static bool is_written_everywhere(const struct rbac_options *options, const struct config_watch *watch,
                                  const struct kind *kind, char *const *namespace, size_t count)
{
        bool has_own = !is_of_cluster(options, watch->api_version, watch->kind) ||
                       strcmp(watch->kind, "Namespace") == 0;

        return is_of_cluster(options, kind->api_version, kind->kind) || has_pattern(namespace, count) ||
               (has_own && is_cluster_wide(watch));
}

static bool is_written_in(const struct rbac_options *options, const struct config_watch *watch,
                          const struct kind *kind, char *const *namespace, size_t count, const char *place)
{
        bool everywhere = is_written_everywhere(options, watch, kind, namespace, count);

        return place ? !everywhere && (grants_in(watch, place) || has_name(namespace, count, place))
                     : everywhere;
}

static bool is_child_in(const struct rbac_options *options, const struct config_watch *watch,
                        const struct kind *kind, const char *place)
{
        return is_written_in(options, watch, kind, watch->child_namespace, watch->child_namespace_count,
                             place);
}

/* ---- manifests */

static cJSON *add_manifest(cJSON *list, const char *api_version, const char *kind, const char *name,
                           const char *namespace)
{
        cJSON *manifest = cJSON_CreateObject(), *metadata;

        cJSON_AddStringToObject(manifest, "apiVersion", api_version);
        cJSON_AddStringToObject(manifest, "kind", kind);
        metadata = cJSON_AddObjectToObject(manifest, "metadata");
        cJSON_AddStringToObject(metadata, "name", name);
        if (namespace)
                cJSON_AddStringToObject(metadata, "namespace", namespace);
        cJSON_AddItemToArray(list, manifest);
        return manifest;
}

/* words: with a space between each. */
static void add_words(cJSON *object, const char *name, const char *words)
{
        cJSON *list = cJSON_AddArrayToObject(object, name);

        do {
                char word[320]; /* a group is a DNS subdomain */
                size_t size = strcspn(words, " ");

                snprintf(word, sizeof(word), "%.*s", (int)size, words);
                cJSON_AddItemToArray(list, cJSON_CreateString(word));
                words += size + (words[size] == ' ');
        } while (words[0]);
}

struct rule {
        const char *comment, *api_version, *resource, *name,
                *verbs; /* comment and name: NULL if there is none */
};

static void add_rule(cJSON *rules, const struct rule *rule)
{
        cJSON *item = cJSON_CreateObject();
        char group[256];

        snprintf(group, sizeof(group), "%.*s", (int)api_group_size(rule->api_version), rule->api_version);
        if (rule->comment)
                cJSON_AddStringToObject(item, MANIFEST_COMMENT, rule->comment);
        add_words(item, "apiGroups", group);
        add_words(item, "resources", rule->resource);
        if (rule->name)
                add_words(item, "resourceNames", rule->name);
        add_words(item, "verbs", rule->verbs);
        cJSON_AddItemToArray(rules, item);
}

static void add_events_rule(cJSON *rules)
{
        add_rule(rules, &(struct rule){.comment = "Events about the objects",
                                       .api_version = "events.k8s.io/v1",
                                       .resource = "events",
                                       .verbs = "create patch"});
}

static bool is_owned_kind(const struct config_watch *watch, const struct config_owned *kind)
{
        size_t size = api_group_size(kind->api_version);

        for (size_t i = 0; i < watch->owns_count; i++)
                if (strcmp(watch->owns[i].kind, kind->kind) == 0 &&
                    api_group_size(watch->owns[i].api_version) == size &&
                    strncmp(watch->owns[i].api_version, kind->api_version, size) == 0)
                        return true;
        return false;
}

/* Children block the deletion of their owner in the foreground. Where the API server enforces permissions on
 * owner references (OpenShift does), the writer of such a reference must be allowed to set the owner's
 * finalizers. */
static void add_finalizers_rule(const struct config_watch *watch, const char *plural, cJSON *rules)
{
        char finalizers[192];

        if (watch->owns_count == 0 && watch->answers_count == 0)
                return;
        snprintf(finalizers, sizeof(finalizers), "%s/finalizers", plural);
        add_rule(rules, &(struct rule){NULL, watch->api_version, finalizers, NULL, "update"});
}

static void add_answers_rules(const struct rbac_options *options, const struct config_watch *watch,
                              const char *place, cJSON *rules)
{
        char comment[400], plural[160];

        snprintf(comment, sizeof(comment), "children of watch %s", watch->name);
        FOREACH_ARRAY(kind, watch->answers, watch->answers_count) {
                if (is_owned_kind(watch, kind) ||
                    !is_child_in(options, watch, &(struct kind){kind->api_version, kind->kind}, place))
                        continue;
                find_plural(options, kind->api_version, kind->kind, plural, sizeof(plural));
                add_rule(rules, &(struct rule){comment, kind->api_version, plural, NULL,
                                               "get list create patch delete"});
        }
}

static void add_patches_rules(const struct rbac_options *options, const struct config_watch *watch,
                              const char *place, cJSON *rules)
{
        char comment[400], plural[160];

        snprintf(comment, sizeof(comment), "what watch %s patches", watch->name);
        FOREACH_ARRAY(kind, watch->patches, watch->patches_count) {
                if (!is_written_in(options, watch, &(struct kind){kind->api_version, kind->kind},
                                   kind->namespace, kind->namespace_count, place))
                        continue;
                find_plural(options, kind->api_version, kind->kind, plural, sizeof(plural));
                add_rule(rules, &(struct rule){comment, kind->api_version, plural, NULL, "get patch"});
        }
}

/* Rules for what the objects of a watch own or depend on. Children may be in namespaces that the watch does not
 * follow. */
static void add_owned_rules(const struct rbac_options *options, const struct config *config,
                            const struct config_watch *watch, const char *place, cJSON *rules)
{
        bool reads = is_watched_in(watch, place);
        bool writes =
                !watch->is_related && is_child_in(options, config_watch_find(config, watch->owner),
                                                  &(struct kind){watch->api_version, watch->kind}, place);
        char plural[160], comment[400];

        if (!reads && !writes)
                return;
        find_plural(options, watch->api_version, watch->kind, plural, sizeof(plural));
        snprintf(comment, sizeof(comment), "what the objects of watch %s %s", watch->owner,
                 watch->is_related ? "depend on" : "own");
        add_rule(rules, &(struct rule){comment, watch->api_version, plural, NULL,
                                       !writes ? "get list watch"
                                       : reads ? "get list watch create patch delete"
                                               : "get list create patch delete"});
}

/* patch: what handlers answer, on the object and on its status. */
static void add_rules(const struct rbac_options *options, const struct config *config,
                      const struct config_watch *watch, const char *place, cJSON *rules)
{
        char plural[160], status[sizeof(plural) + 8], comment[400];

        if (watch->owner) {
                add_owned_rules(options, config, watch, place, rules);
                return;
        }
        find_plural(options, watch->api_version, watch->kind, plural, sizeof(plural));
        snprintf(status, sizeof(status), "%s/status", plural);
        snprintf(comment, sizeof(comment), watch->own ? "the operator's own object of %s" : "watch %s",
                 watch->name);
        if (is_watched_in(watch, place)) {
                add_rule(rules, &(struct rule){comment, watch->api_version, plural, NULL,
                                               watch->own ? "get list watch create patch"
                                                          : "get list watch patch"});
                if (!watch->own) /* a ConfigMap has no status */
                        add_rule(rules, &(struct rule){NULL, watch->api_version, status, NULL, "patch"});
                add_finalizers_rule(watch, plural, rules);
        }
        add_answers_rules(options, watch, place, rules);
        add_patches_rules(options, watch, place, rules);
}

/* The role `name` for a service account. */
static void bind_account(const char *kind, const char *name, const char *namespace, const char *account,
                         const char *account_namespace, cJSON *list)
{
        cJSON *binding, *part;
        char binding_kind[32];

        snprintf(binding_kind, sizeof(binding_kind), "%sBinding", kind);
        binding = add_manifest(list, RBAC_VERSION, binding_kind, name, namespace);
        part = cJSON_AddObjectToObject(binding, "roleRef");
        cJSON_AddStringToObject(part, "apiGroup", RBAC_GROUP);
        cJSON_AddStringToObject(part, "kind", kind);
        cJSON_AddStringToObject(part, "name", name);
        part = cJSON_CreateObject();
        cJSON_AddStringToObject(part, "kind", "ServiceAccount");
        cJSON_AddStringToObject(part, "name", account);
        cJSON_AddStringToObject(part, "namespace", account_namespace);
        cJSON_AddItemToArray(cJSON_AddArrayToObject(binding, "subjects"), part);
}

static void add_binding(const struct rbac_options *options, const char *kind, const char *name,
                        const char *namespace, cJSON *list)
{
        bind_account(kind, name, namespace, options->service_account, options->namespace, list);
}

/* Events about an object are in its namespace; those about an object of the cluster are in `default`. */
static bool has_events(const struct config *config, const char *place)
{
        for (size_t i = 0; i < config->watch_count; i++)
                if (!config->watch[i].owner && is_watched_in(&config->watch[i], place))
                        return true;
        return false;
}

static void add_cluster_role(const struct rbac_options *options, const struct config *config, cJSON *list)
{
        cJSON *role = add_manifest(list, RBAC_VERSION, "ClusterRole", config->operator_name, NULL);
        cJSON *rules = cJSON_AddArrayToObject(role, "rules");

        add_rule(rules,
                 &(struct rule){"to recognize the cluster, so that a change of clusters is not mistaken for "
                                "deletions",
                                "v1", "namespaces", "kube-system", "get"});
        for (size_t i = 0; i < config->watch_count; i++)
                add_rules(options, config, &config->watch[i], NULL, rules);
        if (has_events(config, NULL))
                add_events_rule(rules);
        add_binding(options, "ClusterRole", config->operator_name, NULL, list);
}

static void add_role(const struct rbac_options *options, const struct config *config, const char *place,
                     cJSON *list)
{
        cJSON *rules = cJSON_CreateArray();

        for (size_t i = 0; i < config->watch_count; i++)
                add_rules(options, config, &config->watch[i], place, rules);
        if (has_events(config, place))
                add_events_rule(rules);
        if (cJSON_GetArraySize(rules) == 0) {
                cJSON_Delete(rules);
                return;
        }
        cJSON_AddItemToObject(add_manifest(list, RBAC_VERSION, "Role", config->operator_name, place),
                              "rules", rules);
        add_binding(options, "Role", config->operator_name, place, list);
}

/* done: the names of the namespaces that have their role, as a JSON object. */
static void add_roles_of(const struct rbac_options *options, const struct config *config,
                         char *const *namespace, size_t count, cJSON *done, cJSON *list)
{
        for (size_t i = 0; i < count; i++) {
                if (is_pattern(namespace[i]) || cJSON_HasObjectItem(done, namespace[i]))
                        continue;
                cJSON_AddNullToObject(done, namespace[i]);
                add_role(options, config, namespace[i], list);
        }
}

static void add_roles(const struct rbac_options *options, const struct config *config, cJSON *list)
{
        cJSON *done = cJSON_CreateObject();

        FOREACH_ARRAY(watch, config->watch, config->watch_count) {
                add_roles_of(options, config, watch->namespace, watch->namespace_count, done, list);
                add_roles_of(options, config, watch->child_namespace, watch->child_namespace_count, done,
                             list);
                for (size_t k = 0; k < watch->patches_count; k++)
                        add_roles_of(options, config, watch->patches[k].namespace,
                                     watch->patches[k].namespace_count, done, list);
        }
        cJSON_Delete(done);
}

/* ---- replicas */

static void add_leases_role(const struct rbac_options *options, const struct config *config, cJSON *list)
{
        char name[640];
        cJSON *rules;

        if (!config->replicas)
                return;
        snprintf(name, sizeof(name), "%s:leases", config->operator_name);
        rules = cJSON_AddArrayToObject(
                add_manifest(list, RBAC_VERSION, "Role", name, config->replicas_namespace), "rules");
        add_rule(rules, &(struct rule){"which of several replicas leads", "coordination.k8s.io/v1", "leases",
                                       NULL, "get list watch create patch delete"});
        add_binding(options, "Role", name, config->replicas_namespace, list);
}

/* ---- accounts of handlers */

static const char *account_namespace(const struct rbac_options *options, const struct config_watch *watch)
{
        const char *own = watch->handler.kubernetes_namespace;

        return own ? own : options->namespace;
}

static bool is_first_of_account(const struct rbac_options *options, const struct config *config,
                                size_t watch)
{
        const struct config_watch *one = &config->watch[watch];

        for (size_t i = 0; i < watch; i++)
                if (config->watch[i].handler.kubernetes_account &&
                    strcmp(config->watch[i].handler.kubernetes_account, one->handler.kubernetes_account) ==
                            0 &&
                    strcmp(account_namespace(options, &config->watch[i]), account_namespace(options, one)) ==
                            0)
                        return false;
        return true;
}

/* The account, the operator's right to tokens of it, and a role without rules: what the handler asks the API
 * server for is known to its author alone. */
static void add_account(const struct rbac_options *options, const struct config *config,
                        const struct config_watch *watch, cJSON *list)
{
        const char *account = watch->handler.kubernetes_account;
        const char *namespace = account_namespace(options, watch);
        char name[640], comment[800];
        cJSON *manifest;

        add_manifest(list, "v1", "ServiceAccount", account, namespace);
        snprintf(name, sizeof(name), "%s:token:%s", config->operator_name, account);
        manifest = add_manifest(list, RBAC_VERSION, "Role", name, namespace);
        add_rule(cJSON_AddArrayToObject(manifest, "rules"),
                 &(struct rule){"tokens for handlers", "v1", "serviceaccounts/token", account, "create"});
        add_binding(options, "Role", name, namespace, list);
        snprintf(name, sizeof(name), "%s:handler:%s", config->operator_name, account);
        manifest = add_manifest(list, RBAC_VERSION, "Role", name, namespace);
        snprintf(comment, sizeof(comment),
                 "add what the handler of watch %s may do on the API server; keep your rules when you print "
                 "this again",
                 watch->name);
        cJSON_AddStringToObject(manifest, MANIFEST_COMMENT, comment);
        cJSON_AddArrayToObject(manifest, "rules");
        bind_account("Role", name, namespace, account, namespace, list);
}

static void add_accounts(const struct rbac_options *options, const struct config *config, cJSON *list)
{
        for (size_t i = 0; i < config->watch_count; i++)
                if (config->watch[i].handler.kubernetes_account && is_first_of_account(options, config, i))
                        add_account(options, config, &config->watch[i], list);
}

/* A handler of the operator's own account would have all the operator's rights, and the operator tokens of
 * itself. */
static bool is_own_account(const struct rbac_options *options, const struct config *config)
{
        bool found = false;

        FOREACH_ARRAY(watch, config->watch, config->watch_count) {
                const char *account = watch->handler.kubernetes_account;

                if (!account || strcmp(account, options->service_account) != 0 ||
                    strcmp(account_namespace(options, watch), options->namespace) != 0)
                        continue;
                fprintf(stderr,
                        "reconciledctl: %s:%u: handler.kubernetes.serviceAccount of watch %s: %s/%s is the "
                        "operator's own account: a handler must have another one; rename it, or name the "
                        "operator's with --service-account and --namespace\n",
                        watch->file, watch->line, watch->name, options->namespace, account);
                found = true;
        }
        return found;
}

/* ---- the command */

static int print_yaml(const struct config *config, const cJSON *list)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;
        const cJSON *manifest;

        text_printf(
                &out,
                "# The least that operator %s needs. Plurals of kinds without a definition (--crd FILE) are\n"
                "# guessed, and custom kinds are taken to belong to a namespace: compare both with\n"
                "# `kubectl api-resources`; --plural Kind=plural corrects a plural.\n",
                config->operator_name);
        cJSON_ArrayForEach(manifest, list)
        {
                manifest_write(&out, manifest);
        }
        if (out.failed)
                return EXIT_CODE_SOFTWARE;
        fwrite(out.data, 1, out.size, stdout);
        return EXIT_CODE_OK;
}

/* Takes the list. */
static int print_json(cJSON *list)
{
        cJSON *whole = cJSON_CreateObject();
        int r;

        manifest_strip_comments(list);
        cJSON_AddStringToObject(whole, "apiVersion", "v1");
        cJSON_AddStringToObject(whole, "kind", "List");
        cJSON_AddItemToObject(whole, "items", list);
        r = ctl_print_json(whole);
        cJSON_Delete(whole);
        return r < 0 ? EXIT_CODE_SOFTWARE : EXIT_CODE_OK;
}

static int read_definitions(struct rbac_options *options)
{
        int r = 0;

        for (size_t i = 0; i < options->crd_count && r >= 0; i++)
                r = definitions_read(&options->definitions, options->crd[i]);
        return r == -ENOMEM ? EXIT_CODE_SOFTWARE : r < 0 ? EXIT_CODE_CONFIGURATION : EXIT_CODE_OK;
}

int ctl_rbac(const char *path, struct rbac_options *options, bool json)
{
        struct config_problems problems = {0};
        struct config *config = NULL;
        cJSON *list;
        int r = config_load(path, &config, &problems);

        config_problems_done(&problems);
        if (r < 0) {
                fputs("reconciledctl: the configuration has mistakes; `reconciledctl check` says which\n",
                      stderr);
                return EXIT_CODE_CONFIGURATION;
        }
        r = check_plurals(options, config);
        if (r == EXIT_CODE_OK)
                r = is_own_account(options, config) ? EXIT_CODE_CONFIGURATION : read_definitions(options);
        if (r != EXIT_CODE_OK) {
                definitions_done(&options->definitions);
                config_free(config);
                return r;
        }
        list = cJSON_CreateArray();
        add_manifest(list, "v1", "ServiceAccount", options->service_account, options->namespace);
        add_cluster_role(options, config, list);
        add_roles(options, config, list);
        add_leases_role(options, config, list);
        add_accounts(options, config, list);
        r = json ? print_json(TAKE_PTR(list)) : print_yaml(config, list);
        cJSON_Delete(list);
        definitions_done(&options->definitions);
        config_free(config);
        return r;
}
