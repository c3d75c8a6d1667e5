/* SPDX-License-Identifier: Apache-2.0 */
/* See notes.h. */
#include "worker/dependents/notes.h"

#include <stdlib.h>
#include <string.h>

#include "object/bookkeeping.h"

struct metadata_search {
        const char *key;
        struct span value;
};

static int take_entry(struct span key, struct span value, void *userdata)
{
        struct metadata_search *search = userdata;

        if (scan_string_equals(key, search->key))
                search->value = value;
        return 0;
}

char *notes_find(const char *json, bool label, const char *key)
{
        struct metadata_search search = {.key = key};
        struct scan_object object;
        struct span map;
        char *text = NULL;

        if (scan_object(json, strlen(json), &object) < 0)
                return NULL;
        map = label ? object.labels : object.annotations;
        if (!map.start || map.start[0] != '{' || scan_members(map, take_entry, &search) < 0 ||
            !search.value.start || scan_string(search.value, &text) < 0)
                return NULL;
        return text;
}

char *notes_find_record(const struct run *run, const char *json)
{
        return notes_find(json, false, run->watch->config->children_key);
}

struct record_visit {
        notes_record_t callback;
        void *userdata;
};

static int visit_record(struct span key, struct span value, void *userdata)
{
        const struct record_visit *visit = userdata;
        _cleanup_free_ char *name = NULL, *record = NULL;
        struct dependent_list list = {0};
        int r = 0;

        if (!bookkeeping_is_key(key, NULL, CHILDREN_NAME))
                return 0;
        if (scan_string(key, &name) < 0 || scan_string(value, &record) < 0)
                return 0; /* no list of ours */
        r = dependent_list_from_record(record, &list);
        if (r >= 0 && list.count > 0)
                r = visit->callback(name, &list, visit->userdata);
        dependent_list_done(&list);
        return r < 0 ? r : 0;
}

int notes_visit_records(const char *json, notes_record_t callback, void *userdata)
{
        struct record_visit visit = {callback, userdata};
        struct scan_object object;
        int r = scan_object(json, strlen(json), &object);

        return r >= 0 && object.annotations.start && object.annotations.start[0] == '{'
                       ? scan_members(object.annotations, visit_record, &visit)
                       : r;
}
