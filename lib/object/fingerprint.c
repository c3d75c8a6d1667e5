/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trigger fingerprint: one pass over the object's bytes, hashing as it descends. The hash of an object
 * is a sum over its members, so their order does not count; an array's is over its elements in order.
 */
#include "object/fingerprint.h"

#include <errno.h>

#include "object/bookkeeping.h"
#include "object/hash.h"
#include "object/scan-value.h"

enum level {
        LEVEL_TOP,
        LEVEL_METADATA,
        LEVEL_FINALIZERS,
        /* Where several watches have the object: */
        LEVEL_LABELS,
        LEVEL_ANNOTATIONS,
        LEVEL_STATUS,
        LEVEL_CONDITIONS,
        LEVEL_INSIDE
};

struct hasher {
        const char *input;
        size_t size, position;
        unsigned depth;
        struct bookkeeping ours;
        bool metadata_only, with_status;
};

struct pair {
        uint64_t first, second;
};

static int hash_value(struct hasher *hasher, enum level level, uint64_t *ret);

static char look_at_byte(struct hasher *hasher)
{
        hasher->position = skip_space(hasher->input, hasher->size, hasher->position);
        return hasher->position < hasher->size ? hasher->input[hasher->position] : '\0';
}

static int take_hashed_value(struct hasher *hasher, struct span *ret)
{
        int r = scan_value(hasher->input + hasher->position, hasher->size - hasher->position, ret);

        if (r < 0)
                return -EBADMSG;
        hasher->position = (size_t)(ret->start - hasher->input) + ret->size;
        return 0;
}

struct name {
        const char *text;
        size_t size;
};

#define NAME(text)                                                                                          \
        {                                                                                                   \
                text, sizeof(text) - 1                                                                      \
        }

/* Whether a watch of the same kind has noted this for itself. */
static bool is_note(const struct hasher *hasher, enum level level, struct span key)
{
        if (level == LEVEL_LABELS)
                return scan_string_equals(key, SET_KEY);
        return level == LEVEL_ANNOTATIONS &&
               (scan_string_equals(key, TOOLING_KEY) || scan_string_equals(key, GROUP_KINDS_KEY) ||
                bookkeeping_is_key(key, hasher->ours.shared, CHILDREN_NAME) ||
                bookkeeping_is_key(key, hasher->ours.shared, PATCHED_NAME));
}

/* Whether the server maintains this member, handlers report it, or a LIST of built-in kinds lacks it. */
static bool is_left_out(const struct hasher *hasher, enum level level, struct span key)
{
        static const struct name top[] = {NAME("status"), NAME("apiVersion"), NAME("kind")};
        static const struct name metadata[] = {NAME("resourceVersion"), NAME("generation"),
                                               NAME("managedFields"), NAME("selfLink"),
                                               NAME("creationTimestamp")};
        const struct name *name = level == LEVEL_TOP ? top : metadata;
        size_t count = level == LEVEL_TOP ? ELEMENTS(top) : level == LEVEL_METADATA ? ELEMENTS(metadata) : 0;

        if (hasher->metadata_only && level == LEVEL_TOP)
                return !scan_string_equals(key, "metadata");
        if (hasher->metadata_only && level == LEVEL_METADATA && scan_string_equals(key, "generation"))
                return false;
        for (size_t i = 0; i < count; i++)
                if (scan_string_is(key, name[i].text, name[i].size))
                        return !(i == 0 && level == LEVEL_TOP && hasher->with_status);
        return is_note(hasher, level, key);
}

static enum level level_below(const struct hasher *hasher, enum level level, struct span key)
{
        if (level == LEVEL_TOP && scan_string_equals(key, "metadata"))
                return LEVEL_METADATA;
        if (level == LEVEL_METADATA && scan_string_equals(key, "finalizers"))
                return LEVEL_FINALIZERS;
        if (hasher->ours.shared[0] == '\0')
                return LEVEL_INSIDE;
        if (level == LEVEL_METADATA && scan_string_equals(key, "labels"))
                return LEVEL_LABELS;
        if (level == LEVEL_METADATA && scan_string_equals(key, "annotations"))
                return LEVEL_ANNOTATIONS;
        if (level == LEVEL_TOP && scan_string_equals(key, "status"))
                return LEVEL_STATUS;
        if (level == LEVEL_STATUS && scan_string_equals(key, "conditions"))
                return LEVEL_CONDITIONS;
        return LEVEL_INSIDE;
}

/* A member that holds nothing but notes of ours counts as missing. */
static uint64_t nothing_of(enum level level, uint64_t otherwise)
{
        return level >= LEVEL_FINALIZERS && level <= LEVEL_CONDITIONS ? 0 : otherwise;
}

static int hash_member(struct hasher *hasher, enum level level, uint64_t *sum)
{
        struct span key;
        struct pair pair;
        int r;

        if (look_at_byte(hasher) != '"' || take_hashed_value(hasher, &key) < 0 ||
            look_at_byte(hasher) != ':')
                return -EBADMSG;
        hasher->position++;
        (void)look_at_byte(hasher);
        if (is_left_out(hasher, level, key)) {
                struct span value;

                return take_hashed_value(hasher, &value);
        }
        r = hash_value(hasher, level_below(hasher, level, key), &pair.second);
        if (r < 0)
                return r;
        if (pair.second == 0)
                return 0;
        pair.first = XXH3_64bits(key.start, key.size);
        *sum += XXH3_64bits(&pair, sizeof(pair));
        return 0;
}

