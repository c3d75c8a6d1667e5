/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trigger fingerprint: one pass over the object's bytes, hashing as it descends. Each value that has nothing below it is
 * hashed with its place: all that it is in, and its key or its index there. The fingerprint is the hash of the sum of these
 * hashes, so the order of members does not count.
 *
 * The sum is safe, as nobody who writes objects knows a term of it (keyed-hash.h). No place is twice in an object that a server
 * has written, so two objects that differ have a term at least that only one of them has. The difference of their sums is then
 * as random as this term, and 0 once in 2^128. To find terms with a chosen sum (Wagner's generalized birthday, lattices), one
 * must be able to compute them.
 */
#include "object/fingerprint.h"

#include <errno.h>

#include "base/text.h"
#include "object/keyed-hash.h"
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
        bool metadata_only, with_status, with_generation;
        struct siphash_sum sum;
        size_t count; /* of what is in the sum */
};

/* The place of a value in the object. */
struct place {
        const struct siphash *above; /* the object or array */
        struct span key;             /* of a member; else empty */
        uint64_t index;              /* of an element, among those that count */
};

static int hash_value(struct hasher *hasher, enum level level, const struct place *place);

static char look_at_byte(struct hasher *hasher)
{
        if (hasher->position < hasher->size && hasher->input[hasher->position] > ' ')
                return hasher->input[hasher->position]; /* as servers write */
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
                bookkeeping_is_key(key, hasher->ours.shared, PATCHED_NAME) ||
                bookkeeping_is_key(key, hasher->ours.shared, EPOCH_NAME));
}

