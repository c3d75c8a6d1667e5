/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See prune.h. A dependent is settled when it was seen to be gone, or to belong to somebody else. Nothing
 * else lets it be forgotten: neither a refusal nor a server that does not answer.
 */
#include "worker/dependents/prune.h"

#include <errno.h>
#include <string.h>

#include "worker/dependents/notes.h"
#include "worker/kinds.h"
#include "worker/write/object.h"
#include "worker/write/refusal.h"

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

static void on_searched(struct kube_resource *resource, const struct kube_error *error,
                        const struct kube_response *response, void *userdata)
{
        struct dependents *dependents = userdata;
        struct dependent *dependent = dependents_current(dependents);
        int r = 0;

        dependents->prune.search = NULL;
        if (resource || (error->http_status == 404 && dependents_is_believed(dependents))) {
                r = settle_kind(dependents, dependent, resource);
                if (resource)
                        kube_resource_done(resource);
        } else {
                dependents_leave_kind(dependents, dependent);
                if (error->http_status == 404 || error->failure == KUBE_FAILURE_PROTOCOL)
                        dependents_fail(dependents, dependent, "cannot be deleted yet", error->message);
                else if (!dependents_take_refusal(dependents, "cannot be looked up", error, response))
                        return;
        }
        if (r < 0)
                run_finish(dependents->run, RESULT_RETRY, "no memory for the kinds of its children");
        else
                dependents_advance(dependents);
}

void prune_search_kind(struct dependents *dependents, const struct dependent *dependent)
{
        int r = kube_search_start(dependents->run->worker->client, dependent->api_version, dependent->kind,
                                  on_searched, dependents, &dependents->prune.search);

        if (r < 0)
                run_finish(dependents->run, RESULT_RETRY, "its children's kinds cannot be looked up: %s",
                           strerror(-r));
}

/* ---- one by one */

static void on_deleted(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct dependents *dependents = userdata;
        struct dependent *dependent = dependents_current(dependents);
        struct scan_object object = {0};
        bool going;

        dependents->run->request.transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE || kube_error_is_not_found(&response->error)) {
                /* A Status, or the object without the time of its deletion, means that the object is
                 * gone; with that time it is still being deleted. */
                going = response->error.failure == KUBE_FAILURE_NONE &&
                        (scan_object(response->body, response->body_size, &object) < 0 ||
                         object.deletion_timestamp.start);
                dependents->prune.left += going;
                if (dependent)
                        dependent->settled = !going;
                dependents->position++;
        } else if (!dependents_take_failure(dependents, "cannot be deleted", response)) {
                return;
        }
        dependents_advance(dependents);
}

static int delete_one(struct dependents *dependents, const struct dependent *dependent, struct span uid)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;

        text_append_string(&body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":"
                                  "\"Background\",\"preconditions\":{\"uid\":");
        text_append(&body, uid.start, uid.size);
        text_append_string(&body, "}}");
        return body.failed ? -ENOMEM
                           : dependents_request(dependents, dependent, "DELETE", &body, on_deleted);
}

/* Another watch of ours has applied it since. If the object goes, that watch cleans up, or is gone itself. A
 * dependent without an id is of the watch without one, if that has it in its list; else somebody took the id off. */
static bool is_of_other_watch(const struct dependents *dependents, const struct dependent *dependent,
                              const struct kube_response *response)
{
        const struct run *run = dependents->run;
        _cleanup_free_ char *id = notes_find_id(run, response->body);
        _cleanup_text_ struct text list = TEXT_EMPTY;

        if (id && (strcmp(id, run->watch->config->id) == 0 ||
                   (!id[0] && !dependent_list_has(&dependents->beside, dependent))))
                return false;
        text_printf(&list, "%s/%s%s" CHILDREN_NAME, run->worker->config->operator_name, id ? id : "",
                    id && id[0] ? "." : "");
        return !id || list.failed || !dependents->cleanup || !notes_are_left(run, list.data);
}

/* Returns 1: its deletion was requested. */
static int judge_found(struct dependents *dependents, const struct dependent *dependent,
                       const struct kube_response *response)
{
        _cleanup_free_ char *set = notes_find(response->body, true, NOTES_PART_OF);
        struct scan_object object;
        char name[600];
        int r = scan_object(response->body, response->body_size, &object);

        if (r < 0 || !object.uid.start)
                return r < 0 ? r : -EBADMSG;
        /* Another object has this name now. */
        if (dependent->uid && dependent->uid[0] && !scan_string_equals(object.uid, dependent->uid))
                return 0;
        if (!set || strcmp(set, dependents->owner.set) != 0) {
                log_warning("watch %s, %s: %s is not deleted: it does not carry the label " NOTES_PART_OF
                            "=%s any more, and counts as somebody else's",
                            dependents->run->order->watch, dependents->run->order->key,
                            dependent_describe(dependent, name, sizeof(name)), dependents->owner.set);
                return 0;
        }
        if (is_of_other_watch(dependents, dependent, response))
                return 0;
        if (!object.deletion_timestamp.start)
                return delete_one(dependents, dependent, object.uid);
        dependents->prune.left++;
        return 0;
}

