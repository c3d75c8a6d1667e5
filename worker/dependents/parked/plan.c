/* SPDX-License-Identifier: Apache-2.0 */
/* See settle.h. */
#include "worker/dependents/parked/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "json/json.h"

DEFINE_CLEANUP(cJSON *, cJSON_Delete);

/* ---- the plan as text */

static void append(struct text *out, const char *key, const char *value)
{
        text_printf(out, "\"%s\":", key);
        text_json_string(out, value);
        text_append_string(out, ",");
}

static void write_dependent(const struct dependent *dependent, bool with_previous, struct text *out)
{
        text_append_string(out, "{");
        append(out, "apiVersion", dependent->api_version);
        append(out, "kind", dependent->kind);
        append(out, "namespace", dependent->namespace_name);
        append(out, "name", dependent->name);
        if (dependent->kept)
                append(out, "kept", dependent->kept);
        else if (dependent->previous && with_previous)
                text_printf(out, "\"restore\":%s,", dependent->previous);
        if (dependent->shown && dependent->shown[0])
                append(out, "shown", dependent->shown);
        text_append_string(out, "\"uid\":");
        text_json_string(out, dependent->uid ? dependent->uid : "");
        text_append_string(out, "}");
}

static int write_plan(const struct park_plan *plan, bool with_previous, struct text *out)
{
        bool first = true;

        text_append_string(out, "{");
        append(out, "cause", plan->cause);
        text_printf(out,
                    "\"deadline\":\"%" PRIu64 "\",\"fingerprint\":\"%" PRIu64 "\",\"essence\":\"%" PRIu64
                    "\",\"undo\":[",
                    plan->deadline, plan->fingerprint, plan->essence);
        for (size_t i = 0; i < plan->undo.count; i++) {
                if (plan->undo.item[i].previous && !plan->undo.item[i].kept && !with_previous)
                        continue;
                if (!first)
                        text_append_string(out, ",");
                write_dependent(&plan->undo.item[i], with_previous, out);
                first = false;
        }
        text_append_string(out, "],\"wait\":[");
        for (size_t i = 0; i < plan->wait.count; i++) {
                if (i > 0)
                        text_append_string(out, ",");
                write_dependent(&plan->wait.item[i], false, out);
        }
        text_printf(out,
                    "],\"result\":\"%" PRIu64 "\",\"related\":\"%" PRIu64 "\",\"requeueAfter\":\"%" PRIu64
                    "\",\"message\":",
                    plan->result, plan->related, plan->requeue_after_usec);
        text_json_string(out, plan->message ? plan->message : "");
        text_append_string(out, ",\"ready\":");
        text_json_string(out, plan->ready ? plan->ready : "");
        text_printf(out, ",\"answered\":\"%" PRIu64 "\"", plan->answered);
        if (plan->again)
                text_append_string(out, ",\"again\":true");
        if (plan->silent)
                text_append_string(out, ",\"silent\":true");
        if (plan->slow)
                text_append_string(out, ",\"slow\":true");
        text_append_string(out, "}");
        return out->failed ? -ENOMEM : out->size > PARK_PLAN_MAX ? -E2BIG : 0;
}

int park_plan_write(const struct park_plan *plan, struct text *out)
{
        int r = write_plan(plan, true, out);

        if (r != -E2BIG)
                return r;
        text_done(out);
        r = write_plan(plan, false, out);
        return r < 0 && r != -E2BIG ? r : -E2BIG;
}

static char *copy_member(const cJSON *object, const char *key)
{
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

        return strdup(text ? text : "");
}

static uint64_t read_number(const cJSON *object, const char *key)
{
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

        return text ? strtoull(text, NULL, 10) : 0;
}

static int read_dependent(const cJSON *item, struct dependent_list *list)
{
        const cJSON *restore = cJSON_GetObjectItemCaseSensitive(item, "restore");
        bool is_kept = cJSON_HasObjectItem(item, "kept");
        struct dependent dependent = {
                .api_version = copy_member(item, "apiVersion"),
                .kind = copy_member(item, "kind"),
                .namespace_name = copy_member(item, "namespace"),
                .name = copy_member(item, "name"),
                .uid = copy_member(item, "uid"),
                .shown = copy_member(item, "shown"),
                .previous = restore ? cJSON_PrintUnformatted(restore) : NULL,
                .kept = is_kept ? copy_member(item, "kept") : NULL,
                .index = list->count,
        };

        if (is_kept &&
            !dependent.kept) /* without it, it would count as made by the attempt, and be deleted */
                dependent.lost = true;
        return dependent_list_add(list, &dependent);
}

int park_plan_read(const char *text, struct park_plan *ret)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *root = json_parse(text, strlen(text));
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "undo");
        const cJSON *wait = cJSON_GetObjectItemCaseSensitive(root, "wait"), *item;
        struct park_plan plan = {
                .cause = copy_member(root, "cause"),
                .deadline = read_number(root, "deadline"),
                .fingerprint = read_number(root, "fingerprint"),
                .essence = read_number(root, "essence"),
                .message = copy_member(root, "message"),
                .ready = copy_member(root, "ready"),
                .answered = read_number(root, "answered"),
                .silent = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "silent")),
                .slow = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "slow")),
                .again = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "again")),
                .result = read_number(root, "result"),
                .related = read_number(root, "related"),
                .requeue_after_usec = read_number(root, "requeueAfter"),
        };
        int r = !plan.cause || !plan.message || !plan.ready ? -ENOMEM : cJSON_IsArray(list) ? 0 : -EBADMSG;

        cJSON_ArrayForEach(item, list)
        {
                if (r >= 0)
                        r = read_dependent(item, &plan.undo);
        }
        cJSON_ArrayForEach(item, wait)
        {
                if (r >= 0)
                        r = read_dependent(item, &plan.wait);
        }
        if (r < 0) {
                park_plan_done(&plan);
                return r;
        }
        *ret = plan;
        return 0;
}

