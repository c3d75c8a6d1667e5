/* SPDX-License-Identifier: Apache-2.0 */
/* See children.h. One request at a time; each phase goes through its children, and starts over harmlessly.
 */
#include "worker/confidential.h"
#include "worker/dependents/internal.h"
#include "worker/write/sibling.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "worker/dependents/parked/plan.h"
#include "worker/kinds.h"
#include "worker/recording.h"

#define APPLY_PATCH     "application/apply-patch+yaml"
#define TIMEOUT_USEC    (30 * USEC_PER_SEC)
#define LOOK_AGAIN_USEC USEC_PER_SEC /* whether what is being deleted has gone */
#define TROUBLE_MAX     1500         /* bytes of failures told */
#define LOOKUPS_MAX     2            /* of a child's kind, in one run */

/* ---- failures */

struct child_object *children_current_child(struct children *children)
{
        bool of_known = children->phase == PHASE_PRUNE || children->phase == PHASE_RESTORE ||
                        children->phase == PHASE_LOOK;
        struct child_list *list = children->phase == PHASE_RECALL ? &children->lost
                                  : of_known                      ? &children->known
                                                                  : &children->wanted;

        if (children->position >= list->count)
                return NULL;
        /* What was made last goes first. */
        return &list->child[children->phase == PHASE_PRUNE ? list->count - 1 - children->position
                                                           : children->position];
}

void children_fail(struct children *children, struct child_object *child, const char *what, const char *why)
{
        char name[600];

        children->failures++;
        if (!child)
                return;
        child->failed = true;
        if (children->trouble.size < TROUBLE_MAX)
                text_printf(&children->trouble, "%s%s %s: %.400s", children->trouble.size > 0 ? "; " : "",
                            child_describe(child, name, sizeof(name)), what, why);
}

/* A child that failed through its own fault makes the run a failure of the object. A missing right in a
 * namespace that a handler has named does not concern the whole watch. */
enum run_result children_result(const struct children *children)
{
        return children->refused < children->failures ? RESULT_RETRY
               : children->unauthorized               ? RESULT_FORBIDDEN
                                                      : RESULT_UNAVAILABLE;
}

void children_finish_failed(struct children *children)
{
        struct run *run = children->run;
        _cleanup_free_ char *trouble = text_take(&children->trouble), *cause = NULL;

        for (char *c = trouble; c && *c; c++)
                if (*c == '\n')
                        *c = ' ';
        if (children->undo && !children->wait) {
                children_finish_undo(children, trouble);
                return;
        }
        if (asprintf(&cause, "%u of its children: %s", children->failures,
                     trouble ? trouble : "no memory to tell") < 0)
                cause = NULL;
        if (!run->watch->config->rollback || !children_begin_undo(children, cause))
                run_finish(run, children_result(children), "%s", cause ? cause : "some of its children");
}

/* If the server cannot be asked just now, the next child would fare no better. Deletions and looks are tried
 * kind by kind: a 5xx may come from the one API behind the server that serves the kind. */
bool children_is_about_server(const struct children *children, const struct kube_error *error)
{
        return error->http_status == 0 || error->http_status == 401 || error->http_status == 429 ||
               (error->http_status >= 500 &&
                ((children->phase != PHASE_PRUNE && children->phase != PHASE_LOOK) ||
                 error->retry_after_sec > 0));
}

#define CLAIMED                                                                                             \
        "cannot be applied, because others have set fields of it (`children.force: true` takes them over)"

static bool is_claimed(const struct kube_error *error)
{
        return error->http_status == 409 && error->message &&
               strncmp(error->message, "Apply failed with ", strlen("Apply failed with ")) == 0;
}

/* Counts the failure of the child; false: the run was ended. */
bool children_take_refusal(struct children *children, const char *what, const struct kube_error *error,
                           const struct kube_response *response)
{
        struct child_object *child = children_current_child(children);
        enum run_result result = write_result_of(error);
        char words[WORDS_SIZE];
        bool secret;

        children->refused += result != RESULT_RETRY;
        children->silent = children->silent || result == RESULT_UNAVAILABLE;
        children->unauthorized = children->unauthorized || error->http_status == 401;
        write_note_failure(children->run, response);
        secret = child && is_confidential(children->run->worker, child->api_version, child->kind);
        children_fail(children, child, is_claimed(error) ? CLAIMED : what,
                      confidential_words(secret, error, words, sizeof(words)));
        if (children_is_about_server(children, error)) {
                children_finish_failed(children);
                return false;
        }
        if (child && error->http_status >= 500)
                children_leave_kind(children, child);
        children->position++;
        return true;
}