static int hash_members(struct hasher *hasher, enum level level, uint64_t *ret)
{
        const uint64_t nothing = 1;
        uint64_t sum = nothing;

        hasher->position++;
        if (look_at_byte(hasher) == '}') {
                hasher->position++;
                *ret = nothing_of(level, nothing);
                return 0;
        }
        for (;;) {
                int r = hash_member(hasher, level, &sum);
                char c = look_at_byte(hasher);

                if (r < 0 || (c != ',' && c != '}'))
                        return -EBADMSG;
                hasher->position++;
                if (c == '}')
                        break;
        }
        *ret = sum == nothing ? nothing_of(level, nothing) : sum ? sum : 1;
        return 0;
}

static int find_type(struct span key, struct span value, void *userdata)
{
        struct span *type = userdata;

        if (scan_string_equals(key, "type"))
                *type = value;
        return 0;
}

/* A condition that tells how runs of one of the watches go. */
static bool is_told_condition(const struct hasher *hasher)
{
        struct span element, type = {0};

        return scan_value(hasher->input + hasher->position, hasher->size - hasher->position, &element) >=
                       0 &&
               scan_members(element, find_type, &type) >= 0 && type.start &&
               bookkeeping_has_word(hasher->ours.conditions, type);
}

static int hash_element(struct hasher *hasher, enum level level, uint64_t *hash)
{
        struct pair pair = {.first = *hash};
        struct span element;
        int r;

        if (level == LEVEL_FINALIZERS && look_at_byte(hasher) == '"') {
                r = take_hashed_value(hasher, &element);
                if (r < 0 || bookkeeping_has_word(hasher->ours.finalizers, element) ||
                    (hasher->ours.shared[0] &&
                     bookkeeping_is_key(element, hasher->ours.shared, FINALIZER_NAME)))
                        return r;
                pair.second = XXH3_64bits(element.start, element.size);
        } else if (level == LEVEL_CONDITIONS && look_at_byte(hasher) == '{' && is_told_condition(hasher)) {
                return take_hashed_value(hasher, &element);
        } else {
                r = hash_value(hasher, LEVEL_INSIDE, &pair.second);
                if (r < 0)
                        return r;
        }
        *hash = XXH3_64bits(&pair, sizeof(pair));
        return 0;
}

static int hash_elements(struct hasher *hasher, enum level level, uint64_t *ret)
{
        uint64_t hash = nothing_of(level, 2);

        hasher->position++;
        if (look_at_byte(hasher) == ']') {
                hasher->position++;
                *ret = hash;
                return 0;
        }
        for (;;) {
                int r = hash_element(hasher, level, &hash);
                char c = look_at_byte(hasher);

                if (r < 0 || (c != ',' && c != ']'))
                        return -EBADMSG;
                hasher->position++;
                if (c == ']')
                        break;
        }
        *ret = hash;
        return 0;
}

static int hash_value(struct hasher *hasher, enum level level, uint64_t *ret)
{
        char c = look_at_byte(hasher);
        struct span value;
        int r;

        /* Deeper levels are hashed as they are written: servers sort members and add no white space. */
        if ((c != '{' && c != '[') || hasher->depth + 1 >= SCAN_DEPTH_MAX) {
                r = take_hashed_value(hasher, &value);
                if (r >= 0)
                        *ret = XXH3_64bits(value.start, value.size) | 1;
                return r;
        }
        hasher->depth++;
        r = c == '{' ? hash_members(hasher, level, ret) : hash_elements(hasher, level, ret);
        hasher->depth--;
        return r;
}

static int hash_version(const char *json, size_t size, uint64_t *ret)
{
        struct scan_object object;
        struct pair pair;
        int r = scan_object(json, size, &object);

        if (r < 0)
                return r;
        pair.first = XXH3_64bits(object.uid.start ? object.uid.start : "", object.uid.size);
        pair.second = XXH3_64bits(object.resource_version.start ? object.resource_version.start : "",
                                  object.resource_version.size);
        *ret = XXH3_64bits(&pair, sizeof(pair));
        return 0;
}

static int fingerprint(enum trigger trigger, struct hasher *hasher, const struct bookkeeping *ours,
                       uint64_t *ret_fingerprint)
{
        uint64_t hash = 0;
        int r;

        hasher->ours = (struct bookkeeping){
                .finalizers = ours && ours->finalizers ? ours->finalizers : "",
                .shared = ours && ours->shared ? ours->shared : "",
                .conditions = ours && ours->conditions ? ours->conditions : "",
        };
        hasher->with_status = trigger == TRIGGER_ANY;
        if (trigger == TRIGGER_ANY && (hasher->metadata_only || !hasher->ours.shared[0]))
                r = hash_version(hasher->input, hasher->size, &hash);
        else
                r = look_at_byte(hasher) == '{' ? hash_value(hasher, LEVEL_TOP, &hash) : -EBADMSG;
        if (r < 0)
                return r;
        *ret_fingerprint = hash ? hash : 1;
        return 0;
}

int fingerprint_object(enum trigger trigger, const struct bookkeeping *ours, const char *json, size_t size,
                       uint64_t *ret_fingerprint)
{
        struct hasher hasher = {.input = json, .size = size};

        return fingerprint(trigger, &hasher, ours, ret_fingerprint);
}

int fingerprint_metadata(enum trigger trigger, const struct bookkeeping *ours, const char *json, size_t size,
                         uint64_t *ret_fingerprint)
{
        struct hasher hasher = {.input = json, .size = size, .metadata_only = true};

        return fingerprint(trigger, &hasher, ours, ret_fingerprint);
}

bool fingerprint_is_partial(const char *json, size_t size)
{
        struct scan_object object;

        return scan_object(json, size, &object) >= 0 && object.kind.start &&
               scan_string_equals(object.kind, "PartialObjectMetadata");
}
