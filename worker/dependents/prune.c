/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See prune.h. A dependent is settled when it was seen to be gone, or to belong to somebody else. Nothing
 * else lets it be forgotten: neither a refusal nor a server that does not answer.
 */
#include "worker/dependents/prune.h"

#include <errno.h>
#include <string.h>

#include "worker/dependents/notes.h"
#include "worker/dependents/ownership.h"
#include "worker/kinds.h"
#include "worker/waiting.h"
#include "worker/write/finalizer.h"

#define CONFLICTS_MAX 10 /* of a child with writes of others, in one run */

/* ---- kinds that are not served as they were */

/* The answer about this kind holds for all dependents of the kind. */
static int settle_kind(struct dependents *dependents, const struct dependent *dependent,
                       const struct kube_resource *resource)
{
        int r = 0;

        for (size_t i = 0; i < dependents->known.count && r >= 0; i++) {
                struct dependent *other = &dependents->known.item[i];

                if (!dependent_is_same_kind(other, dependent) || other->resource.plural || other->settled)
                        continue;
                other->settled = !resource; /* the kind's objects are gone with it */
                other->lookups += other != dependent;
                if (resource)
                        r = kinds_copy(resource, &other->resource);
        }
        return r;
}

/* found: the resource; or none, and then: certain: all versions of its group have answered. */
static int take_search(struct dependents *dependents, struct dependent *dependent, bool certain,
                       const struct kube_finding *found)
{
        const char *what = dependents->manager ? "is patched still" : "cannot be deleted yet";
        const struct kube_resource *resource = found->resource.plural ? &found->resource : NULL;

        if (resource || (certain && dependents_is_believed(dependents)))
                return settle_kind(dependents, dependent, resource) < 0
                               ? run_finish(dependents->run, RESULT_RETRY,
                                            "no memory for the kinds of its children")
                               : -EAGAIN;
        dependents_leave_kind(dependents, dependent);
        if (!certain && found->error.failure != KUBE_FAILURE_PROTOCOL)
                return dependents_take_refusal(dependents, dependent, "cannot be looked up", &found->error,
                                               &found->response);
        dependents_fail(dependents, dependent, what, found->error.message);
        return 0;
}

int prune_search_kind(struct dependents *dependents, struct dependent *dependent)
{
        struct run *run = dependents->run;
        _cleanup_kube_finding_ struct kube_finding found = KUBE_FINDING_EMPTY;
        bool certain;
        int r;

        if (dependent->stranger && !dependents_is_believed(dependents) &&
            kinds_are_absent(run->worker, dependent->api_version, dependent->kind)) {
                const struct kube_finding absent = {
                        .error = {.message = (char[]){"the server has no such kind"}}};

                return take_search(dependents, dependent, true, &absent);
        }
        r = run_ask_all_versions(run, dependent->api_version, dependent->kind, &found);
        if (r == -ECANCELED)
                return run_cut_off(run);
        if (r < 0)
                return run_finish(run, RESULT_RETRY, "its children's kinds cannot be looked up: %s",
                                  strerror(-r));
        certain = !found.resource.plural && found.error.http_status == 404;
        if (certain && dependent->stranger)
                kinds_keep_absent(run->worker, dependent->api_version, dependent->kind);
        return take_search(dependents, dependent, certain, &found);
}

/* ---- one by one */

/* Whether somebody has written to the object since it was judged, and the worker may look at it again. */
static bool is_prune_overtaken(struct dependent *dependent, const struct kube_error *error)
{
        return error->http_status == 409 && ++dependent->conflicts <= CONFLICTS_MAX;
}

