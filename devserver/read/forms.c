/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/read/forms.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/http/http-request.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/version.h"
#include "devserver/tree/form.h"
#include "devserver/tree/tree.h"
#include "http/http-loop.h"
#include "json/json.h"

static const char as_table[] = "application/json;as=Table";
static const char as_metadata[] = "application/json;as=PartialObjectMetadata";

enum representation representation_of(const struct request *request)
{
        const char *accept = http_header(request->connection, "Accept");

        if (accept && strncmp(accept, as_table, sizeof(as_table) - 1) == 0)
                return REPRESENTATION_TABLE;
        if (accept && strncmp(accept, as_metadata, sizeof(as_metadata) - 1) == 0)
                return REPRESENTATION_METADATA;
        return REPRESENTATION_PLAIN;
}

/* ---- cells */

void age_format(int64_t seconds, char *out, size_t size)
{
        long long s = seconds < 0 ? 0 : seconds, m = s / 60, h = m / 60, d = h / 24;

        if (s < 120)
                snprintf(out, size, "%llds", s);
        else if (m < 10)
                snprintf(out, size, s % 60 ? "%lldm%llds" : "%lldm", m, s % 60);
        else if (m < 180)
                snprintf(out, size, "%lldm", m);
        else if (h < 8)
                snprintf(out, size, m % 60 ? "%lldh%lldm" : "%lldh", h, m % 60);
        else if (h < 48)
                snprintf(out, size, "%lldh", h);
        else if (d < 8)
                snprintf(out, size, h % 24 ? "%lldd%lldh" : "%lldd", d, h % 24);
        else
                snprintf(out, size, "%lldd", d);
}

static void write_age(struct text *out, const char *time_text)
{
        struct tm tm = {0};
        char age[32];

        if (!strptime(time_text, "%Y-%m-%dT%H:%M:%S", &tm)) {
                text_json_string(out, "<unknown>");
                return;
        }
        age_format((int64_t)(time(NULL) - timegm(&tm)), age, sizeof(age));
        text_json_string(out, age);
}

/* The element of a list that has `.key==value` inside. `filter`: `?(@.key=="value")`. */
static const cJSON *find_by_filter(const cJSON *list, const char *filter)
{
        char key[64], value[128];
        const cJSON *element;

        if (sscanf(filter, "?(@.%63[^= ] %*[= ]%*1[\"']%127[^\"']", key, value) != 2 &&
            sscanf(filter, "?(@.%63[^= ]%*[= ]%*1[\"']%127[^\"']", key, value) != 2)
                return NULL;
        cJSON_ArrayForEach(element, list)
        {
                if (strcmp(json_text(element, key), value) == 0)
                        return element;
        }
        return NULL;
}

static const cJSON *step_into(const cJSON *value, const char *inside)
{
        size_t length = strlen(inside);
        char name[256];

        if (inside[0] == '?')
                return find_by_filter(value, inside);
        if ((inside[0] == '\'' || inside[0] == '"') && length >= 2 && length < sizeof(name)) {
                snprintf(name, sizeof(name), "%.*s", (int)length - 2, inside + 1);
                return cJSON_GetObjectItemCaseSensitive(value, name);
        }
        return cJSON_IsArray(value) ? cJSON_GetArrayItem(value, (int)strtol(inside, NULL, 10)) : NULL;
}

/* ".name" up to the next '.' or '['; "\." is a dot inside of the name. */
static const char *take_name(const char *path, char *name, size_t size)
{
        size_t length = 0;

        for (; *path && *path != '.' && *path != '['; path++) {
                if (*path == '\\' && path[1] == '.')
                        path++;
                if (length + 1 < size)
                        name[length++] = *path;
        }
        name[length] = '\0';
        return path;
}

const cJSON *column_value(const cJSON *object, const char *path)
{
        char name[256];

        while (object && *path) {
                if (*path == '.') {
                        path = take_name(path + 1, name, sizeof(name));
                        if (name[0])
                                object = cJSON_GetObjectItemCaseSensitive(object, name);
                } else if (*path == '[') {
                        size_t length = strcspn(path + 1, "]");

                        snprintf(name, sizeof(name), "%.*s", (int)length, path + 1);
                        object = step_into(object, name);
                        path += 1 + length + (path[1 + length] == ']');
                } else {
                        return NULL;
                }
        }
        return object;
}

/* A column of a built-in kind may have several paths: the first that leads to something counts. */
static const cJSON *cell_value(const cJSON *object, const cJSON *column)
{
        const cJSON *path = cJSON_GetObjectItemCaseSensitive(column, "jsonPath"), *item, *value = NULL;

        if (cJSON_IsString(path))
                return column_value(object, path->valuestring);
        cJSON_ArrayForEach(item, path)
        {
                value = column_value(object, item->valuestring);
                if (value && !cJSON_IsNull(value) && !(cJSON_IsString(value) && !value->valuestring[0]))
                        break;
        }
        return value;
}

