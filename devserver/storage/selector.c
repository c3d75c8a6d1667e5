/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/storage/selector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/version.h"
#include "selector/requirement.h"

struct selector {
        struct requirement *label, *field;
};

/* ---- parsing */

/* The fields that the real server supports for everything, and those of the built-in kinds that operators
 * use: where they are in what is stored. NULL: not supported. */
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
        char *copy = stored && field->operation <= SELECTOR_NOT_EQUALS ? strdup(stored) : NULL;

        if (!copy)
                return stored && field->operation <= SELECTOR_NOT_EQUALS ? -ENOMEM : -EINVAL;
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
        r = label_selector_parse(labels ? labels : "", &selector->label, error);
        if (r < 0)
                error_prefix(error, "unable to parse requirement");
        if (r >= 0) {
                r = field_selector_parse(fields ? fields : "", &selector->field, error);
                if (r < 0)
                        error_prefix(error, "invalid field selector");
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
