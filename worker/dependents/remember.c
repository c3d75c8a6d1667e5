/* SPDX-License-Identifier: Apache-2.0 */
/* What an object's annotations remember of its children: what is pruned, and what goes with the object. */
#include <errno.h>
#include <string.h>

#include "worker/dependents/internal.h"
#include "worker/write/sibling.h"

#define ANNOTATIONS_MAX                                                                                     \
        ((size_t)256 * 1024) /* bytes of an object, keys and values: the API server takes no more */

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

char *children_find_entry(const char *json, bool label, const char *key)
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

char *children_find_record(const struct run *run, const char *json)
{
        return children_find_entry(json, false, run->watch->config->children_key);
}

/* Takes over what is new. */
static int join(struct child_list *list, struct child_list *found)
{
        int r = 0;

        for (size_t i = 0; i < found->count && r >= 0; i++) {
                if (child_list_has(list, &found->child[i]))
                        continue;
                r = child_list_add(list, &found->child[i]);
                found->child[i] = (struct child_object){0};
        }
        return r;
}

int children_copy(const struct child_object *child, struct child_list *list)
{
        struct child_object copy = {.index = list->count};

        if (child_list_has(list, child))
                return 0;
        copy.api_version = strdup(child->api_version);
        copy.kind = strdup(child->kind);
        copy.namespace_name = strdup(child->namespace_name);
        copy.name = strdup(child->name);
        return child_list_add(list, &copy);
}

/* Children of a watch that has the object no more are ours from now on; those of the others stay theirs. */
static int take_record(const char *key, const struct child_list *list, void *userdata)
{
        struct children *children = userdata;
        bool is_left = sibling_is_left(children->run, key);
        int r = 0;

        if (!is_left && !sibling_keeps(children->run, key))
                return 0;
        children->takes_over = children->takes_over || is_left;
        for (size_t i = 0; i < list->count && r >= 0; i++)
                r = children_copy(&list->child[i], is_left ? &children->known : &children->kept);
        return r;
}

static int read_other_records(struct children *children)
{
        child_list_done(&children->kept);
        children->takes_over = false;
        return sibling_visit_records(write_current_json(children->run), take_record, children);
}

int children_read_record(struct children *children)
{
        _cleanup_free_ char *record = children_find_record(children->run, write_current_json(children->run));
        int r = 0;

        child_list_done(&children->known);
        if (record)
                r = child_list_from_record(record, &children->known);
        return r < 0 ? r : read_other_records(children);
}

int children_join_record(struct children *children)
{
        _cleanup_free_ char *record = children_find_record(children->run, write_current_json(children->run));
        struct child_list found = {0};
        int r = record ? child_list_from_record(record, &found) : 0;

        if (r >= 0)
                r = join(&children->known, &found);
        if (r >= 0)
                r = read_other_records(children);
        child_list_done(&found);
        for (size_t i = 0; i < children->wanted.count; i++) {
                struct child_object *child = &children->wanted.child[i];

                child->recorded = child->recorded && child_list_has(&children->known, child);
        }
        return r;
}

static void add_member(struct text *body, const char *key, const struct text *value)
{
        text_json_string(body, key);
        text_append_string(body, ":");
        if (value->size > 0)
                text_json_string(body, value->data);
        else
                text_append_string(body, "null");
}

/* The lists that are taken over go as ours comes. */
static void drop_lists(const struct run *run, struct text *body)
{
        for (size_t i = 0; i < run->sibling_count; i++)
                if (run->sibling[i].state == SIBLING_SELECTS_NOT) {
                        text_json_string(body, run->sibling[i].watch->config->children_key);
                        text_append_string(body, ":null,");
                }
}

/* Without a child, of whichever watch and operator, the object is no parent of a set any more. */
static int record_body(struct children *children, const struct text *record, const struct text *kinds,
                       struct text *body)
{
        _cleanup_text_ struct text set = TEXT_EMPTY, tooling = TEXT_EMPTY;
        if (kinds->size > 0) {
                text_append_string(&set, children->owner.set);
                text_append_string(&tooling, TOOLING);
        }
        text_append_string(body, "{\"metadata\":{\"uid\":");
        text_json_string(body, children->owner.uid);
        text_append_string(body, ",\"resourceVersion\":");
        text_json_string(body, write_current_version(children->run));
        text_append_string(body, ",\"labels\":{");
        add_member(body, SET_KEY, &set);
        text_append_string(body, "},\"annotations\":{");
        drop_lists(children->run, body);
        add_member(body, children->run->watch->config->children_key, record);
        text_append_string(body, ",");
        add_member(body, TOOLING_KEY, &tooling);
        text_append_string(body, ",");
        add_member(body, GROUP_KINDS_KEY, kinds);
        text_append_string(body, "}}}");
        return body->failed || record->failed || kinds->failed || set.failed || tooling.failed ? -ENOMEM : 0;
}