/* "widget/a", as kubectl names what an Event is about. */
static void write_reference(struct text *out, const cJSON *reference)
{
        const char *name = json_text(reference, "name");
        _cleanup_text_ struct text text = TEXT_EMPTY;

        text_append_string(&text, json_text(reference, "kind"));
        for (size_t i = 0; i < text.size; i++)
                text.data[i] = (char)tolower((unsigned char)text.data[i]);
        text_printf(&text, "%s%s", name[0] ? "/" : "", name);
        text_json_string(out, text.failed ? "" : text.data);
}

static void write_cell(struct text *out, const cJSON *object, const cJSON *column)
{
        const cJSON *value = cell_value(object, column);
        const char *type = json_text(column, "type");
        _cleanup_free_ char *json = NULL;

        if (!value || cJSON_IsNull(value)) {
                text_append_string(out, "null");
        } else if (strcmp(type, "date") == 0) {
                write_age(out, cJSON_IsString(value) ? value->valuestring : "");
        } else if (strcmp(type, "reference") == 0) {
                write_reference(out, value);
        } else if (strcmp(type, "count") == 0) {
                text_printf(out, "%d", cJSON_GetArraySize(value));
        } else if (cJSON_IsString(value)) {
                text_json_string(out, value->valuestring);
        } else {
                json = cJSON_PrintUnformatted(value);
                if (strcmp(type, "string") == 0)
                        text_json_string(out, json);
                else
                        text_append_string(out, json);
        }
}

/* Whether the name is one of the kind's own columns: for an Event it is the least interesting one, and the
 * last. */
static bool names_itself(const struct resource *resource)
{
        const cJSON *column;

        cJSON_ArrayForEach(column, resource->column)
        {
                if (resource->builtin && strcmp(json_text(column, "name"), "Name") == 0)
                        return true;
        }
        return false;
}

static void write_columns(struct text *out, const struct resource *resource)
{
        const cJSON *column;
        const char *before = "";

        text_append_string(out, "\"columnDefinitions\":[");
        if (!names_itself(resource)) {
                text_append_string(out, "{\"name\":\"Name\",\"type\":\"string\",\"format\":"
                                        "\"name\",\"description\":\"\",\"priority\":0}");
                before = ",";
        }
        cJSON_ArrayForEach(column, resource->column)
        {
                const cJSON *priority = cJSON_GetObjectItemCaseSensitive(column, "priority");
                const char *type = json_text(column, "type");

                /* Ages, counts and references are made here. */
                if (strcmp(type, "date") == 0 || strcmp(type, "count") == 0 ||
                    strcmp(type, "reference") == 0)
                        type = "string";
                text_printf(out, "%s{\"name\":", before);
                before = ",";
                text_json_string(out, json_text(column, "name"));
                text_append_string(out, ",\"type\":");
                text_json_string(out, type);
                text_append_string(out, ",\"format\":\"\",\"description\":");
                text_json_string(out, json_text(column, "description"));
                text_printf(out, ",\"priority\":%d}", (int)json_number(priority, 0));
        }
        text_append_string(out, "],");
}

/* ---- objects */

/* Where what is stored does not serve as it is. `bare`: without apiVersion and kind. */
static void write_as(struct text *out, const struct resource *resource, const struct version *version,
                     bool bare)
{
        cJSON *object = version_parse_as(version, resource);
        _cleanup_free_ char *json = NULL;

        if (bare) {
                cJSON_DeleteItemFromObjectCaseSensitive(object, "apiVersion");
                cJSON_DeleteItemFromObjectCaseSensitive(object, "kind");
        }
        json = object ? form_print(object) : NULL;
        text_append_string(out, json);
        cJSON_Delete(object);
}

/* A built-in kind of two groups has other members in each. */
static bool is_converted(const struct resource *resource)
{
        return resource->builtin && resource->table != resource;
}

static void write_plain(struct text *out, const struct resource *resource, const struct version *version)
{
        _cleanup_free_ char *api_version = NULL;

        if (resource->table == resource) {
                text_append(out, version->json, version->size);
                return;
        }
        if (version->bare_offset == 0 || is_converted(resource)) {
                write_as(out, resource, version, false);
                return;
        }
        api_version = resource_api_version(resource);
        text_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",", api_version ? api_version : "",
                    resource->kind);
        text_append(out, version->json + version->bare_offset, version->size - version->bare_offset);
}

static void write_metadata(struct text *out, const cJSON *object)
{
        _cleanup_free_ char *metadata = NULL;

        form_arrange_metadata(tree_metadata(object));
        metadata = form_print(tree_metadata(object));

        text_printf(out,
                    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":%s}",
                    metadata ? metadata : "{}");
}