/* The same, unless the child is to be tried again. */
bool children_take_failure(struct children *children, const char *what, const struct kube_response *response)
{
        struct child_object *child = children_current_child(children);

        /* Its kind may have moved, or gone, since it was looked up. */
        if (child && response->error.http_status == 404 && child->lookups < LOOKUPS_MAX) {
                kind_forget(children->run->worker, child->api_version, child->kind);
                kube_resource_done(&child->resource);
                child->lookups = LOOKUPS_MAX - 1;
                return true;
        }
        return children_take_refusal(children, what, &response->error, response);
}

/* ---- looking kinds up */

/* Our knowledge of the kind may be stale: the kind is looked up anew before the handler is blamed. 1: the
 * run was ended; -ESTALE: look it up. */
static int settle_namespace(struct children *children, struct child_object *child)
{
        if (child->namespace_filled) {
                child->namespace_name[0] = '\0';
                child->namespace_filled = child->recorded = false;
        }
        if (child->resource.namespaced == (child->namespace_name[0] != '\0'))
                return 0;
        if (child->resource.namespaced && children->owner.namespace_name[0]) {
                free(child->namespace_name);
                child->namespace_name = strdup(children->owner.namespace_name);
                child->namespace_filled = true;
                return child->namespace_name ? 0 : -ENOMEM;
        }
        if (child->lookups == 0)
                return -ESTALE;
        run_finish(children->run, RESULT_PERMANENT,
                   "the handler's answer: children[%zu].metadata.namespace: %s", child->index,
                   child->resource.namespaced ? "is missing, and the object that owns it has none either"
                                              : "its kind belongs to no namespace");
        return 1;
}

/* In the first phase: another child may bring it. */
static void note_no_kind(struct children *children, struct child_object *child, const char *why)
{
        if (children->phase == PHASE_APPLY && !children_await_kind(children, child))
                children_fail(children, child, "cannot be applied", why);
        else if (children->phase == PHASE_RESTORE)
                children_fail(children, child, "cannot be restored", why);
        else if (children->phase == PHASE_LOOK)
                children_note_unready(children, child, why);
        else if (children->phase == PHASE_RECALL && !children_is_believed(children))
                children_fail(children, child, "cannot be looked for", why);
}

static void on_kind(struct kube_resource *resource, const struct kube_error *error,
                    const struct kube_response *response, void *userdata)
{
        struct children *children = userdata;
        struct run *run = children->run;
        struct child_object *child = children_current_child(children);

        run->discovery = NULL;
        if (resource) {
                if (kind_keep(run->worker, child->api_version, resource) < 0)
                        run_finish(run, RESULT_RETRY, "no memory for the kinds of its children");
                else
                        children_advance(children);
        } else if (error->http_status == 404 && children->phase == PHASE_PRUNE) {
                children_search_kind(children, child);
        } else if (error->http_status == 404) {
                note_no_kind(children, child, error->message);
                children->position++;
                children_advance(children);
        } else if (children->wait) {
                write_note_failure(run, response);
                children_note_refused(children, child, error);
                children_finish_wait(children);
        } else if (children_take_refusal(children, "cannot be looked up", error, response)) {
                children_advance(children);
        }
}

/* 0: the child's resource is known; 1: it is being asked for, or the run was ended. */
int children_resolve(struct children *children, struct child_object *child)
{
        struct run *run = children->run;
        int r;

        if (child->resource.plural)
                return 0;
        r = kind_get(run->worker, child->api_version, child->kind, &child->resource);
        if (r >= 0 && child->text.start)
                r = settle_namespace(children, child);
        if (r == -ESTALE) {
                kind_forget(run->worker, child->api_version, child->kind);
                kube_resource_done(&child->resource);
        } else if (r != -ENOENT) {
                return r;
        }
        child->lookups++;
        r = kube_discovery_start(run->worker->client, child->api_version, child->kind, on_kind, children,
                                 &run->discovery);
        return r < 0 ? r : 1;
}

/* An object that is its own child would be deleted as that. */
static int check_identities(struct children *children)
{
        const struct child_list *list = &children->wanted;

        for (size_t i = 0; i < list->count; i++) {
                if (child_is_owner(&list->child[i], &children->owner)) {
                        run_finish(children->run, RESULT_PERMANENT,
                                   "the handler's answer: children[%zu]: is the object itself, which cannot "
                                   "be its own child",
                                   list->child[i].index);
                        return 1;
                }
                for (size_t j = 0; j < i; j++)
                        if (child_is_same(&list->child[i], &list->child[j])) {
                                run_finish(children->run, RESULT_PERMANENT,
                                           "the handler's answer: children[%zu]: is the same object as "
                                           "children[%zu]",
                                           list->child[i].index, list->child[j].index);
                                return 1;
                        }
        }
        return 0;
}

