/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/dependent.h"

#include <errno.h>
#include <string.h>

#include "base/sha256.h"
#include "object/bookkeeping.h"
#include "worker/dependents/ownership.h"
#include "worker/dependents/parked/managed-fields.h"
#include "worker/dependents/secret-data.h"

bool dependent_is_name(const char *text)
{
        return text && text[0] && strlen(text) <= 253 && !strpbrk(text, "/,%") && strcmp(text, ".") != 0 &&
               strcmp(text, "..") != 0;
}

bool dependent_is_api_version(const char *text)
{
        const char *slash = text ? strchr(text, '/') : NULL;

        return text && text[0] && slash != text && !strpbrk(text, ",%") &&
               (!slash || (slash[1] && !strchr(slash + 1, '/')));
}

/* ---- lists */

/* The order of applying: what others need comes first. Kinds that are not named here come between the
 * first and the last. */
static const char *const first_kind[] = {"Namespace",
                                         "CustomResourceDefinition",
                                         "PriorityClass",
                                         "ResourceQuota",
                                         "LimitRange",
                                         "NetworkPolicy",
                                         "ServiceAccount",
                                         "ClusterRole",
                                         "ClusterRoleBinding",
                                         "Role",
                                         "RoleBinding",
                                         "Secret",
                                         "ConfigMap",
                                         "StorageClass",
                                         "PersistentVolume",
                                         "PersistentVolumeClaim",
                                         "Service"};
static const char *const last_kind[] = {"PodDisruptionBudget",
                                        "HorizontalPodAutoscaler",
                                        "IngressClass",
                                        "Ingress",
                                        "APIService",
                                        "MutatingWebhookConfiguration",
                                        "ValidatingWebhookConfiguration"};

static int rank_of(const char *kind)
{
        for (size_t i = 0; i < ELEMENTS(first_kind); i++)
                if (strcmp(first_kind[i], kind) == 0)
                        return (int)i;
        for (size_t i = 0; i < ELEMENTS(last_kind); i++)
                if (strcmp(last_kind[i], kind) == 0)
                        return (int)(ELEMENTS(first_kind) + 1 + i);
        return (int)ELEMENTS(first_kind);
}

void dependent_done(struct dependent *dependent)
{
        free(dependent->api_version);
        free(dependent->kind);
        free(dependent->namespace_name);
        free(dependent->name);
        free(dependent->uid);
        free(dependent->before);
        free(dependent->previous);
        free(dependent->kept);
        free(dependent->version);
        free(dependent->shown);
        kube_resource_done(&dependent->resource);
}

void dependent_list_done(struct dependent_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                dependent_done(&list->item[i]);
        free(list->item);
        *list = (struct dependent_list){0};
}

int dependent_list_add(struct dependent_list *list, struct dependent *dependent)
{
        struct dependent *grown = NULL;

        if (dependent->api_version && dependent->kind && dependent->namespace_name && dependent->name)
                grown = reallocarray(list->item, list->count + 1, sizeof(*grown));
        if (!grown) {
                dependent_done(dependent);
                return -ENOMEM;
        }
        dependent->rank = rank_of(dependent->kind);
        list->item = grown;
        list->item[list->count++] = *dependent;
        return 0;
}

static int compare_dependents(const void *a, const void *b)
{
        const struct dependent *first = a, *second = b;

        if (first->rank != second->rank)
                return first->rank < second->rank ? -1 : 1;
        return (first->index > second->index) - (first->index < second->index);
}

static void list_sort(struct dependent_list *list)
{
        if (list->count > 1)
                qsort(list->item, list->count, sizeof(*list->item), compare_dependents);
}

static int decode(struct span value, char **ret)
{
        if (value.start)
                return scan_string(value, ret);
        *ret = strdup("");
        return *ret ? 0 : -ENOMEM;
}

static int add_from_text(struct dependent_list *list, struct span text, size_t index)
{
        struct dependent dependent = {.index = index};
        struct span adopt = {0}, release = {0};
        const struct scan_wanted wanted[] = {
                {DEPENDENT_MANIFEST, &dependent.text}, {"adopt", &adopt}, {"release", &release}};
        struct scan_object object;
        int r = scan_find(text, wanted, ELEMENTS(wanted));

        if (dependent.text.start) {
                dependent.adopt = scan_is_true(adopt);
                dependent.release = scan_is_true(release);
        } else {
                dependent.text = text; /* an object by itself, whatever its members are */
        }
        if (r >= 0)
                r = scan_object(dependent.text.start, dependent.text.size, &object);
        if (r >= 0)
                r = decode(object.api_version, &dependent.api_version);
        if (r >= 0)
                r = decode(object.kind, &dependent.kind);
        if (r >= 0)
                r = decode(object.namespace_name, &dependent.namespace_name);
        if (r >= 0)
                r = decode(object.name, &dependent.name);
        if (r < 0) {
                dependent_done(&dependent);
                return r;
        }
        return dependent_list_add(list, &dependent);
}

