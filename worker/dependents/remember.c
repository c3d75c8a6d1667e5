/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/remember.h"

#include <errno.h>
#include <string.h>

#include "worker/confine.h"
#include "worker/dependents/notes.h"
#include "worker/dependents/recall.h"
#include "worker/write/object.h"
#include "worker/write/patch.h"

#define ANNOTATIONS_MAX                                                                                     \
        ((size_t)256 * 1024) /* bytes of all keys and values of an object: the API server accepts no more */

/* Takes over the items that the list lacks. */
static int join(struct dependent_list *list, struct dependent_list *found)
{
        int r = 0;

        for (size_t i = 0; i < found->count && r >= 0; i++) {
                if (dependent_list_has(list, &found->item[i]))
                        continue;
                r = dependent_list_add(list, &found->item[i]);
                found->item[i] = (struct dependent){0};
        }
        return r;
}

/* The list of another watch of ours stays as it is until the last of our watches cleans up. */
static int take_record(const char *key, const struct dependent_list *list, void *userdata)
{
        struct dependents *dependents = userdata;
        const struct run *run = dependents->run;
        struct dependent_list *into = !notes_are_of_operator(run, key) ? &dependents->kept
                                      : dependents->cleanup && notes_are_left(run, key)
                                              ? &dependents->known
                                              : &dependents->beside;
        bool is_ours = notes_are_of_operator(run, key) &&
                       strcmp(strchr(key, '/'), strchr(run->watch->config->children_key, '/')) == 0;
        int r = 0;

        for (size_t i = 0; i < list->count && r >= 0 && !is_ours; i++)
                r = dependent_list_copy(&list->item[i], into);
        return r;
}

static int read_other_records(struct dependents *dependents)
{
        dependent_list_done(&dependents->kept);
        dependent_list_done(&dependents->beside);
        return notes_visit_records(object_json(dependents->run), take_record, dependents);
}

int remember_read(struct dependents *dependents)
{
        const struct run *run = dependents->run;
        _cleanup_free_ char *record = notes_find_record(run, object_json(run));
        int r = 0;

        dependent_list_done(&dependents->known);
        if (record)
                r = dependent_list_from_record(record, &dependents->known);
        if (r >= 0)
                r = read_other_records(dependents);
        if (r >= 0)
                (void)confine_list(run, &dependents->known);
        return r >= 0 && dependents->recall.doubted ? recall_doubt(dependents) : r;
}

/* After others have written to the object: adds the entries of its list to the known ones. */
static int join_record(struct dependents *dependents)
{
        _cleanup_free_ char *record = notes_find_record(dependents->run, object_json(dependents->run));
        struct dependent_list found = {0};
        int r = record ? dependent_list_from_record(record, &found) : 0;

        if (r >= 0)
                r = join(&dependents->known, &found);
        if (r >= 0)
                r = read_other_records(dependents);
        if (r >= 0)
                (void)confine_list(dependents->run, &dependents->known);
        dependent_list_done(&found);
        FOREACH_ARRAY(dependent, dependents->wanted.item, dependents->wanted.count)
                dependent->recorded =
                        dependent->recorded && dependent_list_has(&dependents->known, dependent);
        return r;
}

static bool is_foreign_news(const struct dependent *dependent)
{
        return dependent->foreign && dependent->is_new;
}

static void add_member(struct text *body, const char *key, const struct text *value)
{
        text_json(body, "?:", key);
        if (value->size > 0)
                text_json_string(body, value->data);
        else
                text_append_string(body, "null");
}

/* An object without dependents, of any watch and operator, is not the parent of an ApplySet any more. */
static int record_body(struct dependents *dependents, const struct text *record, const struct text *kinds,
                       struct text *body)
{
        _cleanup_text_ struct text set = TEXT_EMPTY, tooling = TEXT_EMPTY;

