/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/write/merge.h"

#include <errno.h>
#include <string.h>

#include "json/json.h"

/* Larger integers have no exact double. */
#define EXACT_MAX 9007199254740992.0
/* cJSON looks members up one by one: wider objects than this would hold up the loop. */
#define WIDTH_MAX 2000

static enum merge_effect worse(enum merge_effect a, enum merge_effect b)
{
        return a > b ? a : b;
}

static bool is_too_wide(const cJSON *a, const cJSON *b)
{
        return cJSON_GetArraySize(a) > WIDTH_MAX && cJSON_GetArraySize(b) > WIDTH_MAX;
}

/* ---- equality */

static enum merge_effect merge_effect_of(const cJSON *a, const cJSON *b);

/* The same number may be written in several ways; the server has doubles and 64-bit integers. */
static enum merge_effect compare_numbers(const cJSON *a, const cJSON *b)
{
        if (a->valuedouble < b->valuedouble || a->valuedouble > b->valuedouble)
                return MERGE_CHANGES;
        if (cJSON_IsRaw(a) && cJSON_IsRaw(b) && strcmp(a->valuestring, b->valuestring) == 0)
                return MERGE_SAME;
        return a->valuedouble < EXACT_MAX && a->valuedouble > -EXACT_MAX ? MERGE_SAME : MERGE_UNSURE;
}

static enum merge_effect compare_arrays(const cJSON *a, const cJSON *b)
{
        enum merge_effect effect = MERGE_SAME;
        const cJSON *other = b->child, *item;

        cJSON_ArrayForEach(item, a)
        {
                if (!other)
                        return MERGE_CHANGES;
                effect = worse(effect, merge_effect_of(item, other));
                if (effect == MERGE_CHANGES)
                        return effect;
                other = other->next;
        }
        return other ? MERGE_CHANGES : effect;
}

static enum merge_effect compare_objects(const cJSON *a, const cJSON *b)
{
        enum merge_effect effect = MERGE_SAME;
        const cJSON *item;

        if (cJSON_GetArraySize(a) != cJSON_GetArraySize(b))
                return MERGE_CHANGES;
        if (is_too_wide(a, b))
                return MERGE_UNSURE;
        cJSON_ArrayForEach(item, a)
        {
                const cJSON *other = json_member(b, item->string);

                effect = worse(effect, other ? merge_effect_of(item, other) : MERGE_CHANGES);
                if (effect == MERGE_CHANGES)
                        break;
        }
        return effect;
}

static enum merge_effect merge_effect_of(const cJSON *a, const cJSON *b)
{
        if (json_is_number(a) && json_is_number(b))
                return compare_numbers(a, b);
        if ((a->type & 0xff) != (b->type & 0xff))
                return MERGE_CHANGES;
        if (cJSON_IsString(a) || cJSON_IsRaw(a))
                return strcmp(a->valuestring, b->valuestring) == 0 ? MERGE_SAME : MERGE_CHANGES;
        if (cJSON_IsArray(a))
                return compare_arrays(a, b);
        return cJSON_IsObject(a) ? compare_objects(a, b) : MERGE_SAME;
}

/* ---- the effect */

enum merge_effect merge_effect(const cJSON *target, const cJSON *patch)
{
        enum merge_effect effect = MERGE_SAME;
        const cJSON *member;

        if (!target)
                return MERGE_CHANGES;
        if (!cJSON_IsObject(patch))
                return merge_effect_of(target, patch);
        if (!cJSON_IsObject(target))
                return MERGE_CHANGES;
        if (is_too_wide(target, patch))
                return MERGE_UNSURE;
        cJSON_ArrayForEach(member, patch)
        {
                const cJSON *old = json_member(target, member->string);

                if (!cJSON_IsNull(member))
                        effect = worse(effect, merge_effect(old, member));
                else if (old)
                        effect = MERGE_CHANGES;
                if (effect == MERGE_CHANGES)
                        break;
        }
        return effect;
}

/* Only the compared part is parsed into a tree, and no tree outlives this. */
enum merge_effect merge_effect_on(const char *json, const char *member, struct span patch)
{
        _cleanup_json_ cJSON *tree = NULL, *changes = NULL;
        struct span found = {0};
        struct span target = {json, strlen(json)};

        if (member && scan_find(target, &(struct scan_wanted){member, &found}, 1) < 0)
                return MERGE_CHANGES;
        if (member) /* no status is the same as an empty one */
                target = found.start ? found : (struct span){"{}", 2};
        changes = json_parse_bounded(patch.start, patch.size);
        tree = changes ? json_parse_served(target.start, target.size) : NULL;
        return tree ? merge_effect(tree, changes) : MERGE_UNSURE;
}

/* ---- the body */

/* Appends `object` with `members` in front of its own. */
static void put_into(struct span object, const struct text *members, struct text *out)
{
        const char *rest = object.start + 1;
        size_t size = object.size - 1;

        while (size > 1 && (*rest == ' ' || *rest == '\t' || *rest == '\r' || *rest == '\n')) {
                rest++;
                size--;
        }
        text_append_string(out, "{");
        text_append(out, members->data, members->size);
        text_append_string(out, *rest == '}' ? "" : ",");
        text_append(out, rest, size);
}

static int lock(struct span patch, const char *uid, const char *version, struct text *out)
{
        _cleanup_text_ struct text member = TEXT_EMPTY;
        struct scan_object object;
        struct span metadata;
        int r = scan_object(patch.start, patch.size, &object);

        if (r < 0)
                return r;
        metadata = object.metadata;
        if (!metadata.start)
                text_append_string(&member, "\"metadata\":{");
        text_json(&member, "\"uid\":?,\"resourceVersion\":?", uid, version);
        if (!metadata.start) {
                r = text_append_string(&member, "}");
                put_into(object.whole, &member, out);
                return r;
        }
        text_append(out, patch.start, (size_t)(metadata.start - patch.start));
        put_into(metadata, &member, out);
        metadata.start += metadata.size;
        text_append(out, metadata.start, patch.size - (size_t)(metadata.start - patch.start));
        return member.failed ? -ENOMEM : 0;
}

int merge_body(const char *member, struct span patch, const char *uid, const char *version, struct text *out)
{
        _cleanup_text_ struct text whole = TEXT_EMPTY;
        int r;

        if (member) {
                text_json(&whole, "{?:", member);
        }
        text_append(&whole, patch.start, patch.size);
        text_append_string(&whole, member ? "}" : "");
        if (whole.failed)
                return -ENOMEM;
        r = lock((struct span){whole.data, whole.size}, uid, version, out);
        return r < 0 ? r : out->failed ? -ENOMEM : 0;
}
