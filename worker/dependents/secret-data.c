/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/secret-data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The names in stringData, sorted: either may have as many entries as an answer has room for. */
struct name_list {
        char **name;
        size_t count, allocated;
};

static void add(struct span key, bool *first, struct text *out)
{
        text_append_string(out, *first ? "" : ",");
        text_append(out, key.start, key.size);
        text_append_string(out, ":");
        *first = false;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct name_list *list, struct span key)
{
        char **grown;
        int r;

        if (list->count == list->allocated) {
                grown = reallocarray(list->name, 2 * list->allocated + 16, sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                list->name = grown;
                list->allocated = 2 * list->allocated + 16;
        }
        r = scan_string(key, &list->name[list->count]);
        list->count += r >= 0;
        return r;
}

static void names_done(struct name_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                free(list->name[i]);
        free(list->name);
}

/* An entry of stringData overrides the one of the same key in data. */
static int copy_data(struct span data, const struct name_list *overridden, bool *first, struct text *out)
{
        struct scan_walk walk;

        SCAN_MEMBERS(walk, data) {
                _cleanup_free_ char *name = NULL;
                int r = scan_string(walk.key, &name);

                if (r < 0)
                        return r;
                if (overridden->count > 0 &&
                    bsearch(&name, overridden->name, overridden->count, sizeof(name), compare_names))
                        continue;
                add(walk.key, first, out);
                text_append(out, walk.value.start, walk.value.size);
        }
        return walk.status;
}

static int encode_string_data(struct span string_data, bool *first, struct text *out)
{
        struct scan_walk walk;

        SCAN_MEMBERS(walk, string_data) {
                _cleanup_free_ char *text = NULL;
                int r = scan_string(walk.value, &text);

                if (r < 0)
                        return r;
                add(walk.key, first, out);
                text_append_string(out, "\"");
                text_append_base64(out, text);
                text_append_string(out, "\"");
        }
        return walk.status;
}

static int write_data(struct span data, struct span string_data, struct text *out)
{
        _cleanup_(names_done) struct name_list names = {0};
        struct scan_walk walk;
        bool first = true;
        int r = 0;

        SCAN_MEMBERS(walk, string_data) {
                r = add_name(&names, walk.key);
                if (r < 0)
                        return r;
        }
        if (names.count > 0)
                qsort(names.name, names.count, sizeof(char *), compare_names);
        r = walk.status < 0 ? walk.status : copy_data(data, &names, &first, out);
        return r < 0 ? r : encode_string_data(string_data, &first, out);
}

static bool is_object(struct span value)
{
        return value.start && value.start[0] == '{';
}

int secret_data_body(struct span object, struct text *out)
{
        struct span data = {0}, string_data = {0};
        const struct scan_wanted wanted[] = {{"data", &data}, {"stringData", &string_data}};
        struct scan_walk walk;
        bool first = true;
        int r = scan_find(object, wanted, ELEMENTS(wanted));

        if (r < 0 || !is_object(string_data) || (data.start && !is_object(data)))
                return r < 0 ? r : 0;
        text_append_string(out, "{");
        SCAN_MEMBERS(walk, object)
                if (!scan_string_equals(walk.key, "data") && !scan_string_equals(walk.key, "stringData")) {
                        add(walk.key, &first, out);
                        text_append(out, walk.value.start, walk.value.size);
                }
        text_append_string(out, ",\"data\":{");
        r = write_data(data, string_data, out);
        text_append_string(out, "}}");
        if (r == -EBADMSG) { /* a value is no string, or holds a NUL: the API server will refuse it */
                text_clear(out);
                return 0;
        }
        return r < 0 ? r : out->failed ? -ENOMEM : 1;
}