/* Notes a child that is being deleted, and what holds it: finalizers of others, or a kubelet. */
static void note_going(struct dependents *dependents, const struct dependent *dependent,
                       const struct scan_object *object)
{
        char why[300];

        dependents->prune.left++;
        if (object->finalizers.start && object->finalizers.size > strlen("[]"))
                snprintf(why, sizeof(why), "it is being deleted, and held by its finalizers %.*s",
                         object->finalizers.size < 200 ? (int)object->finalizers.size : 200,
                         object->finalizers.start);
        else
                snprintf(why, sizeof(why), "it is being deleted");
        dependents_note_unready(dependents, dependent, why);
}

/* A Status, or the object without the time of its deletion, means that the object is gone; with that time it is still
 * being deleted. */
static void take_deleted(struct dependents *dependents, struct dependent *dependent,
                         const struct kube_response *response)
{
        struct scan_object object = {0};
        bool going = scan_object(response->body, response->body_size, &object) < 0 ||
                     object.deletion_timestamp.start;

        dependents_tell(dependents, dependent, CHILD_DELETED, "");
        dependent->settled = !going;
        if (going)
                note_going(dependents, dependent, &object);
}

static int cannot_be_deleted(const struct dependents *dependents, int status)
{
        return run_finish(dependents->run, RESULT_RETRY, "one of its children cannot be deleted: %s",
                          strerror(-status));
}

static void append_bound_of_view(const struct ownership_view *view, struct text *out)
{
        text_json(out, "\"uid\":?,\"resourceVersion\":?", view->uid, view->version);
}

static int delete_one(struct dependents *dependents, struct dependent *dependent,
                      const struct ownership_view *view) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r;

        free(dependent->version);
        dependent->version = strdup(view->version);
        text_append_string(&body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":"
                                  "\"Background\",\"preconditions\":{");
        append_bound_of_view(view, &body);
        text_append_string(&body, "}}");
        r = body.failed || !dependent->version
                    ? -ENOMEM
                    : dependents_ask(dependents, dependent, DEPENDENTS_DELETES, &body, &answer);
        if (r < 0)
                return cannot_be_deleted(dependents, r);
        if (answer.response.error.failure == KUBE_FAILURE_NONE)
                take_deleted(dependents, dependent, &answer.response);
        else if (kube_error_is_not_found(&answer.response.error))
                dependent->settled = true;
        else
                return is_prune_overtaken(dependent, &answer.response.error)
                               ? -EAGAIN
                               : dependents_take_failure(dependents, dependent, "cannot be deleted",
                                                         &answer.response);
        return 0;
}

/* ---- letting go */

/* All but ours. */
static int keep_references(struct span references, const char *uid, struct text *out)
{
        struct scan_walk walk;
        bool any = false;

        SCAN_ELEMENTS(walk, references) {
                if (scan_string_equals(scan_get(walk.value, "uid"), uid))
                        continue;
                text_append_string(out, any ? "," : "");
                text_append(out, walk.value.start, walk.value.size);
                any = true;
        }
        return walk.status;
}

/* Takes off our reference, label and marks; what the object is otherwise stays. */
static int release_body(const struct dependents *dependents, const struct ownership_view *view,
                        const char *json, struct text *out)
{
        struct scan_object object;
        int r = scan_object(json, strlen(json), &object);

        if (r < 0)
                return r;
        text_append_string(out, "{\"metadata\":{");
        append_bound_of_view(view, out);
        text_append_string(out, ",\"labels\":{\"" NOTES_PART_OF "\":null},\"annotations\":{");
        dependent_marks_off(&dependents->owner, "", out);
        text_append_string(out, "}");
        if (object.owner_references.start && object.owner_references.start[0] == '[') {
                text_append_string(out, ",\"ownerReferences\":[");
                r = keep_references(object.owner_references, dependents->owner.uid, out);
                text_append_string(out, "]");
        }
        text_append_string(out, "}}");
        return r < 0 ? r : out->failed ? -ENOMEM : 0;
}

