/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that are sets or maps have no element twice; objects inside of others have a kind. */
#include "devserver/schema/schema-elements.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/schema/schema-mistakes.h"
#include "devserver/tree/form.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

struct seen {
        char *text;
        bool told;
};

static int compare_seen(const void *a, const void *b)
{
        return strcmp(((const struct seen *)a)->text, ((const struct seen *)b)->text);
}

static void free_seen(void *pointer)
{
        free(((struct seen *)pointer)->text);
        free(pointer);
}

/* What tells an element from the others: the keys of a map, or all of it. The caller's; NULL: no memory. */
static cJSON *identity_of(const cJSON *element, const cJSON *schema)
{
        const cJSON *key;
        cJSON *identity;

        if (strcmp(json_text(schema, "x-kubernetes-list-type"), "map") != 0)
                return cJSON_Duplicate(element, true);
        identity = cJSON_CreateObject();
        cJSON_ArrayForEach(key, schema_keyword(schema, "x-kubernetes-list-map-keys"))
                tree_copy_member(identity, element, key->valuestring);
        return identity;
}

static void tell(const struct step *step, size_t index, enum mistake_type type, const cJSON *value,
                 const char *detail, struct mistakes *mistakes)
{
        struct step here = step_element(step, index);
        _cleanup_free_ char *field = step_describe(NULL, &here), *text = value_describe(value);

        mistake_add(mistakes, type, field, text, "%s", detail);
}

/* An element that is there for the second time is reported, none for the third. */
static void check_unique(const cJSON *list, const cJSON *schema, const struct step *step,
                         struct mistakes *mistakes)
{
        bool is_map = strcmp(json_text(schema, "x-kubernetes-list-type"), "map") == 0;
        void *known = NULL;
        const cJSON *element;
        size_t index = 0;

        cJSON_ArrayForEach(element, list)
        {
                if (is_map && !cJSON_IsObject(element) && !cJSON_IsNull(element)) {
                        tell(step, index, MISTAKE_INVALID, element,
                             "must be an object for an array of list-type map", mistakes);
                        return;
                }
                index++;
        }
        index = 0;
        cJSON_ArrayForEach(element, list)
        {
                struct seen *seen = calloc(1, sizeof(*seen)), **node;
                cJSON *identity = identity_of(element, schema);

                form_arrange(identity, false);
                if (seen)
                        seen->text = form_print(identity);
                node = seen && seen->text ? tsearch(seen, &known, compare_seen) : NULL;
                if (node && *node != seen && !(*node)->told) {
                        tell(step, index, MISTAKE_DUPLICATE, identity, "", mistakes);
                        (*node)->told = true;
                }
                index++;
                if (seen && (!node || *node != seen))
                        free_seen(seen);
                cJSON_Delete(identity);
        }
        tdestroy(known, free_seen);
}

/* apiVersion and kind. */
static void check_resource(const cJSON *object, const struct step *step, struct mistakes *mistakes)
{
        static const char *const name[] = {"apiVersion", "kind"};

        for (size_t i = 0; i < ELEMENTS(name); i++) {
                const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name[i]);
                struct step here = step_member(step, name[i]);
                _cleanup_free_ char *field = step_describe(NULL, &here),
                                    *value = member ? value_describe(member) : NULL;

                if (!member)
                        mistake_add(mistakes, MISTAKE_REQUIRED, field, NULL, "%s", "");
                else if (!cJSON_IsString(member))
                        mistake_add(mistakes, MISTAKE_INVALID, field, value, "must be a string");
                else if (!member->valuestring[0])
                        mistake_add(mistakes, MISTAKE_INVALID, field, value, "must not be empty");
        }
}

static void check(const cJSON *value, const cJSON *schema, const struct step *step, bool lists,
                  struct mistakes *mistakes)
{
        const cJSON *properties = schema_keyword(schema, "properties"), *items, *child, *at = NULL;
        const char *list_type = json_text(schema, "x-kubernetes-list-type");
        size_t index = 0;
        bool known;

        if (!schema || mistakes->count == MISTAKES_MAX)
                return;
        items = schema_keyword(schema, "items");
        if (!lists && cJSON_IsObject(value) && schema_is(schema, "x-kubernetes-embedded-resource"))
                check_resource(value, step, mistakes);
        if (lists && cJSON_IsArray(value) &&
            (strcmp(list_type, "set") == 0 || strcmp(list_type, "map") == 0))
                check_unique(value, schema, step, mistakes);
        cJSON_ArrayForEach(child, value)
        {
                const cJSON *inner =
                        child->string ? schema_of_member(schema, child->string, &at, &known) : items;
                struct step here = !child->string ? step_element(step, index++)
                                   : cJSON_GetObjectItemCaseSensitive(properties, child->string)
                                           ? step_member(step, child->string)
                                           : step_key(step, child->string);

                check(child, inner, &here, lists, mistakes);
        }
}

void schema_check_embedded(const cJSON *object, const cJSON *schema, struct mistakes *mistakes)
{
        check(object, schema, NULL, false, mistakes);
}

void schema_check_lists(const cJSON *object, const cJSON *before, const cJSON *schema,
                        struct mistakes *mistakes)
{
        struct mistakes now = {0}, then = {0};

        check(object, schema, NULL, true, &now);
        if (now.count > 0 && before)
                check(before, schema, NULL, true, &then);
        if (then.count == 0)
                mistakes_merge(mistakes, &now);
        mistakes_done(&now);
        mistakes_done(&then);
}
