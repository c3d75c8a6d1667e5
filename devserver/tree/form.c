/* SPDX-License-Identifier: Apache-2.0 */
/* See form.h. Without memory things stay in the order that they have. */
#include "devserver/tree/form.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/tree/convert.h"

/* ---- order */

static cJSON *member(const cJSON *object, const char *name)
{
        return cJSON_GetObjectItemCaseSensitive(object, name);
}

static int by_name(const void *a, const void *b)
{
        const cJSON *const *first = a, *const *second = b;

        return strcmp((*first)->string, (*second)->string);
}

static void sort(cJSON *object)
{
        size_t count = (size_t)cJSON_GetArraySize(object), i = 0;
        cJSON **item = cJSON_IsObject(object) && count > 1 ? calloc(count, sizeof(cJSON *)) : NULL, *child;

        if (!item)
                return;
        cJSON_ArrayForEach(child, object) item[i++] = child;
        qsort((void *)item, count, sizeof(cJSON *), by_name);
        for (i = 0; i < count; i++) {
                item[i]->next = i + 1 < count ? item[i + 1] : NULL;
                item[i]->prev = item[i > 0 ? i - 1 : count - 1];
        }
        object->child = item[0];
        free((void *)item);
}

static void sort_all(cJSON *tree)
{
        sort(tree);
        for (cJSON *child = tree ? tree->child : NULL; child; child = child->next)
                sort_all(child);
}

/* Moves the named members to the end, in this order. */
static void put_last(cJSON *object, const char *const *name, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(object, name[i]);

                if (item)
                        cJSON_AddItemToArray(object, item);
        }
}

/* The named members come first, in this order; the others follow. */
static void put_first(cJSON *object, const char *const *name, size_t count)
{
        for (size_t i = count; i > 0; i--) {
                cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(object, name[i - 1]);

                if (item)
                        cJSON_InsertItemInArray(object, 0, item);
        }
}

static const char *const of_metadata[] = {"name",
                                          "generateName",
                                          "namespace",
                                          "selfLink",
                                          "uid",
                                          "resourceVersion",
                                          "generation",
                                          "creationTimestamp",
                                          "deletionTimestamp",
                                          "deletionGracePeriodSeconds",
                                          "labels",
                                          "annotations",
                                          "ownerReferences",
                                          "finalizers",
                                          "clusterName",
                                          "managedFields"};

bool form_is_of_metadata(const char *name)
{
        for (size_t i = 0; i < ELEMENTS(of_metadata); i++)
                if (strcmp(of_metadata[i], name) == 0)
                        return true;
        return false;
}

void form_arrange_metadata(cJSON *metadata)
{
        static const char *const of_manager[] = {"manager",    "operation", "apiVersion", "time",
                                                 "fieldsType", "fieldsV1",  "subresource"};
        static const char *const of_owner[] = {"apiVersion", "kind",       "name",
                                               "uid",        "controller", "blockOwnerDeletion"};
        cJSON *item;

        put_first(metadata, of_metadata, ELEMENTS(of_metadata));
        sort(member(metadata, "labels"));
        sort(member(metadata, "annotations"));
        cJSON_ArrayForEach(item, member(metadata, "ownerReferences"))
                put_first(item, of_owner, ELEMENTS(of_owner));
        cJSON_ArrayForEach(item, member(metadata, "managedFields"))
        {
                put_first(item, of_manager, ELEMENTS(of_manager));
                sort_all(member(item, "fieldsV1"));
        }
}

void form_arrange(cJSON *object, bool builtin)
{
        static const char *const first[] = {"kind", "apiVersion", "metadata", "spec"};
        static const char *const last[] = {"immutable", "data", "binaryData", "type", "status"};

        if (!builtin) {
                sort_all(object);
                return;
        }
        put_first(object, first, ELEMENTS(first));
        if (convert_is_event(object))
                convert_arrange_event(object);
        else
                put_last(object, last, ELEMENTS(last));
        form_arrange_metadata(member(object, "metadata"));
        sort(member(object, "data"));
        sort(member(object, "binaryData"));
}

/* ---- text */

/* Go's: for browsers, and for JavaScript, to which U+2028 and U+2029 end a line. 0: it stays as it is. */
static size_t needs_escape(const char *at, unsigned *ret)
{
        *ret = (unsigned char)*at;
        if (*at == '<' || *at == '>' || *at == '&')
                return 1;
        if (strncmp(at, "\xe2\x80\xa8", 3) != 0 && strncmp(at, "\xe2\x80\xa9", 3) != 0)
                return 0;
        *ret = 0x2000 | ((unsigned char)at[2] & 0x3f);
        return 3;
}

char *form_print(const cJSON *tree)
{
        char *plain = cJSON_PrintUnformatted(tree), *at = plain;
        struct text out = TEXT_EMPTY;

        while (at && *at) {
                size_t same = strcspn(at, "<>&\xe2");
                unsigned code = 0;
                size_t size;

                text_append(&out, at, same);
                at += same;
                if (!*at)
                        break;
                size = needs_escape(at, &code);
                if (size > 0)
                        text_printf(&out, "\\u%04x", code);
                else
                        text_append(&out, at, 1);
                at += size > 0 ? size : 1;
        }
        if (!plain)
                return NULL;
        free(plain);
        return text_take(&out);
}