static void write_table_row(struct text *out, const struct resource *resource, const struct version *version)
{
        cJSON *object = version_parse(version);
        const cJSON *column;
        const char *before = "";

        text_append_string(out, "{\"cells\":[");
        if (!names_itself(resource)) {
                text_json_string(out, version->name);
                before = ",";
        }
        cJSON_ArrayForEach(column, resource->column)
        {
                text_append_string(out, before);
                before = ",";
                write_cell(out, object, column);
        }
        text_append_string(out, "],\"object\":");
        write_metadata(out, object);
        text_append_string(out, "}");
        cJSON_Delete(object);
}

void write_item(struct text *out, const struct resource *resource, const struct version *version,
                enum representation representation)
{
        if (representation == REPRESENTATION_TABLE) {
                write_table_row(out, resource, version);
        } else if (representation == REPRESENTATION_METADATA) {
                write_object(out, resource, version, representation, false);
        } else if (is_converted(resource)) {
                write_as(out, resource, version, true);
        } else if (resource->builtin && version->bare_offset > 0) {
                text_append_string(out, "{");
                text_append(out, version->json + version->bare_offset, version->size - version->bare_offset);
        } else {
                write_plain(out, resource, version);
        }
}

void write_object(struct text *out, const struct resource *resource, const struct version *version,
                  enum representation representation, bool head)
{
        if (representation == REPRESENTATION_PLAIN) {
                write_plain(out, resource, version);
        } else if (representation == REPRESENTATION_METADATA) {
                cJSON *object = version_parse(version);

                write_metadata(out, object);
                cJSON_Delete(object);
        } else {
                write_list_head(out, resource, representation);
                text_printf(out, "\"resourceVersion\":\"%llu\"},",
                            (unsigned long long)version->resource_version);
                if (head)
                        write_columns(out, resource);
                else
                        text_append_string(out, "\"columnDefinitions\":null,");
                text_append_string(out, "\"rows\":[");
                write_table_row(out, resource, version);
                text_append_string(out, "]}");
        }
}

void answer_version(struct request *request, int status, const struct version *version)
{
        request->status = status;
        text_clear(&request->answer);
        write_object(&request->answer, request->resource, version, representation_of(request), true);
        text_append_string(&request->answer, "\n");
}

/* ---- lists */

static bool is_map(const struct resource *resource, enum representation representation)
{
        return representation == REPRESENTATION_PLAIN && !resource->builtin;
}

void write_list_head(struct text *out, const struct resource *resource, enum representation representation)
{
        _cleanup_free_ char *api_version = resource_api_version(resource);

        if (representation == REPRESENTATION_TABLE)
                text_append_string(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\"");
        else if (representation == REPRESENTATION_METADATA)
                text_append_string(
                        out, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\"");
        else
                text_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\"", resource->list_kind,
                            api_version ? api_version : "");
        text_append_string(out, ",\"metadata\":{");
}

/* A list of custom resources is a map as well, and its keys are sorted: items come before metadata. */
void write_list_begin(struct text *out, const struct resource *resource, enum representation representation,
                      const struct list_metadata *metadata)
{
        _cleanup_free_ char *api_version = resource_api_version(resource);

        if (is_map(resource, representation)) {
                text_printf(out, "{\"apiVersion\":\"%s\",\"items\":[", api_version ? api_version : "");
                return;
        }
        write_list_head(out, resource, representation);
        text_printf(out, "\"resourceVersion\":\"%llu\"", (unsigned long long)metadata->resource_version);
        if (metadata->token[0])
                text_printf(out, ",\"continue\":\"%s\"", metadata->token);
        if (metadata->remaining > 0)
                text_printf(out, ",\"remainingItemCount\":%zu", metadata->remaining);
        text_append_string(out, "},");
        if (representation == REPRESENTATION_TABLE)
                write_columns(out, resource);
        text_append_string(out, representation == REPRESENTATION_TABLE ? "\"rows\":[" : "\"items\":[");
}

void write_list_end(struct text *out, const struct resource *resource, enum representation representation,
                    const struct list_metadata *metadata)
{
        text_append_string(out, "]");
        if (is_map(resource, representation)) {
                text_printf(out, ",\"kind\":\"%s\",\"metadata\":{\"continue\":\"%s\",", resource->list_kind,
                            metadata->token);
                if (metadata->remaining > 0)
                        text_printf(out, "\"remainingItemCount\":%zu,", metadata->remaining);
                text_printf(out, "\"resourceVersion\":\"%llu\"}",
                            (unsigned long long)metadata->resource_version);
        }
        text_append_string(out, "}\n");
}
