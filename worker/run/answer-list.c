/* SPDX-License-Identifier: Apache-2.0 */
/* See answer-list.h. */
#include "worker/run/answer-list.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "worker/dependents/dependent.h"

int answer_list_wrong(const struct answer_list *list, int index, const char *key, const char *text,
                      struct error *error)
{
        return error_set(error, -EINVAL, "the handler's answer: %s[%d]%s%s: %s", list->name, index,
                         key[0] ? "." : "", key, text);
}

int answer_list_check_item(const struct answer_list *list, const cJSON *item, int index, struct error *error)
{
        const cJSON *member;

        if (!cJSON_IsObject(item))
                return answer_list_wrong(list, index, "", "must be an object", error);
        cJSON_ArrayForEach(member, item)
        {
                int r = list->check_member(member, index, error);

                if (r < 0)
                        return r;
        }
        for (const char *const *key = list->required; *key; key++)
                if (!cJSON_GetObjectItemCaseSensitive(item, *key))
                        return answer_list_wrong(list, index, *key, "is missing", error);
        return 0;
}

/* ---- events, by the rules of events.k8s.io/v1 */

#define EVENTS_MAX 100 /* in one answer */
#define WORD_MAX   128 /* the API's limit for reason and action */
#define WORD                                                                                                \
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                                    \
        "_-.:"

static int check_event_member(const cJSON *member, int index, struct error *error);

static const struct answer_list events = {"events", check_event_member, {"reason", NULL}};

static int wrong_event(struct error *error, int index, const char *key, const char *text)
{
        return answer_list_wrong(&events, index, key, text, error);
}

static int check_event_member(const cJSON *member, int index, struct error *error)
{
        const char *key = member->string, *text = cJSON_GetStringValue(member);
        bool is_word = strcmp(key, "reason") == 0 || strcmp(key, "action") == 0;

        if (!is_word && strcmp(key, "type") != 0 && strcmp(key, "note") != 0)
                return wrong_event(error, index, key, "is unknown; known are type, reason, action and note");
        if (!text)
                return wrong_event(error, index, key, "must be a text");
        if (strcmp(key, "type") == 0 && strcmp(text, "Normal") != 0 && strcmp(text, "Warning") != 0)
                return wrong_event(error, index, key, "must be \"Normal\" or \"Warning\"");
        if (is_word && (strlen(text) == 0 || strlen(text) > WORD_MAX || strspn(text, WORD) != strlen(text)))
                return wrong_event(error, index, key, "must be one word of at most 128 characters");
        return 0;
}

int events_check(const cJSON *list, struct error *error)
{
        const cJSON *item;
        int index = 0;

        if (!cJSON_IsArray(list))
                return error_set(error, -EINVAL, "the handler's answer: events: must be a list");
        cJSON_ArrayForEach(item, list)
        {
                int r = index == EVENTS_MAX ? wrong_event(error, index, "", "at most 100 are accepted")
                                            : answer_list_check_item(&events, item, index, error);

                if (r < 0)
                        return r;
                index++;
        }
        return 0;
}

/* ---- children and patches */

/* An item of the answer's list. */
struct place {
        const char *list; /* "children" or "patches" */
        int index;
        bool is_patch;
};

static int wrong_dependent(struct error *error, struct place at, const char *key, const char *text)
{
        return error_set(error, -EINVAL, "the handler's answer: %s[%d]%s%s: %s", at.list, at.index,
                         key[0] ? "." : "", key, text);
}

/* Members of the metadata that the handler may not set, and why. */
static const struct {
        const char *name, *why;
} untouchable[] = {
        {"managedFields", "it belongs to the API server"},
        {"uid", "it belongs to the API server"},
        {"resourceVersion", "it belongs to the API server"},
        {"generateName", "an object is found again by its name; give it one"},
        {"ownerReferences", "it is set by reconciled"},
};

/* The metadata that a patch may set. */
static int check_patched_metadata(const cJSON *metadata, struct place at, struct error *error)
{
        static const char *const known[] = {"name", "namespace", "labels", "annotations"};
        const cJSON *member;

        cJSON_ArrayForEach(member, metadata)
        {
                bool is_known = false;
                char key[64];

                for (size_t i = 0; i < ELEMENTS(known); i++)
                        is_known = is_known || strcmp(member->string, known[i]) == 0;
                snprintf(key, sizeof(key), "metadata.%.40s", member->string);
                if (!is_known)
                        return wrong_dependent(error, at, key, "a patch sets labels and annotations alone");
        }
        return 0;
}

/* Our own marks are written into both. */
static int check_labels_and_annotations(const cJSON *metadata, struct place at, struct error *error)
{
        const cJSON *labels = cJSON_GetObjectItemCaseSensitive(metadata, "labels");
        const cJSON *annotations = cJSON_GetObjectItemCaseSensitive(metadata, "annotations");

        if (labels && !cJSON_IsObject(labels))
                return wrong_dependent(error, at, "metadata.labels", "must be an object");
        if (annotations && !cJSON_IsObject(annotations))
                return wrong_dependent(error, at, "metadata.annotations", "must be an object");
        if (cJSON_GetObjectItemCaseSensitive(labels, DEPENDENT_SET_LABEL))
                return wrong_dependent(error, at, "metadata.labels." DEPENDENT_SET_LABEL,
                                       "it is set by reconciled");
        return 0;
}

