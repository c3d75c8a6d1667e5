/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/end-state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json/difference.h"
#include "json/json.h"

#define SHOWN_MAX 160 /* bytes of a value */

int mask_init(struct mask *mask)
{
        *mask = (struct mask){cJSON_CreateObject(), cJSON_CreateObject(), cJSON_CreateObject()};
        return mask->path && mask->kind && cJSON_AddTrueToObject(mask->hidden, "Secret") ? 0 : -ENOMEM;
}

void mask_done(struct mask *mask)
{
        cJSON_Delete(mask->path);
        cJSON_Delete(mask->kind);
        cJSON_Delete(mask->hidden);
}

static void set_add(cJSON *set, const char *name)
{
        if (!json_member(set, name))
                cJSON_AddTrueToObject(set, name);
}

/* ---- what is left out */

static bool is_own_note(const char *name, const char *operator_name)
{
        size_t size = strlen(operator_name);

        return (strncmp(name, operator_name, size) == 0 && name[size] == '/') ||
               strncmp(name, "applyset.k8s.io/", strlen("applyset.k8s.io/")) == 0;
}

static void drop_own_notes(cJSON *metadata, const char *member, const char *operator_name)
{
        cJSON *map = json_member(metadata, member), *each = map ? map->child : NULL;

        while (each) {
                cJSON *next = each->next;

                if (is_own_note(each->string, operator_name))
                        cJSON_Delete(cJSON_DetachItemViaPointer(map, each));
                each = next;
        }
        if (map && !map->child)
                cJSON_DeleteItemFromObjectCaseSensitive(metadata, member);
}

/* Their order is that in which they were first written. */
static void sort_conditions(cJSON *list)
{
        for (cJSON *each = list->child; each && each->next;) {
                cJSON *next = each->next;

                if (strcmp(json_text(each, "type"), json_text(next, "type")) <= 0) {
                        each = next;
                        continue;
                }
                cJSON_DetachItemViaPointer(list, next);
                cJSON_InsertItemInArray(list, 0, next);
                each = list->child;
        }
}

/* They tell on which way the end was reached, which is not asked. */
static void drop_history(cJSON *value)
{
        cJSON *child;

        cJSON_DeleteItemFromObjectCaseSensitive(value, "observedGeneration");
        cJSON_DeleteItemFromObjectCaseSensitive(value, "lastTransitionTime");
        cJSON_ArrayForEach(child, value)
        {
                if (cJSON_IsObject(child) || cJSON_IsArray(child))
                        drop_history(child);
                if (cJSON_IsArray(child) && child->string && strcmp(child->string, "conditions") == 0)
                        sort_conditions(child);
        }
}

static void drop_uids(cJSON *metadata)
{
        cJSON *each;

        cJSON_ArrayForEach(each, json_member(metadata, "ownerReferences"))
                cJSON_DeleteItemFromObjectCaseSensitive(each, "uid");
        each = json_member(metadata, "deletionTimestamp");
        if (each)
                cJSON_SetValuestring(each, "set");
}

/* ---- one run */

static bool is_compared(const cJSON *object)
{
        static const char *const passed_over[] = {"Event", "CustomResourceDefinition"};

        for (size_t i = 0; i < ELEMENTS(passed_over); i++)
                if (strcmp(json_text(object, "kind"), passed_over[i]) == 0)
                        return false;
        return true;
}

/* "Deployment.apps default/a", "Namespace a" */
static char *name_of(const cJSON *object)
{
        const char *api_version = json_text(object, "apiVersion"), *slash = strchr(api_version, '/');
        const cJSON *metadata = json_member(object, "metadata");
        const char *namespace_name = json_text(metadata, "namespace");

        return format_string("%s%s%.*s %s%s%s", json_text(object, "kind"), slash ? "." : "",
                             slash ? (int)(slash - api_version) : 0, api_version, namespace_name,
                             namespace_name[0] ? "/" : "", json_text(metadata, "name"));
}

cJSON *end_state_take(const cJSON *objects, const char *operator_name)
{
        cJSON *outcome = cJSON_CreateObject();
        const cJSON *each;

        cJSON_ArrayForEach(each, objects)
        {
                const cJSON *object = json_member(each, "object");
                _cleanup_free_ char *name = name_of(object);
                cJSON *copy = is_compared(object) ? cJSON_Duplicate(object, true) : NULL,
                      *metadata = json_member(copy, "metadata");

                if (!copy)
                        continue;
                drop_own_notes(metadata, "labels", operator_name);
                drop_own_notes(metadata, "annotations", operator_name);
                drop_uids(metadata);
                drop_history(copy);
                if (!name || !outcome || !cJSON_AddItemToObject(outcome, name, copy)) {
                        cJSON_Delete(copy);
                        cJSON_Delete(outcome);
                        return NULL;
                }
        }
        return outcome;
}

/* ---- two runs */

/* A mask is for all entries of a list: "a[3].b" becomes "a[].b". */
static char *mask_path(const char *name, const char *path)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;

        text_printf(&out, "%s: ", name);
        while (*path) {
                size_t size = strcspn(path, "[");

                text_append(&out, path, size);
                path += size;
                if (*path == '[' && path[1] >= '0' && path[1] <= '9') {
                        path += strcspn(path, "]");
                        text_append_string(&out, "[");
                } else if (*path) {
                        text_append(&out, path++, 1);
                }
        }
        return text_take(&out);
}

