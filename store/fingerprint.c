/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trigger fingerprint: one pass over the object's bytes, hashing as it descends. The hash of an object
 * is a sum over its members, so their order does not count; an array's is over its elements in order.
 */
#include "store/fingerprint.h"

#include <errno.h>
#include <string.h>

#include "store/hash.h"
#include "store/scan-value.h"

enum level { LEVEL_TOP, LEVEL_METADATA, LEVEL_FINALIZERS, LEVEL_INSIDE };

struct hasher {
        const char *input;
        size_t size, position;
        unsigned depth;
        const char *finalizer;
        bool metadata_only;
};

struct pair {
        uint64_t first, second;
};

static int hash_value(struct hasher *hasher, enum level level, uint64_t *ret);

static char look(struct hasher *hasher)
{
        hasher->position = skip_space(hasher->input, hasher->size, hasher->position);
        return hasher->position < hasher->size ? hasher->input[hasher->position] : '\0';
}

static int take_value(struct hasher *hasher, struct span *ret)
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

/* What the server maintains, what handlers report, and what a LIST of built-in kinds leaves out. */
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
                        return true;
        return false;
}

static enum level level_below(enum level level, struct span key)
{
        if (level == LEVEL_TOP && scan_string_equals(key, "metadata"))
                return LEVEL_METADATA;
        if (level == LEVEL_METADATA && scan_string_equals(key, "finalizers"))
                return LEVEL_FINALIZERS;
        return LEVEL_INSIDE;
}

static int hash_member(struct hasher *hasher, enum level level, uint64_t *sum)
{
        struct span key;
        struct pair pair;
        int r;

        if (look(hasher) != '"' || take_value(hasher, &key) < 0 || look(hasher) != ':')
                return -EBADMSG;
        hasher->position++;
        (void)look(hasher);
        if (is_left_out(hasher, level, key)) {
                struct span value;

                return take_value(hasher, &value);
        }
        r = hash_value(hasher, level_below(level, key), &pair.second);
        if (r < 0)
                return r;
        if (pair.second == 0)
                return 0; /* finalizers with none but ours: as if there were none */
        pair.first = XXH3_64bits(key.start, key.size);
        *sum += XXH3_64bits(&pair, sizeof(pair));
        return 0;
}

static int hash_members(struct hasher *hasher, enum level level, uint64_t *ret)
{
        uint64_t sum = 1;

        hasher->position++;
        if (look(hasher) == '}') {
                hasher->position++;
                *ret = sum;
                return 0;
        }
        for (;;) {
                int r = hash_member(hasher, level, &sum);
                char c = look(hasher);

                if (r < 0 || (c != ',' && c != '}'))
                        return -EBADMSG;
                hasher->position++;
                if (c == '}')
                        break;
        }
        *ret = sum ? sum : 1;
        return 0;
}

static int hash_element(struct hasher *hasher, enum level level, uint64_t *hash)
{
        struct pair pair = {.first = *hash};
        struct span element;
        int r;

        if (level == LEVEL_FINALIZERS && look(hasher) == '"') {
                r = take_value(hasher, &element);
                if (r < 0 || scan_string_equals(element, hasher->finalizer))
                        return r;
                pair.second = XXH3_64bits(element.start, element.size);
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
        uint64_t hash = level == LEVEL_FINALIZERS ? 0 : 2;

        hasher->position++;
        if (look(hasher) == ']') {
                hasher->position++;
                *ret = hash;
                return 0;
        }
        for (;;) {
                int r = hash_element(hasher, level, &hash);
                char c = look(hasher);

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
        char c = look(hasher);
        struct span value;
        int r;

        /* Deeper levels are hashed as they are written: servers sort members and add no white space. */
        if ((c != '{' && c != '[') || hasher->depth + 1 >= SCAN_DEPTH_MAX) {
                r = take_value(hasher, &value);
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

static int fingerprint(enum trigger trigger, struct hasher *hasher, uint64_t *ret_fingerprint)
{
        uint64_t hash = 0;
        int r;

        if (trigger == TRIGGER_ANY)
                r = hash_version(hasher->input, hasher->size, &hash);
        else
                r = look(hasher) == '{' ? hash_value(hasher, LEVEL_TOP, &hash) : -EBADMSG;
        if (r < 0)
                return r;
        *ret_fingerprint = hash ? hash : 1;
        return 0;
}

int fingerprint_object(enum trigger trigger, const char *finalizer, const char *json, size_t size,
                       uint64_t *ret_fingerprint)
{
        struct hasher hasher = {.input = json, .size = size, .finalizer = finalizer ? finalizer : ""};

        return fingerprint(trigger, &hasher, ret_fingerprint);
}

int fingerprint_metadata(enum trigger trigger, const char *finalizer, const char *json, size_t size,
                         uint64_t *ret_fingerprint)
{
        struct hasher hasher = {
                .input = json,
                .size = size,
                .finalizer = finalizer ? finalizer : "",
                .metadata_only = true,
        };

        return fingerprint(trigger, &hasher, ret_fingerprint);
}

bool fingerprint_is_partial(const char *json, size_t size)
{
        struct scan_object object;

        return scan_object(json, size, &object) >= 0 && object.kind.start &&
               scan_string_equals(object.kind, "PartialObjectMetadata");
}
