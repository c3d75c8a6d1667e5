/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting what was left out, and everything when the object goes. A child is over when it was seen to be
 * gone, or to be somebody else's; nothing else lets it be forgotten, neither a refusal nor a server that
 * does not answer.
 */
#include <errno.h>
#include <string.h>

#include "worker/dependents/internal.h"
#include "worker/kinds.h"
#include "worker/write/sibling.h"

#define UNSERVED_MAX 3 /* attempts, until a kind that is not served counts as gone */

/* ---- kinds that are not served as they were */

void children_leave_kind(struct children *children, const struct child_object *child)
{
        for (size_t i = 0; i < children->known.count && children->phase == PHASE_PRUNE; i++)
                if (child_is_same_kind(&children->known.child[i], child))
                        children->known.child[i].failed = true;
}

/* A server that is another one for a moment does not serve what was there and will be. */
bool children_is_believed(const struct children *children)
{
        return children->undo || children->run->order->attempt >= UNSERVED_MAX;
}

/* The answer about the child's kind holds for all children of that kind. */
static int settle_kind(struct children *children, const struct child_object *child,
                       const struct kube_resource *resource)
{
        int r = 0;

        for (size_t i = 0; i < children->known.count && r >= 0; i++) {
                struct child_object *other = &children->known.child[i];

                if (!child_is_same_kind(other, child) || other->resource.plural || other->settled)
                        continue;
                other->settled = !resource; /* its objects are gone with it */
                other->lookups += other != child;
                if (resource)
                        r = kind_copy(resource, &other->resource);
        }
        return r;
}

static void on_searched(struct kube_resource *resource, const struct kube_error *error,
                        const struct kube_response *response, void *userdata)
{
        struct children *children = userdata;
        struct child_object *child = children_current_child(children);
        int r = 0;

        children->search = NULL;
        if (resource || (error->http_status == 404 && children_is_believed(children))) {
                r = settle_kind(children, child, resource);
                if (resource)
                        kube_resource_done(resource);
        } else {
                children_leave_kind(children, child);
                if (error->http_status == 404 || error->failure == KUBE_FAILURE_PROTOCOL)
                        children_fail(children, child, "cannot be deleted yet", error->message);
                else if (!children_take_refusal(children, "cannot be looked up", error, response))
                        return;
        }
        if (r < 0)
                run_finish(children->run, RESULT_RETRY, "no memory for the kinds of its children");
        else
                children_advance(children);
}

void children_search_kind(struct children *children, const struct child_object *child)
{
        int r = kube_search_start(children->run->worker->client, child->api_version, child->kind,
                                  on_searched, children, &children->search);

        if (r < 0)
                run_finish(children->run, RESULT_RETRY, "its children's kinds cannot be looked up: %s",
                           strerror(-r));
}

/* ---- one by one */

static void on_deleted(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct children *children = userdata;
        struct child_object *child = children_current_child(children);
        struct scan_object object = {0};
        bool going;

        children->run->transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE || kube_error_is_not_found(&response->error)) {
                /* A Status, or the object as it was, means that it is gone; with the time of its deletion
                 * it is going. */
                going = response->error.failure == KUBE_FAILURE_NONE &&
                        (scan_object(response->body, response->body_size, &object) < 0 ||
                         object.deletion_timestamp.start);
                children->left += going;
                if (child)
                        child->settled = !going;
                children->position++;
        } else if (!children_take_failure(children, "cannot be deleted", response)) {
                return;
        }
        children_advance(children);
}

static int delete_one(struct children *children, const struct child_object *child, struct span uid)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;

        text_append_string(&body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":"
                                  "\"Background\",\"preconditions\":{\"uid\":");
        text_append(&body, uid.start, uid.size);
        text_append_string(&body, "}}");
        return body.failed ? -ENOMEM : children_request(children, child, "DELETE", &body, on_deleted);
}