void park_plan_done(struct park_plan *plan)
{
        free(plan->cause);
        free(plan->message);
        free(plan->ready);
        dependent_list_done(&plan->wait);
        dependent_list_done(&plan->undo);
        *plan = (struct park_plan){0};
}

/* ---- what was applied: fieldsV1 as structured-merge-diff writes it */

static cJSON *pick(const cJSON *value, const cJSON *fields);

/* "k:{...}": the element of a list whose members are these. */
static const cJSON *find_by_keys(const cJSON *list, const char *keys)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *wanted = json_parse(keys, strlen(keys));
        const cJSON *item, *key;

        cJSON_ArrayForEach(item, list)
        {
                bool same = wanted != NULL;

                cJSON_ArrayForEach(key, wanted) same =
                        same && json_equal(key, cJSON_GetObjectItemCaseSensitive(item, key->string));
                if (same)
                        return item;
        }
        return NULL;
}

/* "v:...": the element of a set. */
static const cJSON *find_by_value(const cJSON *list, const char *text)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *wanted = json_parse(text, strlen(text));
        const cJSON *item;

        cJSON_ArrayForEach(item, list) if (wanted && json_equal(item, wanted)) return item;
        return NULL;
}

/* The members that name an element belong to it, whoever wrote them. */
static void add_keys(cJSON *element, const char *keys)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *wanted = json_parse(keys, strlen(keys));
        const cJSON *key;

        cJSON_ArrayForEach(key, wanted) if (cJSON_IsObject(element) &&
                                            !cJSON_GetObjectItemCaseSensitive(element, key->string))
                cJSON_AddItemToObject(element, key->string, cJSON_Duplicate(key, true));
}

static void pick_member(cJSON *picked, const cJSON *value, const cJSON *field)
{
        const char *name = field->string;
        const cJSON *from = NULL;
        cJSON *part;

        if (strncmp(name, "f:", 2) == 0)
                from = cJSON_GetObjectItemCaseSensitive(value, name + 2);
        else if (strncmp(name, "k:", 2) == 0)
                from = find_by_keys(value, name + 2);
        else if (strncmp(name, "v:", 2) == 0)
                from = find_by_value(value, name + 2);
        if (!from)
                return;
        part = pick(from, field);
        if (strncmp(name, "k:", 2) == 0)
                add_keys(part, name + 2);
        if (cJSON_IsArray(picked))
                cJSON_AddItemToArray(picked, part);
        else
                cJSON_AddItemToObject(picked, name + 2, part);
}

static cJSON *pick(const cJSON *value, const cJSON *fields)
{
        const cJSON *field;
        cJSON *picked;

        /* A leaf, or something that is owned as a whole. */
        if (!fields->child || (!cJSON_IsObject(value) && !cJSON_IsArray(value)))
                return cJSON_Duplicate(value, true);
        picked = cJSON_IsArray(value) ? cJSON_CreateArray() : cJSON_CreateObject();
        cJSON_ArrayForEach(field, fields) if (picked && field->string && strcmp(field->string, ".") != 0)
                pick_member(picked, value, field);
        return picked;
}

static const cJSON *fields_of(const cJSON *metadata, const char *manager)
{
        const cJSON *entry;

        cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(metadata, "managedFields"))
        {
                const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "manager"));
                const char *operation =
                        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "operation"));

                if (name && operation && strcmp(name, manager) == 0 && strcmp(operation, "Apply") == 0 &&
                    !cJSON_GetObjectItemCaseSensitive(entry, "subresource"))
                        return cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1");
        }
        return NULL;
}

static void copy_identity(cJSON *body, const cJSON *object, const char *key)
{
        cJSON *value = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(object, key), true);

        cJSON_DeleteItemFromObjectCaseSensitive(body, key);
        if (value)
                cJSON_AddItemToObject(body, key, value);
}

char *managed_fields_body(const char *text, const char *manager)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *object = json_parse(text, strlen(text)), *body = NULL;
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        const cJSON *fields = fields_of(metadata, manager);
        cJSON *own;

        if (!cJSON_IsObject(object) || !metadata)
                return NULL;
        /* Nothing of it was ours: an empty body takes away what we have added since. */
        body = fields ? pick(object, fields) : cJSON_CreateObject();
        if (!cJSON_IsObject(body))
                return NULL;
        own = cJSON_GetObjectItemCaseSensitive(body, "metadata");
        if (!own)
                own = cJSON_AddObjectToObject(body, "metadata");
        copy_identity(own, metadata, "name");
        copy_identity(own, metadata, "namespace");
        copy_identity(body, object, "apiVersion");
        copy_identity(body, object, "kind");
        return cJSON_PrintUnformatted(body);
}
