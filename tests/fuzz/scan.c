/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scanner against cJSON: of what both accept, the metadata and the items must be the same; a LIST cut in
 * two anywhere must give the same items as in one piece; and no input may do harm.
 */
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "object/fingerprint.h"
#include "object/identity.h"
#include "object/keyed-hash.h"
#include "object/scan-list.h"
#include "object/scan.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The last of duplicate members wins here and in Go; cJSON finds the first. */
static const cJSON *last_member(const cJSON *object, const char *name)
{
        const cJSON *member, *found = NULL;

        cJSON_ArrayForEach(member, object) if (strcmp(member->string, name) == 0) found = member;
        return found;
}

static bool has_odd_strings(const char *input, size_t size)
{
        /* Surrogates, and NUL in a text (which the scanner refuses), are where the two may differ and both
         * be right. */
        return memmem(input, size, "\\u", 2) != NULL || memchr(input, '\0', size) != NULL;
}

static void compare_text(const cJSON *metadata, const char *name, struct span span)
{
        const cJSON *expected = last_member(metadata, name);
        _cleanup_free_ char *text = NULL;

        if (!cJSON_IsString(expected))
                return;
        if (!span.start || scan_string(span, &text) < 0 || strcmp(text, expected->valuestring) != 0)
                abort();
}

/* The keys and UIDs that are read keep to their bounds, whatever the input. */
static void check_bounds(const char *input, size_t size)
{
        struct identity identity;
        struct owner owner;

        if (identity_read(input, size, true, &identity) >= 0 && !identity_fits(identity.key, identity.uid))
                abort();
        if (owner_find(input, size, "example.com/v1", "Widget", &owner) < 0 || !owner.key[0])
                return;
        if (!identity_fits(owner.key, owner.uid) || !owner.uid[0] ||
            strchr(owner.key, '/') != strrchr(owner.key, '/'))
                abort();
}

static void compare_object(const char *input, size_t size)
{
        struct scan_object object;
        const cJSON *metadata;
        const struct bookkeeping ours = {"example.com/finalizer", "example.com", "Ready"};
        uint64_t fingerprint;
        cJSON *tree;

        (void)keyed_hash_begin("0123456789abcdef", SIPHASH_KEY_SIZE);
        (void)scan_identity(input, size, &object);
        check_bounds(input, size);
        if (scan_object(input, size, &object) < 0)
                return;
        (void)fingerprint_object(TRIGGER_ESSENCE, &ours, input, size, &fingerprint);
        (void)fingerprint_object(TRIGGER_ANY, &ours, input, size, &fingerprint);
        tree = cJSON_ParseWithLengthOpts(input, size, NULL, false);
        metadata = cJSON_IsObject(tree) ? last_member(tree, "metadata") : NULL;
        if (cJSON_IsObject(metadata) && !has_odd_strings(input, size)) {
                compare_text(metadata, "name", object.name);
                compare_text(metadata, "uid", object.uid);
                compare_text(metadata, "resourceVersion", object.resource_version);
        }
        cJSON_Delete(tree);
}

/* A document that json_read() accepts is the same when it is printed and read again. cJSON accepts more. */
static void compare_tree(const char *input, size_t size)
{
        cJSON *tree = json_parse(input, size), *again, *other;
        char *printed = tree ? cJSON_PrintUnformatted(tree) : NULL;

        if (!tree)
                return;
        again = printed ? json_parse(printed, strlen(printed)) : NULL;
        if (!again || !json_equal(tree, again))
                abort();
        other = has_odd_strings(input, size) ? NULL : cJSON_ParseWithLengthOpts(input, size, NULL, false);
        if (other && (other->type & 0xff) != (tree->type & 0xff) && !json_is_number(tree))
                abort();
        cJSON_Delete(other);
        cJSON_Delete(again);
        cJSON_Delete(tree);
        cJSON_free(printed);
}

/* The items as text, each on a line of its own behind a NUL. */
static int take_item(const char *item, size_t size, void *userdata)
{
        if (!item)
                return 0;
        text_append(userdata, item, size);
        return text_append(userdata, "\0\n", 2);
}

static int feed(const char *input, size_t size, size_t cut, size_t item_max, struct text *items)
{
        _cleanup_(scan_list_free_pointer) struct scan_list *list = NULL;
        struct scan_list_metadata metadata;
        int r = scan_list_new(item_max, take_item, items, &list);

        if (r >= 0)
                r = scan_list_feed(list, input, cut);
        if (r >= 0)
                r = scan_list_feed(list, input + cut, size - cut);
        if (r >= 0)
                r = scan_list_finish(list, &metadata);
        return r;
}

/* One item, as cJSON prints what it reads of it. */
static void compare_item(const char *text, const cJSON *expected)
{
        cJSON *item = cJSON_Parse(text);
        char *found = cJSON_PrintUnformatted(item), *wanted = cJSON_PrintUnformatted(expected);

        if (!found || !wanted || strcmp(found, wanted) != 0)
                abort();
        cJSON_free(found);
        cJSON_free(wanted);
        cJSON_Delete(item);
}

static void compare_items(const char *input, size_t size, const struct text *items)
{
        const char *text = items->data, *end = text + items->size;
        cJSON *tree = cJSON_ParseWithLengthOpts(input, size, NULL, false);
        const cJSON *member, *item;

        if (cJSON_IsObject(tree) && !has_odd_strings(input, size)) {
                cJSON_ArrayForEach(member, tree)
                {
                        if (strcmp(member->string, "items") != 0 || !cJSON_IsArray(member))
                                continue;
                        cJSON_ArrayForEach(item, member)
                        {
                                if (text >= end)
                                        abort();
                                compare_item(text, item);
                                text += strlen(text) + 2;
                        }
                }
                if (text != end)
                        abort();
        }
        cJSON_Delete(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *input = malloc(size + 1);
        _cleanup_text_ struct text whole = TEXT_EMPTY, pieces = TEXT_EMPTY;
        size_t cut;
        int r, s;

        if (!input)
                return 0;
        memcpy(input, data, size);
        input[size] = '\0';
        compare_object(input, size);
        compare_tree(input, size);
        cut = size > 0 ? (size_t)data[size / 2] * size / 256 : 0;
        (void)feed(input, size, cut, 8, &whole); /* nearly all items are too large */
        text_clear(&whole);
        r = feed(input, size, 0, 1 << 20, &whole);
        s = feed(input, size, cut, 1 << 20, &pieces);
        if ((r >= 0) != (s >= 0))
                abort();
        if (r < 0)
                return 0;
        if (whole.size != pieces.size ||
            (whole.size > 0 && memcmp(whole.data, pieces.data, whole.size) != 0))
                abort();
        compare_items(input, size, &whole);
        return 0;
}