static void on_found(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                     void *userdata)
{
        struct dependents *dependents = userdata;
        struct run *run = dependents->run;
        struct dependent *dependent = dependents_current(dependents);
        size_t left = dependents->prune.left;
        int r;

        run->request.transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(&response->error)) {
                if (dependents_take_failure(dependents, "cannot be looked at", response))
                        dependents_advance(dependents);
                return;
        }
        r = response->error.failure != KUBE_FAILURE_NONE ? 0 : judge_found(dependents, dependent, response);
        if (r < 0) {
                run_finish(run, RESULT_RETRY, "one of its children cannot be deleted: %s", strerror(-r));
        } else if (r == 0) {
                dependent->settled = dependents->prune.left == left;
                dependents->position++;
                dependents_advance(dependents);
        }
}

/* Finds the resource. 0: the dependent is where the record says; 1: its kind is being looked up, or the
 * run was ended; 2: nothing is left to do. A kind that was namespaced and is not now, or the reverse, is
 * another kind of the same name. */
static int find_place(struct dependents *dependents, struct dependent *dependent)
{
        int r = dependents_resolve(dependents, dependent);

        if (r != 0 || dependent->resource.namespaced == (dependent->namespace_name[0] != '\0'))
                return r;
        if (dependent->lookups > 0)
                return 2;
        kinds_forget(dependents->run->worker, dependent->api_version, dependent->kind);
        kube_resource_done(&dependent->resource);
        return dependents_resolve(dependents, dependent);
}

/* ---- another object of the same name */

static int take_heirs(const char *key _unused_, const struct dependent_list *list, void *userdata)
{
        int r = 0;

        for (size_t i = 0; i < list->count && r >= 0; i++)
                r = dependent_list_copy(&list->item[i], userdata);
        return r;
}

static bool is_same_object(const struct run *run, const struct kube_response *response)
{
        struct scan_object object;

        return scan_object(response->body, response->body_size, &object) >= 0 &&
               scan_string_equals(object.uid, run->order->uid);
}

/* Another object may have taken the name. Its dependents carry the same label, so those in its lists are
 * kept. */
static void on_heir(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                    void *userdata)
{
        struct run *run = userdata;
        struct dependents *dependents = run->dependents;
        int r = 0;

        run->request.transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE)
                r = is_same_object(run, response)
                            ? 0 /* the finalizers of others hold it */
                            : notes_visit_records(response->body, take_heirs, &dependents->wanted);
        else if (!kube_error_is_not_found(&response->error) &&
                 (response->error.http_status != 404 || !dependents_is_believed(dependents))) {
                refusal_note(run, response);
                run_finish(run, refusal_result(&response->error),
                           "its children are not deleted yet: cannot tell whether another object has "
                           "its name: %s",
                           response->error.message);
                return;
        }
        dependents->prune.heir_known = true;
        if (r < 0)
                run_finish(run, RESULT_RETRY, "its children cannot be processed: %s", strerror(-r));
        else
                dependents_advance(dependents);
}

/* ---- all of them */

static bool is_left_alone(const struct dependents *dependents, const struct dependent *dependent)
{
        return dependent->settled || dependent->failed || dependent->previous ||
               dependent_list_has(&dependents->wanted, dependent);
}

/* Dependents that the answer has left out are deleted once all wanted ones are there. */
int prune_next(struct dependents *dependents)
{
        struct run *run = dependents->run;
        struct dependent *dependent;
        int r;

        if (!dependents->prune.begun && !dependents->cleanup && !dependents->undo &&
            (dependents->failed.count > 0 || dependents->awaited > 0))
                return 0;
        dependents->prune.begun = true;
        if (run_is_of_deletion(run) && !dependents->prune.heir_known) {
                r = object_get(run, on_heir);
                return r < 0 ? r : 1;
        }
        for (; (dependent = dependents_current(dependents)); dependents->position++) {
                if (is_left_alone(dependents, dependent))
                        continue;
                if (!dependents->cleanup && dependent_list_has(&dependents->kept, dependent)) {
                        dependent->settled = true; /* another operator has it now */
                        continue;
                }
                r = dependent_is_owner(dependent, &dependents->owner) ? 2
                                                                      : find_place(dependents, dependent);
                if (r == 0)
                        return dependents_request(dependents, dependent, "GET", NULL, on_found);
                if (r != 2)
                        return r;
                dependent->settled = true;
        }
        return 0;
}