int dependent_list_from_answer(struct span array, struct dependent_list *ret)
{
        struct dependent_list list = {0};
        struct scan_walk walk;
        size_t index = 0;
        int r = 0;

        SCAN_ELEMENTS(walk, array) {
                r = add_from_text(&list, walk.value, index++);
                if (r < 0)
                        break;
        }
        r = r < 0 ? r : walk.status;
        if (r < 0) {
                dependent_list_done(&list);
                return r;
        }
        list_sort(&list);
        *ret = list;
        return 0;
}

/* ---- the record */

/* Parses group/version/kind/namespace/name; the core group has no group. 1: it cannot be understood. */
static int add_from_record(struct dependent_list *list, const char *entry, size_t size)
{
        _cleanup_free_ char *copy = strndup(entry, size);
        struct dependent dependent = {.index = list->count};
        char *part[3];

        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTS(part); i++) {
                part[i] = strrchr(copy, '/');
                if (!part[i])
                        return 1;
                *part[i]++ = '\0';
        }
        if (!dependent_is_name(part[0]) || (part[1][0] && !dependent_is_name(part[1])) ||
            !dependent_is_name(part[2]) || !dependent_is_api_version(copy))
                return 1;
        dependent.api_version = TAKE_PTR(copy);
        dependent.kind = strdup(part[2]);
        dependent.namespace_name = strdup(part[1]);
        dependent.name = strdup(part[0]);
        return dependent_list_add(list, &dependent);
}

int dependent_list_from_record(const char *record, struct dependent_list *ret)
{
        struct dependent_list list = {0};
        int r = 0;

        while (*record && r >= 0 && list.count < 2 * DEPENDENTS_MAX) {
                size_t size = strcspn(record, ",");

                if (size > 0)
                        r = add_from_record(&list, record, size);
                record += size;
                record += *record == ',';
        }
        if (r < 0) {
                dependent_list_done(&list);
                return r;
        }
        list_sort(&list);
        *ret = list;
        return 0;
}

void dependent_record_add(struct text *record, const struct dependent *dependent)
{
        text_printf(record, "%s%s/%s/%s/%s", record->size > 0 ? "," : "", dependent->api_version,
                    dependent->kind, dependent->namespace_name, dependent->name);
}

static bool list_has_word(const struct text *list, const char *word)
{
        size_t size = strlen(word);
        const char *found = list->data;

        while (found && (found = strstr(found, word))) {
                if ((found == list->data || found[-1] == ',') && (found[size] == ',' || !found[size]))
                        return true;
                found += size;
        }
        return false;
}

void dependent_group_kinds_add(struct text *list, const struct dependent *dependent)
{
        size_t size = api_group_size(dependent->api_version);
        char word[512];

        snprintf(word, sizeof(word), "%s%s%.*s", dependent->kind, size > 0 ? "." : "", (int)size,
                 dependent->api_version);
        if (!list_has_word(list, word))
                text_printf(list, "%s%s", list->size > 0 ? "," : "", word);
}

bool dependent_is_same_kind(const struct dependent *a, const struct dependent *b)
{
        return strcmp(a->kind, b->kind) == 0 && is_same_api_group(a->api_version, b->api_version);
}

bool dependent_is_same(const struct dependent *a, const struct dependent *b)
{
        return strcmp(a->name, b->name) == 0 && strcmp(a->namespace_name, b->namespace_name) == 0 &&
               dependent_is_same_kind(a, b);
}

struct dependent *dependent_list_find(const struct dependent_list *list, const struct dependent *dependent)
{
        for (size_t i = 0; i < list->count; i++)
                if (dependent_is_same(&list->item[i], dependent))
                        return &list->item[i];
        return NULL;
}

bool dependent_list_has(const struct dependent_list *list, const struct dependent *dependent)
{
        return dependent_list_find(list, dependent) != NULL;
}

int dependent_list_copy(const struct dependent *dependent, struct dependent_list *list)
{
        struct dependent copy = {.index = list->count};

        if (dependent_list_has(list, dependent))
                return 0;
        copy.api_version = strdup(dependent->api_version);
        copy.kind = strdup(dependent->kind);
        copy.namespace_name = strdup(dependent->namespace_name);
        copy.name = strdup(dependent->name);
        return dependent_list_add(list, &copy);
}

int dependent_set_uid(struct dependent *dependent, struct span uid)
{
        free(dependent->uid);
        dependent->uid = NULL;
        return scan_string(uid, &dependent->uid);
}

/* ---- the owner */