/* 1: its deletion was started. */
static int judge_found(struct children *children, const struct child_object *child,
                       const struct kube_response *response)
{
        _cleanup_free_ char *set = children_find_entry(response->body, true, PART_OF_KEY);
        struct scan_object object;
        char name[600];
        int r = scan_object(response->body, response->body_size, &object);

        if (r < 0 || !object.uid.start)
                return r < 0 ? r : -EBADMSG;
        /* Another object has this name now. */
        if (child->uid && child->uid[0] && !scan_string_equals(object.uid, child->uid))
                return 0;
        if (!set || strcmp(set, children->owner.set) != 0) {
                log_warning("watch %s, %s: %s is not deleted: it does not carry the label " PART_OF_KEY
                            "=%s any more, and counts as somebody else's",
                            children->run->order->watch, children->run->order->key,
                            child_describe(child, name, sizeof(name)), children->owner.set);
                return 0;
        }
        if (!object.deletion_timestamp.start)
                return delete_one(children, child, object.uid);
        children->left++;
        return 0;
}

static void on_found(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                     void *userdata)
{
        struct children *children = userdata;
        struct run *run = children->run;
        struct child_object *child = children_current_child(children);
        size_t left = children->left;
        int r;

        run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(&response->error)) {
                if (children_take_failure(children, "cannot be looked at", response))
                        children_advance(children);
                return;
        }
        r = response->error.failure != KUBE_FAILURE_NONE ? 0 : judge_found(children, child, response);
        if (r < 0) {
                run_finish(run, RESULT_RETRY, "a child of it cannot be deleted: %s", strerror(-r));
        } else if (r == 0) {
                child->settled = children->left == left;
                children->position++;
                children_advance(children);
        }
}

/* 0: it is found where the record says; 1: its kind is being asked for, or the run was ended; 2: it is over.
 * A kind that belongs to namespaces and did not, or the reverse, is another one of its name. */
static int find_place(struct children *children, struct child_object *child)
{
        int r = children_resolve(children, child);

        if (r != 0 || child->resource.namespaced == (child->namespace_name[0] != '\0'))
                return r;
        if (child->lookups > 0)
                return 2;
        kind_forget(children->run->worker, child->api_version, child->kind);
        kube_resource_done(&child->resource);
        return children_resolve(children, child);
}

/* ---- another object of the same name */

static int take_heirs(const char *key _unused_, const struct child_list *list, void *userdata)
{
        int r = 0;

        for (size_t i = 0; i < list->count && r >= 0; i++)
                r = children_copy(&list->child[i], userdata);
        return r;
}

/* Children in the lists of the object that has the name now are kept: both objects' sets have one label. */
static void on_heir(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                    void *userdata)
{
        struct run *run = userdata;
        struct children *children = run->children;
        int r = 0;

        run->transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE)
                r = sibling_visit_records(response->body, take_heirs, &children->wanted);
        else if (!kube_error_is_not_found(&response->error) &&
                 (response->error.http_status != 404 || !children_is_believed(children))) {
                write_note_failure(run, response);
                run_finish(run, write_result_of(&response->error),
                           "its children are not deleted yet: whether another object has its name cannot be "
                           "seen: %s",
                           response->error.message);
                return;
        }
        children->heir_known = true;
        if (r < 0)
                run_finish(run, RESULT_RETRY, "its children cannot be taken care of: %s", strerror(-r));
        else
                children_advance(children);
}

/* ---- all of them */

static bool is_left_alone(const struct children *children, const struct child_object *child)
{
        return child->settled || child->failed || child->previous ||
               child_list_has(&children->wanted, child);
}

/* Children that were left out are deleted once all wanted ones are there. */
int children_prune_next(struct children *children)
{
        struct run *run = children->run;
        struct child_object *child;
        int r;

        if (!children->pruning && !children->cleanup && !children->undo &&
            (children->failures > 0 || children->awaited > 0))
                return 0;
        children->pruning = true;
        if (run->order->action == ACTION_DELETED && !children->heir_known) {
                r = write_get(run, on_heir);
                return r < 0 ? r : 1;
        }
        for (; (child = children_current_child(children)); children->position++) {
                if (is_left_alone(children, child))
                        continue;
                if (!children->cleanup && child_list_has(&children->kept, child)) {
                        child->settled = true; /* it is another one's now */
                        continue;
                }
                r = child_is_owner(child, &children->owner) ? 2 : find_place(children, child);
                if (r == 0)
                        return children_request(children, child, "GET", NULL, on_found);
                if (r != 2)
                        return r;
                child->settled = true;
        }
        return 0;
}
