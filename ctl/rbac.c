/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl rbac`: the least roles that a configuration needs, as manifests. No server is asked: the
 * plural of a kind is formed as Kubernetes itself guesses it, and --plural corrects that.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "supervisor/config.h"

#define EVENTS_RULE                                                                                         \
        "# Events about the objects\n"                                                                      \
        "- apiGroups: [events.k8s.io]\n"                                                                    \
        "  resources: [events]\n"                                                                           \
        "  verbs: [create, patch]\n"

#define IDENTITY_RULE                                                                                       \
        "- apiGroups: ['']\n"                                                                               \
        "  resources: [namespaces]\n"                                                                       \
        "  resourceNames: [kube-system]\n"                                                                  \
        "  verbs: [get]\n"

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

static void find_plural(const struct rbac_options *options, const char *kind, char *plural, size_t size)
{
        size_t length = strlen(kind);

        for (size_t i = 0; i < options->plural_count; i++)
                if (strncmp(options->plural[i], kind, length) == 0 && options->plural[i][length] == '=') {
                        snprintf(plural, size, "%s", options->plural[i] + length + 1);
                        return;
                }
        guess_plural(kind, plural, size);
}

static bool is_pattern(const char *namespace)
{
        return strpbrk(namespace, "*?!") != NULL;
}

static bool is_cluster_wide(const struct config_watch *watch)
{
        for (size_t i = 0; i < watch->namespace_count; i++)
                if (is_pattern(watch->namespace[i]))
                        return true;
        return watch->namespace_count == 0;
}

static bool selects(const struct config_watch *watch, const char *namespace)
{
        for (size_t i = 0; i < watch->namespace_count; i++)
                if (strcmp(watch->namespace[i], namespace) == 0)
                        return !is_cluster_wide(watch);
        return false;
}

/* patch: what handlers answer, on the object and on its status. */
static void write_rules(const struct rbac_options *options, const struct config_watch *watch,
                        struct text *out)
{
        const char *slash = strchr(watch->api_version, '/');
        int group = slash ? (int)(slash - watch->api_version) : 0;
        char plural[160];

        find_plural(options, watch->kind, plural, sizeof(plural));
        if (watch->is_related) {
                text_printf(out,
                            "# what the objects of watch %s depend on\n"
                            "- apiGroups: ['%.*s']\n"
                            "  resources: [%s]\n"
                            "  verbs: [get, list, watch]\n",
                            watch->owner, group, watch->api_version, plural);
                return;
        }
        if (watch->owner) {
                text_printf(out,
                            "# what the objects of watch %s own\n"
                            "- apiGroups: ['%.*s']\n"
                            "  resources: [%s]\n"
                            "  verbs: [get, list, watch, create, patch, delete]\n",
                            watch->owner, group, watch->api_version, plural);
                return;
        }
        text_printf(out,
                    "# watch %s\n"
                    "- apiGroups: ['%.*s']\n"
                    "  resources: [%s]\n"
                    "  verbs: [get, list, watch, patch]\n"
                    "- apiGroups: ['%.*s']\n"
                    "  resources: [%s/status]\n"
                    "  verbs: [patch]\n",
                    watch->name, group, watch->api_version, plural, group, watch->api_version, plural);
}

static void write_head(const char *kind, const char *name, const char *namespace, struct text *out)
{
        text_printf(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s\n",
                    kind, name);
        if (namespace)
                text_printf(out, "  namespace: %s\n", namespace);
}

static void write_binding(const struct rbac_options *options, const char *kind, const char *name,
                          const char *namespace, struct text *out)
{
        char binding[32];

        snprintf(binding, sizeof(binding), "%sBinding", kind);
        write_head(binding, name, namespace, out);
        text_printf(out,
                    "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %s\n  name: %s\n"
                    "subjects:\n- kind: ServiceAccount\n  name: %s\n  namespace: %s\n",
                    kind, name, options->service_account, options->namespace);
}

static void write_cluster_role(const struct rbac_options *options, const struct config *config,
                               struct text *out)
{
        bool wide = false;

        write_head("ClusterRole", config->operator_name, NULL, out);
        text_append_string(out, "rules:\n# which cluster this is, so that another one is never taken for "
                                "deletions\n" IDENTITY_RULE);
        for (size_t i = 0; i < config->watch_count; i++)
                if (is_cluster_wide(&config->watch[i])) {
                        write_rules(options, &config->watch[i], out);
                        wide = true;
                }
        if (wide)
                text_append_string(out, EVENTS_RULE);
        write_binding(options, "ClusterRole", config->operator_name, NULL, out);
}

static void write_role(const struct rbac_options *options, const struct config *config,
                       const char *namespace, struct text *out)
{
        write_head("Role", config->operator_name, namespace, out);
        text_append_string(out, "rules:\n");
        for (size_t i = 0; i < config->watch_count; i++)
                if (selects(&config->watch[i], namespace))
                        write_rules(options, &config->watch[i], out);
        text_append_string(out, EVENTS_RULE);
        write_binding(options, "Role", config->operator_name, namespace, out);
}

static bool seen_before(const struct config *config, size_t watch, size_t place)
{
        const char *namespace = config->watch[watch].namespace[place];

        for (size_t i = 0; i < watch; i++)
                if (selects(&config->watch[i], namespace))
                        return true;
        return false;
}

static void write_roles(const struct rbac_options *options, const struct config *config, struct text *out)
{
        for (size_t i = 0; i < config->watch_count; i++) {
                const struct config_watch *watch = &config->watch[i];

                for (size_t n = 0; n < watch->namespace_count && !is_cluster_wide(watch); n++)
                        if (!seen_before(config, i, n))
                                write_role(options, config, watch->namespace[n], out);
        }
}

int ctl_rbac(const char *path, const struct rbac_options *options)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;
        struct config_problems problems = {0};
        struct config *config = NULL;
        int r = config_load(path, &config, &problems);

        config_problems_done(&problems);
        if (r < 0) {
                fputs("reconciledctl: the configuration has mistakes; `reconciledctl check` says which\n",
                      stderr);
                return EXIT_CODE_CONFIGURATION;
        }
        text_printf(&out,
                    "# The least that operator %s needs. Plurals are guessed from kinds: compare them with\n"
                    "# `kubectl api-resources`, and correct them with --plural Kind=plural.\n"
                    "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n  namespace: %s\n",
                    config->operator_name, options->service_account, options->namespace);
        write_cluster_role(options, config, &out);
        write_roles(options, config, &out);
        config_free(config);
        if (out.failed)
                return EXIT_CODE_SOFTWARE;
        fwrite(out.data, 1, out.size, stdout);
        return EXIT_CODE_OK;
}