static int release_one(struct dependents *dependents, struct dependent *dependent,
                       const struct ownership_view *view, const char *json) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = release_body(dependents, view, json, &body);

        free(dependent->version);
        dependent->version = strdup(view->version);
        if (r >= 0)
                r = dependents_ask(dependents, dependent, DEPENDENTS_MERGES, &body, &answer);
        if (r < 0)
                return cannot_be_deleted(dependents, r);
        if (answer.response.error.failure == KUBE_FAILURE_NONE) {
                dependents_tell(dependents, dependent, CHILD_RELEASED, "");
                dependents_note_released(dependents, dependent);
        } else if (!kube_error_is_not_found(&answer.response.error)) {
                return is_prune_overtaken(dependent, &answer.response.error)
                               ? -EAGAIN
                               : dependents_take_failure(dependents, dependent, "cannot be released",
                                                         &answer.response);
        }
        dependent->settled = true;
        return 0;
}

/* ---- whose it is */

/* Another watch of ours has applied it since. If the object goes, that watch cleans up, or is gone itself. */
static bool is_of_other_watch(const struct dependents *dependents, const struct ownership_view *view)
{
        const struct run *run = dependents->run;
        _cleanup_text_ struct text list = TEXT_EMPTY;

        if (view->whose != OWNERSHIP_TWIN)
                return false;
        text_printf(&list, "%s/%s%s" CHILDREN_NAME, run->worker->config->operator_name, view->id,
                    view->id[0] ? "." : "");
        return list.failed || !dependents->cleanup || !notes_are_left(run, list.data);
}

static void tell_left(const struct dependents *dependents, const struct dependent *dependent,
                      const struct ownership_view *view)
{
        const struct message_run *order = dependents->run->order;
        char name[600];

        log_warning("watch %s, %s: %s is left as it is, because it is not this object's child: %s",
                    order->watch, order->key, dependent_describe(dependent, name, sizeof(name)),
                    view->holder);
}

/* The answer names it as another kind: one object may be served by two groups. */
static bool is_applied_elsewhere(const struct dependents *dependents, const struct ownership_view *view)
{
        FOREACH_ARRAY(wanted, dependents->wanted.item, dependents->wanted.count)
                if (wanted->applied && wanted->uid && strcmp(wanted->uid, view->uid) == 0)
                        return true;
        return false;
}

static bool is_to_be_released(const struct dependents *dependents, const struct dependent *dependent)
{
        const struct dependent *wanted = dependent_list_find(&dependents->wanted, dependent);

        return wanted && wanted->release;
}

/* The object goes, and its children are to stay: it says so, or the garbage collector has taken our reference off. Children
 * that cannot refer to it follow those that can. */
static bool is_orphaned(struct dependents *dependents, const struct dependent *dependent,
                        const struct ownership_view *view)
{
        bool may_refer = dependent_may_refer(&dependents->owner, dependent);

        if (!dependents->cleanup)
                return false;
        dependents->prune.orphaned = dependents->prune.orphaned || (may_refer && !view->referred);
        return orphan_is_wanted(dependents->run) ||
               (may_refer ? !view->referred : dependents->prune.orphaned);
}

/* Whether it is somebody else's now. */
static bool is_beyond_reach(const struct dependents *dependents, const struct dependent *dependent,
                            const struct ownership_view *view)
{
        /* Another object has this name now. */
        if (dependent->uid && dependent->uid[0] && strcmp(view->uid, dependent->uid) != 0)
                return true;
        if (is_applied_elsewhere(dependents, view) || is_of_other_watch(dependents, view))
                return true;
        if (view->whose != OWNERSHIP_FOREIGN && view->whose != OWNERSHIP_FALLEN)
                return false;
        tell_left(dependents, dependent, view);
        return true;
}

