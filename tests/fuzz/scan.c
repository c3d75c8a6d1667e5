/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scanner against cJSON: of what both accept, the metadata must be the same; a LIST cut in two anywhere
 * must give the same items as in one piece; and no input may do harm.
 */
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/fingerprint.h"
#include "store/scan.h"

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

static void compare_object(const char *input, size_t size)
{
        struct scan_object object;
        const cJSON *metadata;
        uint64_t fingerprint;
        cJSON *tree;

        if (scan_object(input, size, &object) < 0)
                return;
        (void)fingerprint_object(TRIGGER_ESSENCE, "example.com/finalizer", input, size, &fingerprint);
        tree = cJSON_ParseWithLengthOpts(input, size, NULL, false);
        metadata = cJSON_IsObject(tree) ? last_member(tree, "metadata") : NULL;
        if (cJSON_IsObject(metadata) && !has_odd_strings(input, size)) {
                compare_text(metadata, "name", object.name);
                compare_text(metadata, "uid", object.uid);
                compare_text(metadata, "resourceVersion", object.resource_version);
        }
        cJSON_Delete(tree);
}

static int count_item(const char *item, size_t size, void *userdata)
{
        uint64_t *sum = userdata;

        *sum = *sum * 31 + size + (unsigned char)item[0];
        return 0;
}

static int feed(const char *input, size_t size, size_t cut, uint64_t *ret_sum)
{
        _cleanup_(scan_list_free_pointer) struct scan_list *list = NULL;
        struct scan_list_metadata metadata;
        uint64_t sum = 1;
        int r = scan_list_new(1 << 20, count_item, &sum, &list);

        if (r >= 0)
                r = scan_list_feed(list, input, cut);
        if (r >= 0)
                r = scan_list_feed(list, input + cut, size - cut);
        if (r >= 0)
                r = scan_list_finish(list, &metadata);
        *ret_sum = sum;
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *input = malloc(size + 1);
        uint64_t whole, cut;
        int r, s;

        if (!input)
                return 0;
        memcpy(input, data, size);
        input[size] = '\0';
        compare_object(input, size);
        r = feed(input, size, 0, &whole);
        s = feed(input, size, size / 2, &cut);
        if ((r >= 0) != (s >= 0) || (r >= 0 && whole != cut))
                abort();
        return 0;
}