static int check_metadata(const cJSON *metadata, struct place at, struct error *error)
{
        const cJSON *namespace_name = cJSON_GetObjectItemCaseSensitive(metadata, "namespace");

        if (!cJSON_IsObject(metadata))
                return wrong_dependent(error, at, "metadata", "must be an object");
        if (!dependent_is_name(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "name"))))
                return wrong_dependent(error, at, "metadata.name", "must be the name of an object");
        if (namespace_name && !dependent_is_name(cJSON_GetStringValue(namespace_name)))
                return wrong_dependent(error, at, "metadata.namespace", "must be the name of a namespace");
        if (at.is_patch && check_patched_metadata(metadata, at, error) < 0)
                return -EINVAL;
        for (size_t i = 0; i < ELEMENTS(untouchable); i++) {
                char key[64];

                snprintf(key, sizeof(key), "metadata.%s", untouchable[i].name);
                if (cJSON_GetObjectItemCaseSensitive(metadata, untouchable[i].name))
                        return wrong_dependent(error, at, key, untouchable[i].why);
        }
        return check_labels_and_annotations(metadata, at, error);
}

/* A duplicate key is refused: the scanner and the tree could each see another value. */
static int check_twice(const cJSON *object, struct place at, const char *parent, struct error *error)
{
        static const char *const single[] = {"apiVersion", "kind",   "metadata",   "name",
                                             "namespace",  "labels", "annotations"};

        for (size_t i = 0; i < ELEMENTS(single); i++) {
                unsigned count = 0;
                const cJSON *member;
                char key[64];

                cJSON_ArrayForEach(member, object) count += strcmp(member->string, single[i]) == 0;
                snprintf(key, sizeof(key), "%s%s", parent, single[i]);
                if (count > 1)
                        return wrong_dependent(error, at, key, "stands there twice");
        }
        return 0;
}

/* There may be keys beside the object. */
static int check_wrapper(const cJSON *wrapper, struct place at, struct error *error)
{
        static const char *const known[] = {DEPENDENT_MANIFEST, "adopt", "release"};
        const cJSON *member;
        unsigned wishes = 0;

        cJSON_ArrayForEach(member, wrapper)
        {
                bool is_known = false;

                for (size_t i = 0; i < ELEMENTS(known); i++)
                        is_known = is_known || strcmp(member->string, known[i]) == 0;
                if (!is_known)
                        return wrong_dependent(error, at, member->string,
                                               "is unknown beside `manifest`; known are adopt and release");
                if (strcmp(member->string, DEPENDENT_MANIFEST) == 0)
                        continue;
                if (!cJSON_IsBool(member))
                        return wrong_dependent(error, at, member->string, "must be true or false");
                wishes += cJSON_IsTrue(member) ? 1 : 0;
        }
        return wishes > 1 ? wrong_dependent(error, at, "", "cannot be adopted and released at once") : 0;
}

static int check_dependent(const cJSON *dependent, struct place at, struct error *error)
{
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(dependent, "metadata");
        int r;

        if (!cJSON_IsObject(dependent))
                return wrong_dependent(error, at, "", "must be an object");
        if (!dependent_is_api_version(
                    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(dependent, "apiVersion"))))
                return wrong_dependent(error, at, "apiVersion", "must be a text like \"v1\" or \"apps/v1\"");
        if (!dependent_is_name(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(dependent, "kind"))))
                return wrong_dependent(error, at, "kind", "must be a text like \"ConfigMap\"");
        r = check_metadata(metadata, at, error);
        if (r >= 0)
                r = check_twice(dependent, at, "", error);
        return r < 0 ? r : check_twice(metadata, at, "metadata.", error);
}

/* They would be sent as fields of the object. */
static int check_wishes_inside(const cJSON *object, struct place at, struct error *error)
{
        static const char *const wish[] = {"adopt", "release"};

        for (size_t i = 0; i < ELEMENTS(wish); i++)
                if (cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(object, wish[i])))
                        return wrong_dependent(
                                error, at, wish[i],
                                "stands inside the object; it belongs beside it: {\"manifest\": {the object}, "
                                "\"adopt\": true}, or release");
        return 0;
}

static int check_one(const cJSON *item, struct place at, struct error *error)
{
        const cJSON *manifest = cJSON_GetObjectItemCaseSensitive(item, DEPENDENT_MANIFEST);
        int r;

        if (at.is_patch && manifest)
                return wrong_dependent(error, at, DEPENDENT_MANIFEST, "is for `children`");
        if (at.is_patch && cJSON_GetObjectItemCaseSensitive(item, "status"))
                return wrong_dependent(error, at, "status",
                                       "cannot be patched: it is its controller's to report");
        if (at.is_patch)
                return check_dependent(item, at, error);
        r = manifest ? 0 : check_wishes_inside(item, at, error);
        if (r < 0)
                return r;
        r = manifest ? check_wrapper(item, at, error) : 0;
        return r < 0 ? r : check_dependent(manifest ? manifest : item, at, error);
}

int objects_check(const char *list, const cJSON *array, struct error *error)
{
        struct place at = {.list = list, .is_patch = strcmp(list, "patches") == 0};
        const cJSON *dependent;

        if (!cJSON_IsArray(array))
                return error_set(error, -EINVAL, "the handler's answer: %s: must be a list", list);
        if (cJSON_GetArraySize(array) > DEPENDENTS_MAX)
                return error_set(error, -EINVAL, "the handler's answer: %s: more than %d", list,
                                 DEPENDENTS_MAX);
        cJSON_ArrayForEach(dependent, array)
        {
                int r = check_one(dependent, at, error);

                if (r < 0)
                        return r;
                at.index++;
        }
        return 0;
}
