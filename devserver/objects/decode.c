/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/objects/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/http/http-answer.h"
#include "devserver/schema/schema-check.h"
#include "devserver/schema/schema-elements.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/schema/schema-mistakes.h"
#include "devserver/schema/schema-validate.h"
#include "devserver/storage/served-resource.h"
#include "devserver/tree/form.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

static bool is_definition(const struct resource *resource)
{
        return resource->builtin && strcmp(resource->plural, "customresourcedefinitions") == 0;
}

/* ---- definitions */

static cJSON *schema_of(const cJSON *version)
{
        return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(version, "schema"),
                                                "openAPIV3Schema");
}

/* A real server takes schemas that all versions share to be one of the definition. */
static bool is_shared(const cJSON *versions)
{
        const cJSON *version;

        cJSON_ArrayForEach(version, versions)
        {
                if (!json_equal(schema_of(version), schema_of(versions->child)))
                        return false;
        }
        return true;
}

static void check_definition(cJSON *crd, struct schema_report *report)
{
        cJSON *spec = cJSON_GetObjectItemCaseSensitive(crd, "spec"), *version;
        cJSON *versions = cJSON_GetObjectItemCaseSensitive(spec, "versions");
        bool shared = is_shared(versions);
        size_t index = 0;

        cJSON_ArrayForEach(version, versions)
        {
                const cJSON *subresources = cJSON_GetObjectItemCaseSensitive(version, "subresources");
                char sent[80];

                snprintf(sent, sizeof(sent), "spec.versions[%zu].schema.openAPIV3Schema", index++);
                if (cJSON_IsObject(schema_of(version)))
                        schema_check(schema_of(version), shared ? "spec.validation.openAPIV3Schema" : sent,
                                     sent, cJSON_GetObjectItemCaseSensitive(subresources, "status") != NULL,
                                     report);
                else
                        mistake_add(report->mistakes, MISTAKE_REQUIRED, sent, NULL, "%s", "");
        }
}

/* ---- decoding */

static void drop_unknown_metadata(const cJSON *object, cJSON *unknown)
{
        cJSON *metadata = tree_metadata(object), *member = metadata ? metadata->child : NULL, *next;
        char way[256];

        for (; member && cJSON_IsObject(metadata); member = next) {
                next = member->next;
                if (form_is_of_metadata(member->string))
                        continue;
                snprintf(way, sizeof(way), "metadata.%.240s", member->string);
                cJSON_AddItemToArray(unknown, cJSON_CreateString(way));
                cJSON_Delete(cJSON_DetachItemViaPointer(metadata, member));
        }
}

/* What a schema does not know of the object is added to `unknown`. false: it cannot be decoded. */
static bool decode(const struct resource *resource, cJSON *object, cJSON *unknown,
                   struct schema_report *report)
{
        _cleanup_free_ char *name = text_quote(json_text(tree_metadata(object), "name"));
        struct mistakes ignored = {0};

        drop_unknown_metadata(object, unknown);
        if (resource->schema)
                schema_fit(object, resource->schema, unknown);
        if (!is_definition(resource))
                return true;
        *report = (struct schema_report){.mistakes = &ignored, .unknown = unknown};
        check_definition(object, report);
        mistakes_done(&ignored);
        if (report->rules)
                fprintf(stderr,
                        "reconciled-devserver: %s has x-kubernetes-validations, which this server does not evaluate: "
                        "it accepts what they refuse\n",
                        name ? name : "");
        return !report->undecodable[0];
}

const char *object_decode(const struct resource *resource, cJSON *object, char *text, size_t size)
{
        struct schema_report report = {0};
        cJSON *unknown = cJSON_CreateArray();
        bool done = decode(resource, object, unknown, &report);

        cJSON_Delete(unknown);
        snprintf(text, size, "%s", report.undecodable);
        return done ? NULL : text;
}

static void warn(struct request *request, const char *text)
{
        if (!request->warning)
                request->warning = cJSON_CreateArray();
        cJSON_AddItemToArray(request->warning, cJSON_CreateString(text));
}

/* For a patch the real server shows the object that came out of it. */
static void answer_undecodable(struct request *request, const cJSON *object, const char *why)
{
        const char *kind = request->resource->kind;
        _cleanup_free_ char *json = NULL, *quoted = NULL;

        if (strcmp(request->method, "PATCH") != 0) {
                answer_status(request, 400, "BadRequest",
                              "%s in version \"%s\" cannot be handled as a %s: %s", kind, request->version,
                              kind, why);
                return;
        }
        json = form_print(object);
        quoted = json ? text_quote(json) : NULL;
        answer_invalid(request, "", "patch", MISTAKE_INVALID, quoted, why);
}

/* An unknown field is a mistake only for a client that asks for that; by default it is a warning. */
static bool tell_unknown(struct request *request, const cJSON *object, const cJSON *unknown)
{
        const char *validation = request_argument(request, "fieldValidation");
        _cleanup_text_ struct text all = TEXT_EMPTY;
        const cJSON *field;

        cJSON_ArrayForEach(field, unknown)
        {
                char text[512];

                snprintf(text, sizeof(text), "unknown field \"%.480s\"", field->valuestring);
                text_printf(&all, "%s%s", all.size > 0 ? ", " : "strict decoding error: ", text);
                if (!validation || !validation[0] || strcmp(validation, "Warn") == 0)
                        warn(request, text);
        }
        if (all.size == 0 || !validation || strcmp(validation, "Strict") != 0)
                return true;
        answer_undecodable(request, object, all.data);
        return false;
}

bool request_decode(struct request *request, cJSON *object)
{
        struct schema_report report = {0};
        cJSON *unknown = cJSON_CreateArray();
        bool done = decode(request->resource, object, unknown, &report);

        if (!done)
                answer_undecodable(request, object, report.undecodable);
        done = done && tell_unknown(request, object, unknown);
        if (report.rules)
                warn(request, "x-kubernetes-validations are not evaluated by reconciled-devserver");
        cJSON_Delete(unknown);
        return done;
}

/* ---- what is wrong */

void object_check_schema(const struct resource *resource, const cJSON *object, const cJSON *live,
                         bool of_status, struct mistakes *mistakes)
{
        const cJSON *schema = resource->schema;
        const cJSON *status = cJSON_GetObjectItemCaseSensitive(object, "status");

        if (is_definition(resource)) {
                struct schema_report report = {.mistakes = mistakes, .unknown = cJSON_CreateArray()};
                cJSON *copy = cJSON_Duplicate(object, true);

                check_definition(copy, &report);
                cJSON_Delete(report.unknown);
                cJSON_Delete(copy);
        }
        if (!schema)
                return;
        if (of_status) {
                schema = cJSON_GetObjectItemCaseSensitive(schema_keyword(schema, "properties"), "status");
                if (schema && status)
                        schema_validate(status, cJSON_GetObjectItemCaseSensitive(live, "status"), schema,
                                        "status", mistakes);
        } else {
                schema_validate(object, live, schema, NULL, mistakes);
        }
        schema_check_embedded(object, resource->schema, mistakes);
        schema_check_lists(object, live, resource->schema, mistakes);
}