static void base64url(const uint8_t *byte, size_t size, char *out)
{
        static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        unsigned bits = 0;
        uint32_t value = 0;

        for (size_t i = 0; i < size; i++) {
                value = value << 8 | byte[i];
                for (bits += 8; bits >= 6; bits -= 6)
                        *out++ = digit[value >> (bits - 6) & 63];
        }
        if (bits > 0)
                *out++ = digit[value << (6 - bits) & 63];
        *out = '\0';
}

int dependent_owner_init(struct dependent_owner *owner, const char *api_version, const char *kind,
                         const char *uid, const char *key)
{
        struct dependent_owner new = {.api_version = api_version, .kind = kind, .uid = uid};
        _cleanup_text_ struct text text = TEXT_EMPTY;
        uint8_t sum[SHA256_SIZE];
        char digits[48];
        int r = kube_key_split(key, &new.namespace_name, &new.name);

        if (r < 0)
                return r;
        text_printf(&text, "%s.%s.%s.%.*s", new.name, new.namespace_name, kind,
                    (int)api_group_size(api_version), api_version);
        if (text.failed) {
                dependent_owner_done(&new);
                return -ENOMEM;
        }
        sha256(text.data, text.size, sum);
        base64url(sum, sizeof(sum), digits);
        snprintf(new.set, sizeof(new.set), "applyset-%s-v1", digits);
        *owner = new;
        return 0;
}

void dependent_owner_done(struct dependent_owner *owner)
{
        free(owner->namespace_name);
        free(owner->name);
        *owner = (struct dependent_owner){0};
}

bool dependent_may_refer(const struct dependent_owner *owner, const struct dependent *dependent)
{
        return !owner->namespace_name[0] || strcmp(owner->namespace_name, dependent->namespace_name) == 0;
}

/* ---- the body */

static void write_reference(const struct dependent_owner *owner, struct text *out)
{
        text_json(
                out,
                "\"ownerReferences\":[{\"apiVersion\":?,\"kind\":?,\"name\":?,\"uid\":?,\"controller\":true,\"blockOwnerDeletion\":true}]",
                owner->api_version, owner->kind, owner->name, owner->uid);
}

/* Adds a member to the dependent's `map`, which may be missing. (metadata is never empty, so a comma may
 * follow.) */
static void write_member(const char *map, struct span there, const char *key, const char *value,
                         const char **from, struct text *out)
{
        if (there.start) {
                text_append(out, *from, (size_t)(there.start + 1 - *from));
                *from = there.start + 1;
        } else {
                text_printf(out, "\"%s\":{", map);
        }
        text_json(out, "?:?", key, value);
        text_append_string(out, !there.start ? "}," : scan_is_empty(there) ? "" : ",");
}

/* Adds members in the order in which their maps come in the text; missing maps come first. */
static void write_members(const struct dependent_owner *owner, const struct dependent *dependent,
                          const struct scan_object *object, const char **from, struct text *out)
{
        _cleanup_text_ struct text mark = TEXT_EMPTY;
        bool annotation_first = !object->annotations.start ||
                                (object->labels.start && object->annotations.start < object->labels.start);
        char key[300];

        snprintf(key, sizeof(key), "%s/%s", owner->operator_name,
                 dependent->adopted ? ADOPTED_NAME : MADE_NAME);
        ownership_mark(owner, dependent, &mark);
        out->failed = out->failed || mark.failed;
        if (out->failed)
                return;
        if (annotation_first)
                write_member("annotations", object->annotations, key, mark.data, from, out);
        write_member("labels", object->labels, DEPENDENT_SET_LABEL, owner->set, from, out);
        if (!annotation_first)
                write_member("annotations", object->annotations, key, mark.data, from, out);
}

/* The text as the handler wrote it; for a Secret, stringData becomes data, in `secret`. */
static int plain_text(const struct dependent *dependent, struct text *secret, struct span *ret)
{
        bool is_secret = strcmp(dependent->kind, "Secret") == 0 && strcmp(dependent->api_version, "v1") == 0;
        int r = is_secret ? secret_data_body(dependent->text, secret) : 0;

        *ret = r > 0 ? (struct span){secret->data, secret->size} : dependent->text;
        return r;
}

int dependent_body_to_patch(const struct dependent *dependent, struct text *out)
{
        _cleanup_text_ struct text secret = TEXT_EMPTY;
        struct span text;
        int r = plain_text(dependent, &secret, &text);

        return r < 0 ? r : text_append(out, text.start, text.size);
}

