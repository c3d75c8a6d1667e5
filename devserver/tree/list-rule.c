/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/tree/list-rule.h"

#include <string.h>

#include "base/cleanup.h"

/* The lists of built-in kinds that are merged by key; all others are replaced whole. */
static const struct known {
        const char *field;
        const char *key[2]; /* none: a set; the second one only in server-side apply */
} known[] = {
        {"finalizers", {NULL}},
        {"ownerReferences", {"uid"}},
        {"conditions", {"type"}},
        {"containers", {"name"}},
        {"initContainers", {"name"}},
        {"ephemeralContainers", {"name"}},
        {"env", {"name"}},
        {"volumes", {"name"}},
        {"volumeMounts", {"mountPath"}},
        {"volumeDevices", {"devicePath"}},
        {"imagePullSecrets", {"name"}},
        {"secrets", {"name"}},
        {"hostAliases", {"ip"}},
        {"addresses", {"type"}},
        {"ports", {"containerPort", "protocol"}},
        {"ports", {"port", "protocol"}},
};

struct place place_root(const cJSON *schema, bool builtin)
{
        return (struct place){.schema = schema, .builtin = builtin, .root = true};
}

struct place place_member(struct place place, const char *name)
{
        const cJSON *properties = cJSON_GetObjectItemCaseSensitive(place.schema, "properties");
        const cJSON *schema = cJSON_GetObjectItemCaseSensitive(properties, name);
        bool metadata = place.root && strcmp(name, "metadata") == 0;

        if (!schema)
                schema = cJSON_GetObjectItemCaseSensitive(place.schema, "additionalProperties");
        return (struct place){
                .schema = metadata ? NULL : schema, .field = name, .builtin = place.builtin || metadata};
}

struct place place_element(struct place place)
{
        return (struct place){.schema = cJSON_GetObjectItemCaseSensitive(place.schema, "items"),
                              .builtin = place.builtin};
}

cJSON *element_key_value(const cJSON *element, const char *key)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(element, key);

        if (value && !cJSON_IsNull(value))
                return cJSON_Duplicate(value, true);
        return cJSON_IsObject(element) && strcmp(key, "protocol") == 0 ? cJSON_CreateString("TCP") : NULL;
}

static bool elements_have(const cJSON *list, const char *key)
{
        const cJSON *element;

        cJSON_ArrayForEach(element, list)
        {
                if (strcmp(key, "protocol") != 0 && !cJSON_HasObjectItem(element, key))
                        return false;
        }
        return true;
}

static bool elements_are_scalars(const cJSON *list)
{
        const cJSON *element;

        cJSON_ArrayForEach(element, list)
        {
                if (cJSON_IsObject(element) || cJSON_IsArray(element))
                        return false;
        }
        return true;
}

static struct list_rule rule_of_schema(const cJSON *schema, const cJSON *value)
{
        const cJSON *type = cJSON_GetObjectItemCaseSensitive(schema, "x-kubernetes-list-type"), *key;
        struct list_rule rule = {.type = LIST_ATOMIC};

        if (!cJSON_IsString(type))
                return rule;
        if (strcmp(type->valuestring, "set") == 0 && elements_are_scalars(value))
                rule.type = LIST_SET;
        if (strcmp(type->valuestring, "map") != 0)
                return rule;
        cJSON_ArrayForEach(key, cJSON_GetObjectItemCaseSensitive(schema, "x-kubernetes-list-map-keys"))
        {
                if (!cJSON_IsString(key) || rule.count == LIST_KEYS_MAX ||
                    !elements_have(value, key->valuestring))
                        return (struct list_rule){.type = LIST_ATOMIC};
                rule.key[rule.count++] = key->valuestring;
        }
        rule.type = rule.count > 0 ? LIST_MAP : LIST_ATOMIC;
        return rule;
}

static const struct known *find_known(const char *field, const cJSON *value)
{
        for (size_t i = 0; field && i < ELEMENTS(known); i++)
                if (strcmp(known[i].field, field) == 0 &&
                    (known[i].key[0] ? elements_have(value, known[i].key[0]) : elements_are_scalars(value)))
                        return &known[i];
        return NULL;
}

struct list_rule place_list_rule(struct place place, const cJSON *value)
{
        const struct known *found;
        struct list_rule rule = {.type = LIST_ATOMIC};

        if (!cJSON_IsArray(value))
                return rule;
        if (!place.builtin)
                return rule_of_schema(place.schema, value);
        found = find_known(place.field, value);
        if (!found)
                return rule;
        rule.type = found->key[0] ? LIST_MAP : LIST_SET;
        while (rule.count < ELEMENTS(found->key) && found->key[rule.count]) {
                rule.key[rule.count] = found->key[rule.count];
                rule.count++;
        }
        return rule;
}

bool place_is_atomic_map(struct place place)
{
        const cJSON *type = cJSON_GetObjectItemCaseSensitive(place.schema, "x-kubernetes-map-type");

        return !place.builtin && cJSON_IsString(type) && strcmp(type->valuestring, "atomic") == 0;
}

const char *strategic_merge_key(const char *field, const cJSON *list)
{
        const struct known *found = find_known(field, list);

        if (!found)
                return NULL;
        return found->key[0] ? found->key[0] : "";
}