static int resolve_next(struct children *children)
{
        struct child_object *child;

        while ((child = children_current_child(children))) {
                int r = children_resolve(children, child);

                if (r != 0)
                        return r;
                children->position++;
        }
        children_resume(children); /* only now is it known which of them are of the object's namespace */
        return check_identities(children);
}

/* ---- applying */

int children_request(struct children *children, const struct child_object *child, const char *method,
                     const struct text *body,
                     void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        struct run *run = children->run;
        _cleanup_free_ char *base = kube_path(&child->resource, child->namespace_name, child->name, NULL);
        _cleanup_text_ struct text path = TEXT_EMPTY;
        bool applies = strcmp(method, "PATCH") == 0;
        struct kube_request request = {
                .method = method,
                .content_type = applies ? APPLY_PATCH : NULL,
                .body = body ? body->data : NULL,
                .body_size = body ? body->size : 0,
                .timeout_usec = TIMEOUT_USEC,
                .on_done = on_done,
                .userdata = children,
        };
        int r;

        text_append_string(&path, base);
        if (applies) {
                kube_path_add(&path, "fieldManager", run->worker->config->operator_name);
                kube_path_add(&path, "force",
                              run->watch->config->children_force || children->undo ? "true" : "false");
        }
        if (!base || path.failed)
                return -ENOMEM;
        request.path = path.data;
        r = kube_client_start(run->worker->client, &request, &run->transfer);
        return r < 0 ? r : 1;
}

int children_send_body(struct children *children, const struct child_object *child, const struct text *body,
                       void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        _cleanup_text_ struct text bound = TEXT_EMPTY;
        int r;

        if (!child->uid || !child->uid[0])
                return children_request(children, child, "PATCH", body, on_done);
        r = child_body_for(body, child->uid, &bound);
        return r < 0 ? r : children_request(children, child, "PATCH", &bound, on_done);
}

/* What is applied to it goes with it. */
static bool is_going(const struct kube_response *response)
{
        struct scan_object object;

        return scan_object(response->body, response->body_size, &object) >= 0 &&
               object.deletion_timestamp.start;
}

static void on_applied(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct children *children = userdata;
        struct run *run = children->run;
        struct child_object *child = children_current_child(children);

        run->transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE && is_going(response)) {
                children_fail(children, child, "cannot be applied",
                              "the one that is there is being deleted; it is made anew when that is gone");
                children->position++;
        } else if (response->error.failure == KUBE_FAILURE_NONE) {
                child->applied = true;
                children_note_touched(child, response);
                children_note_applied(children, response);
                children_judge(children, child, response->body, response->body_size);
                children->position++;
        } else {
                child->touched = child->looked && (response->error.http_status == 0 ||
                                                   response->error.http_status >= 500); /* who knows */
                if (!children_take_failure(children, "cannot be applied", response))
                        return;
        }
        children_advance(children);
}

/* At what is there before it is applied: to undo it, to show what changes, or for fear that it is another
 * object's child: the API server, which sees one field manager, would let it change hands without a word. */
static bool must_look(const struct run *run, const struct child_object *child)
{
        return run->watch->config->rollback || record_is_by_hand(run->worker->record) ||
               (!run->watch->config->children_force && (child->is_new || run->order->attempt > 1));
}

/* 0: that would change nothing. */
static int apply_one(struct children *children, struct child_object *child)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = child_body(&children->owner, child, &body);

        if (r < 0)
                return r;
        child->applied = children_is_applied(children, child, &body);
        if (child->applied)
                return 0;
        return must_look(children->run, child) && !child->looked
                       ? children_look(children, child)
                       : children_send_body(children, child, &body, on_applied);
}

