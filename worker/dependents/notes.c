/* SPDX-License-Identifier: Apache-2.0 */
/* See notes.h. */
#include "worker/dependents/notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object/bookkeeping.h"
#include "object/fingerprint.h"
#include "worker/write/object.h"

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

/* ---- of the watches of this operator */

bool notes_are_of_operator(const struct run *run, const char *key)
{
        const char *name = run->worker->config->operator_name;

        return strncmp(key, name, strlen(name)) == 0 && key[strlen(name)] == '/';
}

/* OPERATOR/ID.children goes with OPERATOR/ID.finalizer. */
bool notes_are_left(const struct run *run, const char *key)
{
        const char *json = object_json(run);
        struct finalizer_view view = {0};
        _cleanup_text_ struct text name = TEXT_EMPTY;

        if (strcmp(key, run->watch->config->children_key) == 0 || !notes_are_of_operator(run, key))
                return false;
        text_append(&name, key, strlen(key) - strlen(CHILDREN_NAME));
        text_append_string(&name, FINALIZER_NAME);
        return !name.failed && finalizer_look(json, strlen(json), name.data, &view) >= 0 && !view.ours;
}

static int note_left(const char *key, const struct dependent_list *list _unused_, void *userdata)
{
        return notes_are_left(userdata, key) ? -EEXIST : 0;
}

bool notes_have_left_records(const struct run *run)
{
        return notes_visit_records(object_json(run), note_left, (void *)(uintptr_t)run) == -EEXIST;
}
