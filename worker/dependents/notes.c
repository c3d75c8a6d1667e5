/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/notes.h"

#include <errno.h>
#include <string.h>

#include "object/bookkeeping.h"
#include "worker/write/object.h"

char *notes_find(const char *json, bool label, const char *key)
{
        struct scan_object object;
        char *text = NULL;

        if (scan_object(json, strlen(json), &object) < 0 ||
            scan_string(scan_get(label ? object.labels : object.annotations, key), &text) < 0)
                return NULL;
        return text;
}

/* An object that is gone keeps its notes under a former name. */
char *notes_find_own(const struct run *run, const char *json, const char *key)
{
        const char *list = run->worker->config->former_names, *local = strchr(key, '/');
        char *value = notes_find(json, false, key), former[200];

        while (!value && bookkeeping_next_word(&list, former, sizeof(former))) {
                _cleanup_free_ char *other = format_string("%s%s", former, local);

                value = other ? notes_find(json, false, other) : NULL;
        }
        return value;
}

char *notes_find_record(const struct run *run, const char *json)
{
        return notes_find_own(run, json, run->watch->config->children_key);
}

static int visit_record(struct span key, struct span value, notes_record_t callback, void *userdata)
{
        _cleanup_free_ char *name = NULL, *record = NULL;
        struct dependent_list list = {0};
        int r = 0;

        if (!bookkeeping_is_key(key, NULL, CHILDREN_NAME))
                return 0;
        if (scan_string(key, &name) < 0 || scan_string(value, &record) < 0)
                return 0; /* no list of ours */
        r = dependent_list_from_record(record, &list);
        if (r >= 0 && list.count > 0)
                r = callback(name, &list, userdata);
        dependent_list_done(&list);
        return r < 0 ? r : 0;
}

int notes_visit_records(const char *json, notes_record_t callback, void *userdata)
{
        struct scan_object object;
        struct scan_walk walk;
        int r = scan_object(json, strlen(json), &object);

        if (r < 0)
                return r;
        SCAN_MEMBERS(walk, object.annotations) {
                r = visit_record(walk.key, walk.value, callback, userdata);
                if (r < 0)
                        return r;
        }
        return walk.status;
}

/* ---- of the watches of this operator */

bool notes_are_of_operator(const struct run *run, const char *key)
{
        const char *list = run->worker->config->former_names, *slash = strchr(key, '/');
        char name[200];

        snprintf(name, sizeof(name), "%s", run->worker->config->operator_name);
        do {
                if (slash && strlen(name) == (size_t)(slash - key) && strncmp(key, name, strlen(name)) == 0)
                        return true;
        } while (bookkeeping_next_word(&list, name, sizeof(name)));
        return false;
}

/* OPERATOR/ID.children goes with OPERATOR/ID.finalizer, under any name of the operator. */
bool notes_are_left(const struct run *run, const char *key)
{
        const char *json = object_json(run), *local = strchr(key, '/');
        const char *list = run->worker->config->former_names;
        struct finalizer_view view = {0};
        _cleanup_text_ struct text names = TEXT_EMPTY;
        char name[200];

        if (!notes_are_of_operator(run, key) ||
            strcmp(local, strchr(run->watch->config->children_key, '/')) == 0)
                return false;
        snprintf(name, sizeof(name), "%s", run->worker->config->operator_name);
        do
                text_printf(&names, "%s%s%.*s" FINALIZER_NAME, names.size > 0 ? "," : "", name,
                            (int)(strlen(local) - strlen(CHILDREN_NAME)), local);
        while (bookkeeping_next_word(&list, name, sizeof(name)));
        return !names.failed && finalizer_look(json, strlen(json), names.data, &view) >= 0 && !view.ours;
}

static int note_left_list(const char *key, const struct dependent_list *list _unused_, void *userdata)
{
        return notes_are_left(userdata, key) ? -EEXIST : 0;
}

bool notes_have_left_records(const struct run *run)
{
        return notes_visit_records(object_json(run), note_left_list, (void *)(uintptr_t)run) == -EEXIST;
}