static int apply_next(struct children *children)
{
        struct child_object *child;

        while ((child = children_current_child(children))) {
                int r;

                if (child->applied || child->failed) {
                        children->position++;
                        continue;
                }
                r = children_resolve(children, child);
                if (r != 0)
                        return r;
                if (!child_list_has(&children->known, child)) {
                        /* Its kind came with another child. */
                        r = child->recorded ? -EBADMSG : check_identities(children);
                        return r != 0 ? r : children_send_record(children);
                }
                r = apply_one(children, child);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* ---- the whole */

static const struct {
        /* 1: under way, or the run was ended; 0: the phase is over */
        int (*next)(struct children *children);
        bool of_apply, of_cleanup, of_undo, of_wait;
} phase_table[PHASE_COUNT] = {
        [PHASE_RECALL] = {children_recall_next, .of_apply = true, .of_cleanup = true},
        [PHASE_RESOLVE] = {resolve_next, .of_apply = true},
        [PHASE_REMEMBER] = {children_remember_next, .of_apply = true},
        [PHASE_APPLY] = {apply_next, .of_apply = true},
        [PHASE_LOOK] = {children_look_next, .of_wait = true},
        [PHASE_RESTORE] = {children_restore_next, .of_undo = true},
        [PHASE_PRUNE] = {children_prune_next, .of_apply = true, .of_cleanup = true, .of_undo = true},
        [PHASE_FORGET] = {children_forget_next, .of_apply = true},
};

static void all_done(struct children *children)
{
        struct run *run = children->run;

        if (children->wait) {
                children_finish_wait(children);
                return;
        }
        if (children->failures > 0 || children->undo) {
                children_finish_failed(children);
                return;
        }
        if (children->awaited > 0) {
                children_begin_await(children);
                return;
        }
        if (run->resumed && !children_waiting(run))
                children_drop_former(run, &children->wanted);
        if (run->action == ACTION_FINALIZE && children->left > 0) {
                run->answer.not_done = true;
                if (run->answer.requeue_after_usec == 0 || run->answer.requeue_after_usec > LOOK_AGAIN_USEC)
                        run->answer.requeue_after_usec = LOOK_AGAIN_USEC;
        }
        write_step_done(run);
}

static bool is_due(const struct children *children, enum phase phase)
{
        if (children->wait)
                return phase_table[phase].of_wait;
        if (children->undo)
                return phase_table[phase].of_undo;
        return children->cleanup ? phase_table[phase].of_cleanup : phase_table[phase].of_apply;
}

void children_advance(struct children *children)
{
        struct run *run = children->run;

        while (children->phase < PHASE_COUNT) {
                int r = 0;

                if (run->cancelled) {
                        run_finish(run, RESULT_CANCELLED,
                                   "the operator stops before all children were made");
                        return;
                }
                if (is_due(children, children->phase))
                        r = phase_table[children->phase].next(children);
                if (r < 0)
                        run_finish(run, RESULT_RETRY, "its children cannot be taken care of: %s",
                                   strerror(-r));
                if (r != 0)
                        return;
                children->phase++;
                children->position = 0;
                children->remembered = false;
        }
        all_done(children);
}

static int children_new(struct run *run, struct children **ret)
{
        struct children *children = calloc(1, sizeof(*children));
        const struct record_watch *config = run->watch->config;
        int r = -ENOMEM;

        if (!children)
                return r;
        children->run = run;
        children->cleanup = run->action != ACTION_RECONCILE;
        r = child_owner_init(&children->owner, config->api_version, config->kind, run->order->uid,
                             run->order->key);
        children->owner.operator_name = run->worker->config->operator_name;
        children->owner.id = config->id;
        if (r >= 0)
                r = children_read_record(children);
        if (r >= 0)
                r = children_read_lost(children);
        if (r >= 0 && !children->cleanup)
                r = child_list_from_answer(run->answer.children_text, &children->wanted);
        if (r < 0) {
                children_free(children);
                return r;
        }
        *ret = children;
        return 0;
}

bool children_are_due(struct run *run)
{
        _cleanup_free_ char *record = NULL;

        if (run->action == ACTION_RECONCILE)
                return run->answer.children != NULL;
        if (run->answer.not_done)
                return false;
        record = children_find_record(run, write_current_json(run));
        return (record ? record[0] : run->order->kinds[0]) || sibling_has_left_list(run);
}

/* Another tool's set on the same object: neither may take the other's members away. */
static bool is_of_others(const struct run *run)
{
        _cleanup_free_ char *tooling = children_find_entry(write_current_json(run), false, TOOLING_KEY);

        return tooling && strncmp(tooling, TOOLING, strlen("reconciled/")) != 0;
}

int children_send(struct run *run)
{
        int r;

        if (run->action == ACTION_RECONCILE && is_of_others(run)) {
                run_finish(run, RESULT_PERMANENT,
                           "the object is the parent of another tool's ApplySet (annotation " TOOLING_KEY
                           "); its children are not touched");
                return 0;
        }
        if (!run->children) {
                r = children_new(run, &run->children);
        } else {
                r = children_join_record(run->children);
        }
        if (r < 0)
                return r;
        children_advance(run->children);
        return 0;
}

void children_free(struct children *children)
{
        if (!children)
                return;
        kube_search_cancel(children->search);
        child_owner_done(&children->owner);
        child_list_done(&children->wanted);
        child_list_done(&children->known);
        child_list_done(&children->kept);
        child_list_done(&children->lost);
        free(children->next_page);
        text_done(&children->trouble);
        settle_plan_done(&children->plan);
        free(children);
}