int dependent_body(const struct dependent_owner *owner, const struct dependent *dependent, struct text *out)
{
        _cleanup_text_ struct text secret = TEXT_EMPTY;
        struct span text;
        int r = plain_text(dependent, &secret, &text);
        const char *from = text.start, *end = from + text.size;
        struct scan_object object;

        if (r >= 0)
                r = scan_object(from, text.size, &object);
        if (r < 0)
                return r;
        text_append(out, from, (size_t)(object.metadata.start + 1 - from));
        from = object.metadata.start + 1;
        /* The garbage collector deletes what refers to the object. */
        if (dependent_may_refer(owner, dependent) && !dependent->adopted) {
                write_reference(owner, out);
                text_append_string(out, ",");
        }
        write_members(owner, dependent, &object, &from, out);
        text_append(out, from, (size_t)(end - from));
        return out->failed ? -ENOMEM : 0;
}

void dependent_marks_off(const struct dependent_owner *owner, const char *keep, struct text *out)
{
        static const char *const mark[] = {MADE_NAME, ADOPTED_NAME};
        const char *list = owner->former_names ? owner->former_names : "";
        const char *comma = "";
        char name[200], key[300];

        snprintf(name, sizeof(name), "%s", owner->operator_name);
        do {
                for (size_t i = 0; i < ELEMENTS(mark); i++) {
                        snprintf(key, sizeof(key), "%s/%s", name, mark[i]);
                        if (strcmp(key, keep) == 0)
                                continue;
                        text_append_string(out, comma);
                        text_json(out, "?:null", key);
                        comma = ",";
                }
        } while (bookkeeping_next_word(&list, name, sizeof(name)));
}

int dependent_body_to_mark(const struct dependent_owner *owner, const struct dependent *dependent,
                           struct text *out)
{
        _cleanup_text_ struct text mark = TEXT_EMPTY;
        char key[300];
        int r = 0;

        snprintf(key, sizeof(key), "%s/%s", owner->operator_name,
                 dependent->adopted ? ADOPTED_NAME : MADE_NAME);
        ownership_mark(owner, dependent, &mark);
        if (mark.failed)
                return -ENOMEM;
        text_json(out, "{\"metadata\":{\"uid\":?,\"resourceVersion\":?", dependent->uid, dependent->version);
        text_printf(out, ",\"labels\":{\"" DEPENDENT_SET_LABEL "\":\"%s\"},\"annotations\":{", owner->set);
        dependent_marks_off(owner, key, out);
        text_json(out, ",?:?}", key, mark.data);
        if (dependent->renamed)
                r = managed_fields_rename(dependent->before, owner->former_names, owner->operator_name,
                                          false, out);
        text_append_string(out, "}}");
        return r < 0 ? r : out->failed ? -ENOMEM : 0;
}

static int append_bound(const struct text *body, const char *uid, const char *version, struct text *out)
{
        struct scan_object object;
        int r = scan_object(body->data, body->size, &object);
        size_t place;

        if (r < 0)
                return r;
        place = (size_t)(object.metadata.start + 1 - body->data);
        text_append(out, body->data, place);
        if (uid) {
                text_json(out, "\"uid\":?", uid);
        }
        if (version) {
                text_append_string(out, uid ? ",\"resourceVersion\":" : "\"resourceVersion\":");
                text_json_string(out, version);
        }
        text_append_string(out, scan_is_empty(object.metadata) ? "" : ",");
        text_append(out, body->data + place, body->size - place);
        return out->failed ? -ENOMEM : 0;
}

int dependent_body_for(const struct text *body, const char *uid, const char *version, struct text *out)
{
        return append_bound(body, uid, version, out);
}

/* No object has this version: etcd's first write has the second. So an apply of it creates an object, or fails. (After
 * a POST the fields would belong to an entry of operation Update, which no later apply takes anything from.) */
#define VERSION_OF_NOTHING "1"

int dependent_body_to_create(const struct text *body, struct text *out)
{
        return append_bound(body, NULL, VERSION_OF_NOTHING, out);
}

bool dependent_is_owner(const struct dependent *dependent, const struct dependent_owner *owner)
{
        return strcmp(dependent->name, owner->name) == 0 &&
               strcmp(dependent->namespace_name, owner->namespace_name) == 0 &&
               strcmp(dependent->kind, owner->kind) == 0 &&
               is_same_api_group(dependent->api_version, owner->api_version);
}

const char *dependent_key(const struct dependent *dependent, char key[IDENTITY_KEY_MAX + 1])
{
        snprintf(key, IDENTITY_KEY_MAX + 1, "%s%s%s", dependent->namespace_name,
                 dependent->namespace_name[0] ? "/" : "", dependent->name);
        return key;
}

const char *dependent_describe(const struct dependent *dependent, char *buffer, size_t size)
{
        snprintf(buffer, size, "%s %s%s%s", dependent->kind, dependent->namespace_name,
                 dependent->namespace_name[0] ? "/" : "", dependent->name);
        return buffer;
}
