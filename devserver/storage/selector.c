/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/storage/selector.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "devserver/storage/resource.h"
#include "devserver/storage/version.h"

enum operation {
        OPERATION_EQUALS,
        OPERATION_NOT_EQUALS, /* the last one that fields know */
        OPERATION_IN,
        OPERATION_NOT_IN,
        OPERATION_EXISTS,
        OPERATION_ABSENT,
        OPERATION_GREATER,
        OPERATION_LESS,
};

struct requirement {
        struct requirement *next;
        enum operation operation;
        char *key;
        char **value;
        size_t count;
};

struct selector {
        struct requirement *label, *field;
};

/* ---- parsing */

static const char *skip(const char *p)
{
        while (isspace((unsigned char)*p))
                p++;
        return p;
}

static char *take_word(const char **p, const char *stop)
{
        size_t length = strcspn(*p, stop);
        char *word = strndup(*p, length);

        *p += length;
        while (word && length > 0 && isspace((unsigned char)word[length - 1]))
                word[--length] = '\0';
        return word;
}

static int add_value(struct requirement *requirement, char *value)
{
        char **grown = reallocarray(requirement->value, requirement->count + 1, sizeof(char *));

        if (!grown || !value) {
                free(value);
                return -ENOMEM;
        }
        requirement->value = grown;
        requirement->value[requirement->count++] = value;
        return 0;
}

static int parse_set(const char **p, struct requirement *requirement)
{
        *p = skip(*p);
        if (**p != '(')
                return -EINVAL;
        do {
                (*p)++;
                *p = skip(*p);
                if (add_value(requirement, take_word(p, ",)")) < 0)
                        return -ENOMEM;
        } while (**p == ',');
        if (**p != ')')
                return -EINVAL;
        *p = skip(*p + 1);
        return 0;
}

static bool take_operator(const char **p, const char *text)
{
        size_t length = strlen(text);

        if (strncmp(*p, text, length) != 0)
                return false;
        *p = skip(*p + length);
        return true;
}

static int parse_operation(const char **p, struct requirement *requirement)
{
        if (take_operator(p, "!=")) {
                requirement->operation = OPERATION_NOT_EQUALS;
        } else if (take_operator(p, "==") || take_operator(p, "=")) {
                requirement->operation = OPERATION_EQUALS;
        } else if (take_operator(p, ">")) {
                requirement->operation = OPERATION_GREATER;
        } else if (take_operator(p, "<")) {
                requirement->operation = OPERATION_LESS;
        } else if (take_operator(p, "notin")) {
                requirement->operation = OPERATION_NOT_IN;
                return parse_set(p, requirement);
        } else if (take_operator(p, "in")) {
                requirement->operation = OPERATION_IN;
                return parse_set(p, requirement);
        } else {
                return **p == '\0' || **p == ',' ? 0 : -EINVAL;
        }
        if (skip(*p)[strcspn(*p, ",=!<>")] != '\0' && skip(*p)[strcspn(*p, ",=!<>")] != ',')
                return -EINVAL;
        return add_value(requirement, take_word(p, ","));
}

static int parse_requirement(const char **p, struct requirement *requirement)
{
        *p = skip(*p);
        requirement->operation = OPERATION_EXISTS;
        if (**p == '!') {
                requirement->operation = OPERATION_ABSENT;
                *p = skip(*p + 1);
        }
        requirement->key = take_word(p, "=!<>, \t(");
        if (!requirement->key)
                return -ENOMEM;
        if (requirement->key[0] == '\0')
                return -EINVAL;
        *p = skip(*p);
        return requirement->operation == OPERATION_ABSENT ? 0 : parse_operation(p, requirement);
}

static void requirements_free(struct requirement *requirement)
{
        while (requirement) {
                struct requirement *next = requirement->next;

                for (size_t i = 0; i < requirement->count; i++)
                        free(requirement->value[i]);
                free(requirement->value);
                free(requirement->key);
                free(requirement);
                requirement = next;
        }
}

static int parse_all(const char *text, struct requirement **ret)
{
        const char *p = skip(text ? text : "");

        while (*p) {
                struct requirement *requirement = calloc(1, sizeof(*requirement));
                int r;

                if (!requirement)
                        return -ENOMEM;
                requirement->next = *ret;
                *ret = requirement;
                r = parse_requirement(&p, requirement);
                if (r < 0)
                        return r;
                if (*p && *p != ',')
                        return -EINVAL;
                p = skip(*p ? p + 1 : p);
        }
        return 0;
}

/* The fields that the real server supports for everything, and those of the built-in kinds that operators
 * use: where they stand in what is stored. NULL: not supported. */