/* Whether the server maintains this member, handlers report it, or a LIST of built-in kinds lacks it. */
static bool is_out_of_essence(const struct hasher *hasher, enum level level, struct span key)
{
        static const struct name top[] = {NAME("status"), NAME("apiVersion"), NAME("kind")};
        static const struct name metadata[] = {NAME("resourceVersion"), NAME("generation"),
                                               NAME("managedFields"), NAME("selfLink"),
                                               NAME("creationTimestamp")};
        const struct name *name = level == LEVEL_TOP ? top : metadata;
        size_t count = level == LEVEL_TOP ? ELEMENTS(top) : level == LEVEL_METADATA ? ELEMENTS(metadata) : 0;

        if (hasher->metadata_only && level == LEVEL_TOP)
                return !scan_string_equals(key, "metadata");
        if (hasher->with_generation && level == LEVEL_METADATA && scan_string_equals(key, "generation"))
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

/* Objects and arrays that hold nothing but notes of ours count as missing there. */
static bool holds_notes(enum level level)
{
        return level >= LEVEL_FINALIZERS && level <= LEVEL_CONDITIONS;
}

static void add_to_sum(struct hasher *hasher, struct siphash *hash)
{
        struct siphash_sum sum = siphash_finish(hash);

        hasher->sum.low += sum.low;
        hasher->sum.high += sum.high;
        hasher->count++;
}

/* The same bytes as without the white space. */
static int hash_spaced(const struct place *place, const char *text, size_t size, struct siphash *hash)
{
        _cleanup_text_ struct text joined = TEXT_EMPTY;

        text_append(&joined, place->key.start, place->key.size);
        text_append(&joined, ":", 1);
        text_append(&joined, text, size);
        if (joined.failed)
                return -ENOMEM;
        keyed_hash_add(hash, joined.data, joined.size);
        return 0;
}

/* The value with its place. Of an object or array, text is its first byte. */
static int hash_at(const struct place *place, const char *text, size_t size, struct siphash *ret)
{
        *ret = *place->above;
        if (place->key.start && place->key.start + place->key.size + 1 != text)
                return hash_spaced(place, text, size, ret);
        if (place->key.start) {
                keyed_hash_add(ret, place->key.start, place->key.size + 1 + size);
        } else {
                siphash_word(ret, place->index);
                keyed_hash_add(ret, text, size);
        }
        return 0;
}

static int hash_member(struct hasher *hasher, enum level level, const struct siphash *above)
{
        struct place place = {.above = above};
        struct span value;

        if (look_at_byte(hasher) != '"' || take_hashed_value(hasher, &place.key) < 0 ||
            look_at_byte(hasher) != ':')
                return -EBADMSG;
        hasher->position++;
        (void)look_at_byte(hasher);
        if (is_out_of_essence(hasher, level, place.key))
                return take_hashed_value(hasher, &value);
        return hash_value(hasher, level_below(hasher, level, place.key), &place);
}

static int hash_members(struct hasher *hasher, enum level level, const struct siphash *above)
{
        hasher->position++;
        if (look_at_byte(hasher) == '}') {
                hasher->position++;
                return 0;
        }
        for (;;) {
                int r = hash_member(hasher, level, above);
                char c = look_at_byte(hasher);

                if (r < 0 || (c != ',' && c != '}'))
                        return r == -ENOMEM ? r : -EBADMSG;
                hasher->position++;
                if (c == '}')
                        return 0;
        }
}

/* Whether this is the readyCondition of one of the watches. */
static bool is_told_condition(const struct hasher *hasher)
{
        struct span element, type = {0};

        return scan_value(hasher->input + hasher->position, hasher->size - hasher->position, &element) >=
                       0 &&
               scan_find(element, &(struct scan_wanted){"type", &type}, 1) >= 0 && type.start &&
               bookkeeping_has_word(hasher->ours.conditions, type);
}

/* Whether a watch of ours has noted this element for itself. */
static bool is_noted_element(const struct hasher *hasher, enum level level)
{
        struct span element;

        if (level == LEVEL_CONDITIONS)
                return hasher->input[hasher->position] == '{' && is_told_condition(hasher);
        return level == LEVEL_FINALIZERS && hasher->input[hasher->position] == '"' &&
               scan_value(hasher->input + hasher->position, hasher->size - hasher->position, &element) >=
                       0 &&
               (bookkeeping_has_word(hasher->ours.finalizers, element) ||
                (hasher->ours.shared[0] &&
                 bookkeeping_is_key(element, hasher->ours.shared, FINALIZER_NAME)));
}

static int hash_elements(struct hasher *hasher, enum level level, const struct siphash *above)
{
        struct place place = {.above = above};
        struct span element;

        hasher->position++;
        if (look_at_byte(hasher) == ']') {
                hasher->position++;
                return 0;
        }
        for (;;) {
                bool is_noted = look_at_byte(hasher) && is_noted_element(hasher, level);
                int r = is_noted ? take_hashed_value(hasher, &element)
                                 : hash_value(hasher, LEVEL_INSIDE, &place);
                char c = look_at_byte(hasher);

                if (r < 0 || (c != ',' && c != ']'))
                        return r == -ENOMEM ? r : -EBADMSG;
                place.index += !is_noted;
                hasher->position++;
                if (c == ']')
                        return 0;
        }
}

static int hash_value(struct hasher *hasher, enum level level, const struct place *place)
{
        char c = look_at_byte(hasher);
        size_t count = hasher->count;
        struct siphash hash;
        struct span value;
        int r;

        /* Deeper levels are hashed as they are written: servers sort members and add no white space. */
        if ((c != '{' && c != '[') || hasher->depth + 1 >= SCAN_DEPTH_MAX) {
                r = take_hashed_value(hasher, &value);
                if (r >= 0)
                        r = hash_at(place, value.start, value.size, &hash);
                if (r >= 0)
                        add_to_sum(hasher, &hash);
                return r;
        }
        r = hash_at(place, hasher->input + hasher->position, 1, &hash);
        if (r < 0)
                return r;
        hasher->depth++;
        r = c == '{' ? hash_members(hasher, level, &hash) : hash_elements(hasher, level, &hash);
        hasher->depth--;
        if (r >= 0 && hasher->count == count && !holds_notes(level))
                add_to_sum(hasher, &hash);
        return r;
}

static int hash_version(const char *json, size_t size, uint64_t *ret)
{
        struct scan_object object;
        struct siphash hash;
        int r = scan_object(json, size, &object);

        if (r < 0)
                return r;
        hash = keyed_hash_of(HASHED_VERSION);
        keyed_hash_add(&hash, object.uid.start, object.uid.size);
        *ret = keyed_hash_end(hash, object.resource_version.start, object.resource_version.size);
        return 0;
}

static int hash_content(struct hasher *hasher, uint64_t *ret)
{
        const struct siphash top = keyed_hash_of(HASHED_OBJECT);
        int r = -EBADMSG;

        if (look_at_byte(hasher) == '{')
                r = hash_members(hasher, LEVEL_TOP, &top);
        if (r >= 0)
                *ret = keyed_hash_end(keyed_hash_of(HASHED_OBJECT_SUM), &hasher->sum, sizeof(hasher->sum));
        return r;
}

static int finish_fingerprint(enum trigger trigger, struct hasher *hasher, const struct bookkeeping *ours,
                              uint64_t *ret_fingerprint)
{
        hasher->ours = (struct bookkeeping){
                .finalizers = ours && ours->finalizers ? ours->finalizers : "",
                .shared = ours && ours->shared ? ours->shared : "",
                .conditions = ours && ours->conditions ? ours->conditions : "",
        };
        hasher->with_status = trigger == TRIGGER_ANY;
        hasher->with_generation = trigger == TRIGGER_GENERATION || hasher->metadata_only;
        if (trigger == TRIGGER_ANY && (hasher->metadata_only || !hasher->ours.shared[0]))
                return hash_version(hasher->input, hasher->size, ret_fingerprint);
        return hash_content(hasher, ret_fingerprint);
}

int fingerprint_object(enum trigger trigger, const struct bookkeeping *ours, const char *json, size_t size,
                       uint64_t *ret_fingerprint)
{
        struct hasher hasher = {.input = json, .size = size};

        return finish_fingerprint(trigger, &hasher, ours, ret_fingerprint);
}

int fingerprint_metadata(enum trigger trigger, const struct bookkeeping *ours, const char *json, size_t size,
                         uint64_t *ret_fingerprint)
{
        struct hasher hasher = {.input = json, .size = size, .metadata_only = true};

        return finish_fingerprint(trigger, &hasher, ours, ret_fingerprint);
}

bool fingerprint_is_partial(const char *json, size_t size)
{
        struct scan_object object;

        return scan_object(json, size, &object) >= 0 && object.kind.start &&
               scan_string_equals(object.kind, "PartialObjectMetadata");
}