static int take_to_prune(struct dependents *dependents, struct dependent *dependent,
                         const struct kube_response *response) _suspends_
{
        struct ownership_view view;
        struct scan_object object;
        int r = ownership_judge(&dependents->owner, dependent, response->body, response->body_size, &view);

        if (r >= 0)
                r = scan_object(response->body, response->body_size, &object);
        if (r < 0)
                return cannot_be_deleted(dependents, r);
        dependent->settled = is_beyond_reach(dependents, dependent, &view);
        if (dependent->settled)
                return 0;
        if (view.going) {
                note_going(dependents, dependent, &object);
                return 0;
        }
        return view.made && !view.shared && !is_orphaned(dependents, dependent, &view) &&
                               !is_to_be_released(dependents, dependent)
                       ? delete_one(dependents, dependent, &view)
                       : release_one(dependents, dependent, &view, response->body);
}

static int look_before_prune(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r = dependents_look(dependents, dependent, &answer);

        if (r <= 0)
                return r;
        if (answer.response.error.failure == KUBE_FAILURE_NONE)
                return take_to_prune(dependents, dependent, &answer.response);
        dependent->settled = true;
        return 0;
}

/* Finds the resource. 1: the dependent is where the record says; 2: nothing is left to do; else as
 * dependents_resolve(). A kind that was namespaced and is not now, or the reverse, is another kind of the same name. */
static int find_place(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r = dependents_resolve(dependents, dependent);

        if (r <= 0 || dependent->resource.namespaced == (dependent->namespace_name[0] != '\0'))
                return r;
        if (dependent->lookups > 0)
                return 2;
        kinds_forget(dependents->run->worker, dependent->api_version, dependent->kind);
        kube_resource_done(&dependent->resource);
        return dependents_resolve(dependents, dependent);
}

/* ---- all of them */

static bool is_child_wanted(const struct dependents *dependents, const struct dependent *dependent)
{
        const struct dependent *wanted = dependent_list_find(&dependents->wanted, dependent);

        return wanted && !wanted->release;
}

static bool is_left_alone(const struct dependents *dependents, const struct dependent *dependent)
{
        return dependent->settled || dependent->failed || dependent->previous || dependent->beyond ||
               is_child_wanted(dependents, dependent);
}

bool prune_is_due(const struct dependents *dependents, const struct dependent *dependent)
{
        return !is_left_alone(dependents, dependent);
}

/* Nothing that was there before is deleted by an attempt that has failed, or may fail yet. */
static bool comes_later(const struct dependents *dependents)
{
        if (dependents->cleanup || dependents->undo || dependents->drop)
                return false;
        return dependents->failed.count > 0 || dependents->awaited > 0 ||
               (dependents->waiting[0] && dependents->run->action == ACTION_RECONCILE &&
                !dependents->run->watch->config->prune_before);
}

/* What those say that can refer to the object holds for the others, so they are judged first. */
static bool comes_in_second_pass(const struct dependents *dependents, const struct dependent *dependent)
{
        return dependents->cleanup &&
               dependents->prune.elsewhere == dependent_may_refer(&dependents->owner, dependent);
}

static int prune_one(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r;

        if (is_left_alone(dependents, dependent) || comes_in_second_pass(dependents, dependent))
                return 0;
        if (!dependents->cleanup && dependent_list_has(&dependents->kept, dependent)) {
                dependent->settled = true; /* another operator has it now */
                return 0;
        }
        r = dependent_is_owner(dependent, &dependents->owner) ? 2 : find_place(dependents, dependent);
        if (r == -ENXIO)
                return prune_search_kind(dependents, dependent);
        if (r == 1)
                return look_before_prune(dependents, dependent);
        dependent->settled = dependent->settled || r == 2;
        return r < 0 ? r : 0;
}

/* Dependents that the answer has left out are deleted once all wanted ones are there. */
int prune_left_out(struct dependents *dependents)
{
        int r;

        if (comes_later(dependents))
                return 0;
        dependents->pruning = true;
        r = dependents_each(dependents, &dependents->known, true, prune_one);
        if (r < 0 || !dependents->cleanup)
                return r;
        dependents->prune.elsewhere = true;
        return dependents_each(dependents, &dependents->known, true, prune_one);
}
