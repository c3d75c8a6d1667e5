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

struct secret {
        struct span data, string_data;
        struct name_list names;
        struct text *out;
        bool first;
};

static void add(struct secret *secret, struct span key)
{
        text_append_string(secret->out, secret->first ? "" : ",");
        text_append(secret->out, key.start, key.size);
        text_append_string(secret->out, ":");
        secret->first = false;
}

static int take_member(struct span key, struct span value, void *userdata)
{
        struct secret *secret = userdata;

        if (scan_string_equals(key, "data"))
                secret->data = value;
        else if (scan_string_equals(key, "stringData"))
                secret->string_data = value;
        return 0;
}

static int copy_member(struct span key, struct span value, void *userdata)
{
        struct secret *secret = userdata;

        if (!scan_string_equals(key, "data") && !scan_string_equals(key, "stringData")) {
                add(secret, key);
                text_append(secret->out, value.start, value.size);
        }
        return 0;
}

static int encode_entry(struct span key, struct span value, void *userdata)
{
        struct secret *secret = userdata;
        _cleanup_free_ char *text = NULL;
        int r = scan_string(value, &text);

        if (r < 0)
                return r;
        add(secret, key);
        text_append_string(secret->out, "\"");
        text_append_base64(secret->out, text);
        text_append_string(secret->out, "\"");
        return 0;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct span key, struct span value _unused_, void *userdata)
{
        struct name_list *list = userdata;
        char *name, **grown;
        int r;

        if (list->count == list->allocated) {
                grown = reallocarray(list->name, 2 * list->allocated + 16, sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                list->name = grown;
                list->allocated = 2 * list->allocated + 16;
        }
        r = scan_string(key, &name);
        if (r >= 0)
                list->name[list->count++] = name;
        return r;
}

static void names_done(struct name_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                free(list->name[i]);
        free(list->name);
}

/* An entry of stringData overrides the one of the same key in data. */
static int copy_entry(struct span key, struct span value, void *userdata)
{
        struct secret *secret = userdata;
        _cleanup_free_ char *name = NULL;
        int r = scan_string(key, &name);

        if (r < 0)
                return r;
        if (secret->names.count > 0 &&
            bsearch(&name, secret->names.name, secret->names.count, sizeof(name), compare_names))
                return 0;
        add(secret, key);
        text_append(secret->out, value.start, value.size);
        return 0;
}

static int copy_entries(struct secret *secret)
{
        int r = scan_members(secret->string_data, add_name, &secret->names);

        if (r < 0)
                return r;
        if (secret->names.count > 0)
                qsort(secret->names.name, secret->names.count, sizeof(char *), compare_names);
        return scan_members(secret->data, copy_entry, secret);
}

static bool is_object(struct span value)
{
        return value.start && value.start[0] == '{';
}

int secret_data_body(struct span object, struct text *out)
{
        struct secret secret = {.out = out, .first = true};
        int r = scan_members(object, take_member, &secret);

        if (r < 0 || !is_object(secret.string_data) || (secret.data.start && !is_object(secret.data)))
                return r < 0 ? r : 0;
        text_append_string(out, "{");
        r = scan_members(object, copy_member, &secret);
        text_append_string(out, ",\"data\":{");
        secret.first = true;
        if (r >= 0 && secret.data.start)
                r = copy_entries(&secret);
        names_done(&secret.names);
        if (r >= 0)
                r = scan_members(secret.string_data, encode_entry, &secret);
        text_append_string(out, "}}");
        if (r == -EBADMSG) { /* a value is no string, or holds a NUL: the API server will refuse it */
                text_clear(out);
                return 0;
        }
        return r < 0 ? r : out->failed ? -ENOMEM : 1;
}