        if (kinds->size > 0) {
                text_append_string(&set, dependents->owner.set);
                text_append_string(&tooling, NOTES_TOOLING);
        }
        text_json(body, "{\"metadata\":{\"uid\":?,\"resourceVersion\":?,\"labels\":{", dependents->owner.uid,
                  object_version(dependents->run));
        add_member(body, SET_KEY, &set);
        text_append_string(body, "},\"annotations\":{");
        add_member(body, dependents->run->watch->config->children_key, record);
        text_append_string(body, ",");
        add_member(body, TOOLING_KEY, &tooling);
        text_append_string(body, ",");
        add_member(body, GROUP_KINDS_KEY, kinds);
        text_append_string(body, "}}}");
        return body->failed || record->failed || kinds->failed || set.failed || tooling.failed ? -ENOMEM : 0;
}

/* Objects that turn out to be somebody else's do not stay in the list: later they would look like ours. */
static bool is_to_be_listed(const struct dependent *dependent)
{
        return dependent->resource.plural && !dependent->release && !is_foreign_news(dependent);
}

/* Whether the list has a wanted dependent that is the same object. A wanted one whose kind is unknown at the
 * moment is remembered as it was. */
static bool is_written(const struct dependents *dependents, const struct dependent *known)
{
        for (size_t i = 0; i < dependents->wanted.count; i++)
                if (is_to_be_listed(&dependents->wanted.item[i]) &&
                    dependent_is_same(&dependents->wanted.item[i], known))
                        return true;
        return false;
}

static bool is_child_refused(const struct dependents *dependents, const struct dependent *known)
{
        for (size_t i = 0; i < dependents->wanted.count; i++)
                if (is_foreign_news(&dependents->wanted.item[i]) &&
                    dependent_is_same(&dependents->wanted.item[i], known))
                        return true;
        return false;
}

/* Another tool has an ApplySet on the same object: neither may delete the other's members. */
int remember_check_set(struct run *run)
{
        _cleanup_free_ char *tooling = notes_find(object_json(run), false, TOOLING_KEY);

        if (run->action != ACTION_RECONCILE || !tooling ||
            strncmp(tooling, NOTES_TOOLING, strlen("reconciled/")) == 0)
                return 0;
        return run_finish(run, RESULT_PERMANENT,
                          "the object is the parent of another tool's ApplySet (annotation " TOOLING_KEY
                          "); its children are not touched");
}

/* ---- whether there is room for it */

/* Adds the bytes of the keys and values of others. */
static int count_annotations(struct span annotations, const char *record_key, size_t *size)
{
        struct scan_walk walk;

        SCAN_MEMBERS(walk, annotations) {
                _cleanup_free_ char *name = NULL, *text = NULL;
                int r;

                if (scan_string_equals(walk.key, record_key) || scan_string_equals(walk.key, TOOLING_KEY) ||
                    scan_string_equals(walk.key, GROUP_KINDS_KEY))
                        continue;
                r = scan_string(walk.key, &name);
                if (r >= 0)
                        r = scan_string(walk.value, &text);
                if (r < 0)
                        return r;
                *size += strlen(name) + strlen(text);
        }
        return walk.status;
}

/* Annotations of others count as well. This is no fault of the operator: somebody
 * has to make room on this object. */
static int check_room(struct run *run, size_t ours)
{
        const char *key = run->watch->config->children_key;
        struct scan_object object;
        size_t others = 0;
        const char *json = object_json(run);
        int r = scan_object(json, strlen(json), &object);

        ours += strlen(key) + strlen(GROUP_KINDS_KEY) + strlen(TOOLING_KEY) + strlen(NOTES_TOOLING);
        if (r >= 0)
                r = count_annotations(object.annotations, key, &others);
        if (r < 0 || ours + others <= ANNOTATIONS_MAX)
                return r;
        if (ours > ANNOTATIONS_MAX)
                return run_finish(
                        run, RESULT_PERMANENT,
                        "the handler's answer: children: are too many: the list of their names takes %zu "
                        "bytes, and an object's annotations hold no more than 256 KiB",
                        ours);
        return run_finish(run, RESULT_PERMANENT,
                          "the list of its children has no room on the object: it takes %zu bytes, the "
                          "object's other annotations %zu, and all together no more than 256 KiB",
                          ours, others);
}