struct comparing {
        const struct mask *mask;
        struct mask *learning; /* NULL: differences are written */
        const char *name;
        bool is_hidden;
        struct text *out;
        size_t count;
};

static void show_value(struct text *out, bool is_hidden, const cJSON *value)
{
        _cleanup_free_ char *json = value ? cJSON_PrintUnformatted(value) : NULL;

        if (!value)
                text_append_string(out, "nothing");
        else if (is_hidden)
                text_append_string(out, "another value, not shown");
        else
                text_printf(out, "%.*s%s", SHOWN_MAX, json ? json : "?",
                            json && strlen(json) > SHOWN_MAX ? "..." : "");
}

/* Handlers and servers differ in whether they leave an empty map or list out. */
static bool is_nothing(const cJSON *value)
{
        return !value || ((cJSON_IsObject(value) || cJSON_IsArray(value)) && !value->child);
}

/* Once there and once not is another thing than two values. */
static void learn_leaf(const struct mask *mask, const char *place, bool is_always_there)
{
        const cJSON *known = json_member(mask->path, place);

        is_always_there = is_always_there && !cJSON_IsFalse(known);
        cJSON_DeleteItemFromObjectCaseSensitive(mask->path, place);
        cJSON_AddBoolToObject(mask->path, place, is_always_there);
}

static void on_leaf(const char *path, const cJSON *before, const cJSON *after, void *userdata)
{
        struct comparing *comparing = userdata;
        _cleanup_free_ char *place = mask_path(comparing->name, path);
        bool both = !is_nothing(before) && !is_nothing(after);
        const cJSON *masked;

        if (!place || (is_nothing(before) && is_nothing(after)))
                return;
        if (comparing->learning) {
                learn_leaf(comparing->learning, place, both);
                return;
        }
        masked = json_member(comparing->mask->path, place);
        if (masked && (both || cJSON_IsFalse(masked)))
                return;
        text_printf(comparing->out, "%s: %s is ", comparing->name, path[0] ? path : "it");
        show_value(comparing->out, comparing->is_hidden, after);
        text_append_string(comparing->out, ", and should be ");
        show_value(comparing->out, comparing->is_hidden, before);
        text_append_string(comparing->out, "\n");
        comparing->count++;
}

static char *state_kind(const char *name)
{
        return strndup(name, strcspn(name, " "));
}

static bool is_kind_counted(const struct mask *mask, const char *name)
{
        _cleanup_free_ char *kind = state_kind(name);

        return kind && json_member(mask->kind, kind);
}

static bool is_kind_hidden(const struct mask *mask, const char *name)
{
        _cleanup_free_ char *kind = state_kind(name);

        return !kind || json_member(mask->hidden, kind);
}

static void learn_kinds(struct mask *mask, const cJSON *of, const cJSON *other)
{
        const cJSON *each;

        cJSON_ArrayForEach(each, of)
        {
                _cleanup_free_ char *kind =
                        json_member(other, each->string) ? NULL : state_kind(each->string);

                if (kind)
                        set_add(mask->kind, kind);
        }
}

void mask_learn(struct mask *mask, const cJSON *first, const cJSON *second)
{
        struct comparing comparing = {.mask = mask, .learning = mask};
        const cJSON *each;

        learn_kinds(mask, first, second);
        learn_kinds(mask, second, first);
        cJSON_ArrayForEach(each, first)
        {
                const cJSON *other = json_member(second, each->string);

                comparing.name = each->string;
                if (other)
                        (void)difference_visit(each, other, on_leaf, &comparing);
        }
}

static size_t count_kind(const cJSON *outcome, const char *kind)
{
        const cJSON *each;
        size_t count = 0, size = strlen(kind);

        cJSON_ArrayForEach(each, outcome) count +=
                strncmp(each->string, kind, size) == 0 && each->string[size] == ' ';
        return count;
}

static size_t compare_counts(const struct mask *mask, const cJSON *expected, const cJSON *is,
                             struct text *out)
{
        const cJSON *kind;
        size_t differences = 0;

        cJSON_ArrayForEach(kind, mask->kind)
        {
                size_t wanted = count_kind(expected, kind->string), there = count_kind(is, kind->string);

                if (wanted == there)
                        continue;
                text_printf(out, "%s: there are %zu, and should be %zu\n", kind->string, there, wanted);
                differences++;
        }
        return differences;
}

size_t end_state_compare(const struct mask *mask, const cJSON *expected, const cJSON *is, struct text *out)
{
        struct comparing comparing = {.mask = mask, .out = out};
        const cJSON *each;

        cJSON_ArrayForEach(each, expected)
        {
                const cJSON *other = json_member(is, each->string);

                comparing.name = each->string;
                comparing.is_hidden = is_kind_hidden(mask, each->string);
                if (is_kind_counted(mask, each->string))
                        continue;
                if (other) {
                        (void)difference_visit(each, other, on_leaf, &comparing);
                } else {
                        text_printf(out, "%s: is missing\n", each->string);
                        comparing.count++;
                }
        }
        cJSON_ArrayForEach(each, is) if (!json_member(expected, each->string) &&
                                         !is_kind_counted(mask, each->string))
        {
                text_printf(out, "%s: should not be there\n", each->string);
                comparing.count++;
        }
        return comparing.count + compare_counts(mask, expected, is, out);
}