static void on_recorded(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                        void *userdata)
{
        struct run *run = userdata;

        run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE) {
                write_failed(run, "list of its children", response);
                return;
        }
        run->children->remembered = true;
        if (write_take_result(run, response) < 0 || children_read_record(run->children) < 0)
                run_finish(run, RESULT_RETRY,
                           "the API server's answer to the list of its children cannot be understood");
        else
                children_advance(run->children);
}

/* A child whose kind is not known at the moment is wanted, and remembered as it was. */
static bool is_written(const struct children *children, const struct child_object *known)
{
        for (size_t i = 0; i < children->wanted.count; i++)
                if (children->wanted.child[i].resource.plural &&
                    child_is_same(&children->wanted.child[i], known))
                        return true;
        return false;
}

/* ---- whether there is room for it */

struct annotation_count {
        const char *record_key;
        size_t size; /* of others' keys and values */
};

static int count_annotation(struct span key, struct span value, void *userdata)
{
        struct annotation_count *count = userdata;
        _cleanup_free_ char *name = NULL, *text = NULL;
        int r;

        if (scan_string_equals(key, count->record_key) || scan_string_equals(key, TOOLING_KEY) ||
            scan_string_equals(key, GROUP_KINDS_KEY))
                return 0;
        r = scan_string(key, &name);
        if (r >= 0)
                r = scan_string(value, &text);
        if (r >= 0)
                count->size += strlen(name) + strlen(text);
        return r;
}

/* Annotations of others count as well. 1: the run was ended. That is no error of the operator's: somebody
 * has to make room on this object. */
static int check_room(struct run *run, size_t ours)
{
        const char *key = run->watch->config->children_key;
        struct annotation_count count = {.record_key = key};
        struct scan_object object;
        const char *json = write_current_json(run);
        int r = scan_object(json, strlen(json), &object);

        ours += strlen(key) + strlen(GROUP_KINDS_KEY) + strlen(TOOLING_KEY) + strlen(TOOLING);
        if (r >= 0 && object.annotations.start && object.annotations.start[0] == '{')
                r = scan_members(object.annotations, count_annotation, &count);
        if (r < 0 || ours + count.size <= ANNOTATIONS_MAX)
                return r;
        if (ours > ANNOTATIONS_MAX)
                run_finish(run, RESULT_PERMANENT,
                           "the handler's answer: children: are too many: the list of their names takes %zu "
                           "bytes, and an object's annotations hold no more than 256 KiB",
                           ours);
        else
                run_finish(run, RESULT_PERMANENT,
                           "the list of its children has no room on the object: it takes %zu bytes, the "
                           "object's other annotations %zu, and all together no more than 256 KiB",
                           ours, count.size);
        return 1;
}

int children_send_record(struct children *children)
{
        _cleanup_text_ struct text record = TEXT_EMPTY, kinds = TEXT_EMPTY, body = TEXT_EMPTY;
        int r;

        for (size_t i = 0; i < children->wanted.count; i++)
                if (children->wanted.child[i].resource.plural) {
                        struct child_object *child = &children->wanted.child[i];

                        child->is_new = child->is_new || !child_list_has(&children->known, child);
                        child->recorded = true;
                        child_record_add(&record, child);
                        child_group_kinds_add(&kinds, child);
                }
        for (size_t i = 0; i < children->known.count; i++)
                if (!children->known.child[i].settled && !is_written(children, &children->known.child[i])) {
                        child_record_add(&record, &children->known.child[i]);
                        child_group_kinds_add(&kinds, &children->known.child[i]);
                }
        for (size_t i = 0; i < children->kept.count; i++)
                child_group_kinds_add(&kinds, &children->kept.child[i]);
        r = check_room(children->run, record.size + kinds.size);
        if (r != 0)
                return r;
        r = record_body(children, &record, &kinds, &body);
        if (r >= 0)
                r = write_patch(children->run, NULL, &body, on_recorded, write_siblings_again);
        return r < 0 ? r : 1;
}

/* Where a kind has several watches, the object may have gone to another one, with the list, or be gone and
 * made anew, since it was read: then a child that is applied now stands in no list. A write that is locked
 * by the version that was read finds that out. */
static bool must_confirm(const struct children *children)
{
        const struct run *run = children->run;

        return run->action == ACTION_RECONCILE && run->watch->config->shared[0] &&
               children->wanted.count > 0;
}

int children_remember_next(struct children *children)
{
        if (must_confirm(children) && !children->remembered)
                return children_send_record(children);
        if ((children->recalled || children->takes_over) && children->known.count > 0 &&
            !children->remembered)
                return children_send_record(children);
        for (size_t i = 0; i < children->wanted.count && !children->remembered; i++) {
                const struct child_object *child = &children->wanted.child[i];

                if (child->resource.plural && !child_list_has(&children->known, child))
                        return children_send_record(children);
        }
        return 0;
}

int children_forget_next(struct children *children)
{
        for (size_t i = 0; i < children->known.count && !children->remembered && children->failures == 0;
             i++)
                if (children->known.child[i].settled)
                        return children_send_record(children);
        return 0;
}