/* Children of the answer, and known ones that are not settled yet. */
static int write_list(struct dependents *dependents, struct text *body)
{
        _cleanup_text_ struct text record = TEXT_EMPTY, kinds = TEXT_EMPTY;
        int r;

        for (size_t i = 0; i < dependents->wanted.count; i++)
                if (is_to_be_listed(&dependents->wanted.item[i])) {
                        struct dependent *dependent = &dependents->wanted.item[i];

                        dependent->is_new =
                                dependent->is_new || !dependent_list_has(&dependents->known, dependent);
                        dependent->recorded = true;
                        dependent_record_add(&record, dependent);
                        dependent_group_kinds_add(&kinds, dependent);
                }
        for (size_t i = 0; i < dependents->known.count; i++)
                if (!dependents->known.item[i].settled &&
                    !is_child_refused(dependents, &dependents->known.item[i]) &&
                    !is_written(dependents, &dependents->known.item[i])) {
                        dependent_record_add(&record, &dependents->known.item[i]);
                        dependent_group_kinds_add(&kinds, &dependents->known.item[i]);
                }
        for (size_t i = 0; i < dependents->kept.count; i++)
                dependent_group_kinds_add(&kinds, &dependents->kept.item[i]);
        for (size_t i = 0; i < dependents->beside.count; i++)
                dependent_group_kinds_add(&kinds, &dependents->beside.item[i]);
        r = check_room(dependents->run, record.size + kinds.size);
        return r < 0 ? r : record_body(dependents, &record, &kinds, body);
}

static int take_recorded(struct dependents *dependents, const struct kube_response *response) _suspends_
{
        struct run *run = dependents->run;

        if (response->error.failure != KUBE_FAILURE_NONE)
                return object_refused(run, "operator's list of its children", response);
        if (object_take_result(run, response) < 0 || remember_read(dependents) < 0)
                return run_finish(
                        run, RESULT_RETRY,
                        "the API server's answer to the list of its children cannot be understood");
        return 0;
}

int remember_send(struct dependents *dependents)
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY;
        struct run *run = dependents->run;
        int r = write_list(dependents, &body);

        if (r >= 0)
                r = patch_send(run, NULL, &body, true, &answer);
        if (r >= 0)
                r = take_recorded(dependents, &answer.response);
        if (r != -EAGAIN)
                return r;
        r = remember_check_set(run);
        if (r >= 0)
                r = join_record(dependents);
        return r < 0 ? r : -EAGAIN;
}

/* ---- when it is written */

static bool is_incomplete(const struct dependents *dependents)
{
        for (size_t i = 0; i < dependents->wanted.count; i++)
                if (is_to_be_listed(&dependents->wanted.item[i]) &&
                    !dependent_list_has(&dependents->known, &dependents->wanted.item[i]))
                        return true;
        return false;
}

static bool is_too_long(const struct dependents *dependents)
{
        for (size_t i = 0; i < dependents->known.count; i++)
                if (is_child_refused(dependents, &dependents->known.item[i]) ||
                    (dependents->known.item[i].settled && dependents->failed.count == 0))
                        return true;
        return false;
}

int remember_wanted(struct dependents *dependents)
{
        int r;

        do
                r = (dependents->recall.done && dependents->known.count > 0) || is_incomplete(dependents)
                            ? remember_send(dependents)
                            : 0;
        while (r == -EAGAIN);
        return r;
}

int remember_forget(struct dependents *dependents)
{
        int r;

        do
                r = is_too_long(dependents) ? remember_send(dependents) : 0;
        while (r == -EAGAIN);
        return r;
}