static const char *stored_field(const struct resource *resource, const char *field)
{
        static const struct {
                const char *group, *plural, *field,
                        *stored; /* plural NULL: of all; stored NULL: the field */
        } table[] = {
                {NULL, NULL, "metadata.name", NULL},
                {NULL, NULL, "metadata.namespace", NULL},
                {"", "pods", "spec.nodeName", NULL},
                {"", "pods", "status.phase", NULL},
                {"", "pods", "spec.restartPolicy", NULL},
                {"", "pods", "status.podIP", NULL},
                {"", "nodes", "spec.unschedulable", NULL},
                {"", "namespaces", "status.phase", NULL},
                {"", "secrets", "type", NULL},
                {"", "events", "involvedObject.name", NULL},
                {"", "events", "involvedObject.kind", NULL},
                {"", "events", "involvedObject.namespace", NULL},
                {"", "events", "involvedObject.uid", NULL},
                {"", "events", "involvedObject.apiVersion", NULL},
                {"", "events", "involvedObject.resourceVersion", NULL},
                {"", "events", "involvedObject.fieldPath", NULL},
                {"", "events", "reason", NULL},
                {"", "events", "reportingComponent", NULL},
                {"", "events", "source", "source.component"},
                {"", "events", "type", NULL},
                {"events.k8s.io", "events", "regarding.name", "involvedObject.name"},
                {"events.k8s.io", "events", "regarding.kind", "involvedObject.kind"},
                {"events.k8s.io", "events", "regarding.namespace", "involvedObject.namespace"},
                {"events.k8s.io", "events", "regarding.uid", "involvedObject.uid"},
                {"events.k8s.io", "events", "regarding.apiVersion", "involvedObject.apiVersion"},
                {"events.k8s.io", "events", "regarding.resourceVersion", "involvedObject.resourceVersion"},
                {"events.k8s.io", "events", "regarding.fieldPath", "involvedObject.fieldPath"},
                {"events.k8s.io", "events", "reason", NULL},
                {"events.k8s.io", "events", "reportingController", "reportingComponent"},
                {"events.k8s.io", "events", "type", NULL},
        };

        for (size_t i = 0; i < ELEMENTS(table); i++)
                if (strcmp(field, table[i].field) == 0 &&
                    (!table[i].plural || (strcmp(table[i].plural, resource->plural) == 0 &&
                                          strcmp(table[i].group, resource->group) == 0)))
                        return table[i].stored ? table[i].stored : table[i].field;
        return NULL;
}

/* 0, or -EINVAL: it cannot be asked for. */
static int resolve_field(const struct resource *resource, struct requirement *field)
{
        const char *stored = stored_field(resource, field->key);
        char *copy = stored && field->operation <= OPERATION_NOT_EQUALS ? strdup(stored) : NULL;

        if (!copy)
                return stored && field->operation <= OPERATION_NOT_EQUALS ? -ENOMEM : -EINVAL;
        free(field->key);
        field->key = copy;
        return 0;
}

int selector_parse(const char *labels, const char *fields, const struct resource *resource,
                   struct selector **ret, struct error *error)
{
        struct selector *selector = calloc(1, sizeof(*selector));
        int r;

        if (!selector)
                return -ENOMEM;
        r = parse_all(labels, &selector->label);
        if (r < 0)
                error_set(error, r, "unable to parse requirement: labelSelector \"%s\"", labels);
        if (r >= 0) {
                r = parse_all(fields, &selector->field);
                if (r < 0)
                        error_set(error, r, "invalid field selector: \"%s\"", fields);
        }
        for (struct requirement *field = selector->field; field && r >= 0; field = field->next) {
                r = resolve_field(resource, field);
                if (r < 0)
                        error_set(error, r, "field label not supported: %s", field->key);
        }
        if (r < 0) {
                selector_free(selector);
                return r;
        }
        *ret = selector;
        return 0;
}

void selector_free(struct selector *selector)
{
        if (!selector)
                return;
        requirements_free(selector->label);
        requirements_free(selector->field);
        free(selector);
}

/* ---- matching */

static bool has_value(const struct requirement *requirement, const char *value)
{
        for (size_t i = 0; i < requirement->count; i++)
                if (strcmp(requirement->value[i], value) == 0)
                        return true;
        return false;
}

/* Both must be integers. */
static int compare_integers(const char *a, const char *b, bool *ret_valid)
{
        char *a_end, *b_end;
        long long x = strtoll(a, &a_end, 10), y = strtoll(b, &b_end, 10);

        *ret_valid = *a && *b && !*a_end && !*b_end;
        return x < y ? -1 : x > y;
}

static bool requirement_matches(const struct requirement *requirement, const char *value)
{
        bool valid = false;
        int order;

        switch (requirement->operation) {
        case OPERATION_EXISTS:
                return value != NULL;
        case OPERATION_ABSENT:
                return value == NULL;
        case OPERATION_EQUALS:
        case OPERATION_IN:
                return value && has_value(requirement, value);
        case OPERATION_NOT_EQUALS:
        case OPERATION_NOT_IN:
                return !value || !has_value(requirement, value);
        case OPERATION_GREATER:
        case OPERATION_LESS:
                order = value ? compare_integers(value, requirement->value[0], &valid) : 0;
                return valid && (requirement->operation == OPERATION_GREATER ? order > 0 : order < 0);
        }
        return false;
}

static const char *field_value(const cJSON *object, const char *path)
{
        while (*path) {
                size_t length = strcspn(path, ".");
                _cleanup_free_ char *name = strndup(path, length);

                object = name ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
                path += length + (path[length] == '.');
        }
        if (cJSON_IsTrue(object))
                return "true";
        return cJSON_IsString(object) ? cJSON_GetStringValue(object) : "";
}

bool selector_is_empty(const struct selector *selector)
{
        return !selector->label && !selector->field;
}

bool selector_matches(const struct selector *selector, const struct version *version)
{
        const cJSON *labels;
        bool matches = true;
        cJSON *object;

        if (selector_is_empty(selector))
                return true;
        object = version_parse(version);
        labels = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "metadata"),
                                                  "labels");
        for (struct requirement *r = selector->label; r && matches; r = r->next)
                matches = requirement_matches(
                        r, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, r->key)));
        for (struct requirement *r = selector->field; r && matches; r = r->next) {
                const char *value = field_value(object, r->key);

                /* An Event of the newer group has its reporter in the place of a source. */
                if (!value[0] && strcmp(r->key, "source.component") == 0)
                        value = field_value(object, "reportingComponent");
                matches = requirement_matches(r, value);
        }
        cJSON_Delete(object);
        return matches;
}
