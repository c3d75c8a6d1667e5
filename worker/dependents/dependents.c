/* SPDX-License-Identifier: Apache-2.0 */
/* See children.h. One request at a time; each phase goes through its dependents, and starts over harmlessly.
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
#define LOOKUPS_MAX     2            /* of a dependent's kind, in one run */

/* ---- failures */

struct dependent *dependents_current(struct dependents *dependents)
{
        bool of_known = dependents->phase == DEPENDENTS_PRUNE || dependents->phase == DEPENDENTS_RESTORE ||
                        dependents->phase == DEPENDENTS_LOOK;
        struct dependent_list *list = dependents->phase == DEPENDENTS_RECALL ? &dependents->lost
                                      : of_known                             ? &dependents->known
                                                                             : &dependents->wanted;

        if (dependents->position >= list->count)
                return NULL;
        /* What was made last goes first. */
        return &list->item[dependents->phase == DEPENDENTS_PRUNE ? list->count - 1 - dependents->position
                                                                 : dependents->position];
}

void dependents_fail(struct dependents *dependents, struct dependent *dependent, const char *what,
                     const char *why)
{
        char name[600];

        dependents->failures++;
        if (!dependent)
                return;
        dependent->failed = true;
        if (dependents->trouble.size < TROUBLE_MAX)
                text_printf(&dependents->trouble, "%s%s %s: %.400s",
                            dependents->trouble.size > 0 ? "; " : "",
                            dependent_describe(dependent, name, sizeof(name)), what, why);
}

/* A dependent that failed through its own fault makes the run a failure of the object. A missing right in a
 * namespace that a handler has named does not concern the whole watch. */
enum run_result dependents_result(const struct dependents *dependents)
{
        return dependents->refused < dependents->failures ? RESULT_RETRY
               : dependents->unauthorized                 ? RESULT_FORBIDDEN
                                                          : RESULT_UNAVAILABLE;
}

void dependents_finish_failed(struct dependents *dependents)
{
        struct run *run = dependents->run;
        _cleanup_free_ char *trouble = text_take(&dependents->trouble), *cause = NULL;

        for (char *c = trouble; c && *c; c++)
                if (*c == '\n')
                        *c = ' ';
        if (dependents->undo && !dependents->wait) {
                rollback_finish(dependents, trouble);
                return;
        }
        if (asprintf(&cause, "%u of its children: %s", dependents->failures,
                     trouble ? trouble : "no memory to tell") < 0)
                cause = NULL;
        if (!run->watch->config->rollback || !rollback_begin(dependents, cause))
                run_finish(run, dependents_result(dependents), "%s", cause ? cause : "some of its children");
}

/* If the server cannot be asked just now, the next dependent would fare no better. Deletions and looks are tried
 * kind by kind: a 5xx may come from the one API behind the server that serves the kind. */
bool dependents_is_about_server(const struct dependents *dependents, const struct kube_error *error)
{
        return error->http_status == 0 || error->http_status == 401 || error->http_status == 429 ||
               (error->http_status >= 500 &&
                ((dependents->phase != DEPENDENTS_PRUNE && dependents->phase != DEPENDENTS_LOOK) ||
                 error->retry_after_sec > 0));
}

#define CLAIMED                                                                                             \
        "cannot be applied, because others have set fields of it (`children.force: true` takes them over)"

static bool is_claimed(const struct kube_error *error)
{
        return error->http_status == 409 && error->message &&
               strncmp(error->message, "Apply failed with ", strlen("Apply failed with ")) == 0;
}

/* Counts the failure of the dependent; false: the run was ended. */
bool dependents_take_refusal(struct dependents *dependents, const char *what, const struct kube_error *error,
                             const struct kube_response *response)
{
        struct dependent *dependent = dependents_current(dependents);
        enum run_result result = write_result_of(error);
        char words[WORDS_SIZE];
        bool secret;

        dependents->refused += result != RESULT_RETRY;
        dependents->silent = dependents->silent || result == RESULT_UNAVAILABLE;
        dependents->unauthorized = dependents->unauthorized || error->http_status == 401;
        write_note_failure(dependents->run, response);
        secret = dependent &&
                 is_confidential(dependents->run->worker, dependent->api_version, dependent->kind);
        dependents_fail(dependents, dependent, is_claimed(error) ? CLAIMED : what,
                        confidential_words(secret, error, words, sizeof(words)));
        if (dependents_is_about_server(dependents, error)) {
                dependents_finish_failed(dependents);
                return false;
        }
        if (dependent && error->http_status >= 500)
                dependents_leave_kind(dependents, dependent);
        dependents->position++;
        return true;
}

/* The same, unless the dependent is to be tried again. */
bool dependents_take_failure(struct dependents *dependents, const char *what,
                             const struct kube_response *response)
{
        struct dependent *dependent = dependents_current(dependents);

        /* Its kind may have moved, or gone, since it was looked up. */
        if (dependent && response->error.http_status == 404 && dependent->lookups < LOOKUPS_MAX) {
                kinds_forget(dependents->run->worker, dependent->api_version, dependent->kind);
                kube_resource_done(&dependent->resource);
                dependent->lookups = LOOKUPS_MAX - 1;
                return true;
        }
        return dependents_take_refusal(dependents, what, &response->error, response);
}

/* ---- looking kinds up */

/* Our knowledge of the kind may be stale: the kind is looked up anew before the handler is blamed. 1: the
 * run was ended; -ESTALE: look it up. */
static int settle_namespace(struct dependents *dependents, struct dependent *dependent)
{
        if (dependent->namespace_filled) {
                dependent->namespace_name[0] = '\0';
                dependent->namespace_filled = dependent->recorded = false;
        }
        if (dependent->resource.namespaced == (dependent->namespace_name[0] != '\0'))
                return 0;
        if (dependent->resource.namespaced && dependents->owner.namespace_name[0]) {
                free(dependent->namespace_name);
                dependent->namespace_name = strdup(dependents->owner.namespace_name);
                dependent->namespace_filled = true;
                return dependent->namespace_name ? 0 : -ENOMEM;
        }
        if (dependent->lookups == 0)
                return -ESTALE;
        run_finish(dependents->run, RESULT_PERMANENT,
                   "the handler's answer: children[%zu].metadata.namespace: %s", dependent->index,
                   dependent->resource.namespaced ? "is missing, and the object that owns it has none either"
                                                  : "its kind belongs to no namespace");
        return 1;
}

/* In the first phase: another dependent may bring it. */
static void note_no_kind(struct dependents *dependents, struct dependent *dependent, const char *why)
{
        if (dependents->phase == DEPENDENTS_APPLY && !wait_for_kind(dependents, dependent))
                dependents_fail(dependents, dependent, "cannot be applied", why);
        else if (dependents->phase == DEPENDENTS_RESTORE)
                dependents_fail(dependents, dependent, "cannot be restored", why);
        else if (dependents->phase == DEPENDENTS_LOOK)
                dependents_note_unready(dependents, dependent, why);
        else if (dependents->phase == DEPENDENTS_RECALL && !dependents_is_believed(dependents))
                dependents_fail(dependents, dependent, "cannot be looked for", why);
}

static void on_kind(struct kube_resource *resource, const struct kube_error *error,
                    const struct kube_response *response, void *userdata)
{
        struct dependents *dependents = userdata;
        struct run *run = dependents->run;
        struct dependent *dependent = dependents_current(dependents);

        run->discovery = NULL;
        if (resource) {
                if (kinds_keep(run->worker, dependent->api_version, resource) < 0)
                        run_finish(run, RESULT_RETRY, "no memory for the kinds of its children");
                else
                        dependents_advance(dependents);
        } else if (error->http_status == 404 && dependents->phase == DEPENDENTS_PRUNE) {
                prune_search_kind(dependents, dependent);
        } else if (error->http_status == 404) {
                note_no_kind(dependents, dependent, error->message);
                dependents->position++;
                dependents_advance(dependents);
        } else if (dependents->wait) {
                write_note_failure(run, response);
                dependents_note_refused(dependents, dependent, error);
                wait_finish(dependents);
        } else if (dependents_take_refusal(dependents, "cannot be looked up", error, response)) {
                dependents_advance(dependents);
        }
}

/* 0: the dependent's resource is known; 1: it is being asked for, or the run was ended. */
int dependents_resolve(struct dependents *dependents, struct dependent *dependent)
{
        struct run *run = dependents->run;
        int r;

        if (dependent->resource.plural)
                return 0;
        r = kinds_get(run->worker, dependent->api_version, dependent->kind, &dependent->resource);
        if (r >= 0 && dependent->text.start)
                r = settle_namespace(dependents, dependent);
        if (r == -ESTALE) {
                kinds_forget(run->worker, dependent->api_version, dependent->kind);
                kube_resource_done(&dependent->resource);
        } else if (r != -ENOENT) {
                return r;
        }
        dependent->lookups++;
        r = kube_discovery_start(run->worker->client, dependent->api_version, dependent->kind, on_kind,
                                 dependents, &run->discovery);
        return r < 0 ? r : 1;
}

/* An object that is its own dependent would be deleted as that. */
static int check_identities(struct dependents *dependents)
{
        const struct dependent_list *list = &dependents->wanted;

        for (size_t i = 0; i < list->count; i++) {
                if (dependent_is_owner(&list->item[i], &dependents->owner)) {
                        run_finish(dependents->run, RESULT_PERMANENT,
                                   "the handler's answer: children[%zu]: is the object itself, which cannot "
                                   "be its own child",
                                   list->item[i].index);
                        return 1;
                }
                for (size_t j = 0; j < i; j++)
                        if (dependent_is_same(&list->item[i], &list->item[j])) {
                                run_finish(dependents->run, RESULT_PERMANENT,
                                           "the handler's answer: children[%zu]: is the same object as "
                                           "children[%zu]",
                                           list->item[i].index, list->item[j].index);
                                return 1;
                        }
        }
        return 0;
}

static int resolve_next(struct dependents *dependents)
{
        struct dependent *dependent;

        while ((dependent = dependents_current(dependents))) {
                int r = dependents_resolve(dependents, dependent);

                if (r != 0)
                        return r;
                dependents->position++;
        }
        wait_take_over(dependents); /* only now is it known which of them are of the object's namespace */
        return check_identities(dependents);
}

/* ---- applying */

int dependents_request(struct dependents *dependents, const struct dependent *dependent, const char *method,
                       const struct text *body,
                       void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        struct run *run = dependents->run;
        _cleanup_free_ char *base =
                kube_path(&dependent->resource, dependent->namespace_name, dependent->name, NULL);
        _cleanup_text_ struct text path = TEXT_EMPTY;
        bool applies = strcmp(method, "PATCH") == 0;
        struct kube_request request = {
                .method = method,
                .content_type = applies ? APPLY_PATCH : NULL,
                .body = body ? body->data : NULL,
                .body_size = body ? body->size : 0,
                .timeout_usec = TIMEOUT_USEC,
                .on_done = on_done,
                .userdata = dependents,
        };
        int r;

        text_append_string(&path, base);
        if (applies) {
                kube_path_add(&path, "fieldManager", run->worker->config->operator_name);
                kube_path_add(&path, "force",
                              run->watch->config->children_force || dependents->undo ? "true" : "false");
        }
        if (!base || path.failed)
                return -ENOMEM;
        request.path = path.data;
        r = kube_client_start(run->worker->client, &request, &run->transfer);
        return r < 0 ? r : 1;
}

int dependents_send_body(struct dependents *dependents, const struct dependent *dependent,
                         const struct text *body,
                         void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        _cleanup_text_ struct text bound = TEXT_EMPTY;
        int r;

        if (!dependent->uid || !dependent->uid[0])
                return dependents_request(dependents, dependent, "PATCH", body, on_done);
        r = dependent_body_for(body, dependent->uid, &bound);
        return r < 0 ? r : dependents_request(dependents, dependent, "PATCH", &bound, on_done);
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
        struct dependents *dependents = userdata;
        struct run *run = dependents->run;
        struct dependent *dependent = dependents_current(dependents);

        run->transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE && is_going(response)) {
                dependents_fail(dependents, dependent, "cannot be applied",
                                "the one that is there is being deleted; it is made anew when that is gone");
                dependents->position++;
        } else if (response->error.failure == KUBE_FAILURE_NONE) {
                dependent->applied = true;
                previous_note_touched(dependent, response);
                unchanged_note_applied(dependents, response);
                wait_judge(dependents, dependent, response->body, response->body_size);
                dependents->position++;
        } else {
                dependent->touched =
                        dependent->looked && (response->error.http_status == 0 ||
                                              response->error.http_status >= 500); /* who knows */
                if (!dependents_take_failure(dependents, "cannot be applied", response))
                        return;
        }
        dependents_advance(dependents);
}

/* At what is there before it is applied: to undo it, to show what changes, or for fear that it is another
 * object's dependent: the API server, which sees one field manager, would let it change hands without a word. */
static bool must_look(const struct run *run, const struct dependent *dependent)
{
        return run->watch->config->rollback || recording_is_by_hand(run->worker->recording) ||
               (!run->watch->config->children_force && (dependent->is_new || run->order->attempt > 1));
}

/* 0: that would change nothing. */
static int apply_one(struct dependents *dependents, struct dependent *dependent)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = dependent_body(&dependents->owner, dependent, &body);

        if (r < 0)
                return r;
        dependent->applied = unchanged_is_applied(dependents, dependent, &body);
        if (dependent->applied)
                return 0;
        return must_look(dependents->run, dependent) && !dependent->looked
                       ? previous_look(dependents, dependent)
                       : dependents_send_body(dependents, dependent, &body, on_applied);
}

static int apply_next(struct dependents *dependents)
{
        struct dependent *dependent;

        while ((dependent = dependents_current(dependents))) {
                int r;

                if (dependent->applied || dependent->failed) {
                        dependents->position++;
                        continue;
                }
                r = dependents_resolve(dependents, dependent);
                if (r != 0)
                        return r;
                if (!dependent_list_has(&dependents->known, dependent)) {
                        /* Its kind came with another dependent. */
                        r = dependent->recorded ? -EBADMSG : check_identities(dependents);
                        return r != 0 ? r : remember_send(dependents);
                }
                r = apply_one(dependents, dependent);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* ---- the whole */

static const struct {
        /* 1: under way, or the run was ended; 0: the phase is over */
        int (*next)(struct dependents *dependents);
        bool of_apply, of_cleanup, of_undo, of_wait;
} phase_table[DEPENDENTS_PHASE_COUNT] = {
        [DEPENDENTS_RECALL] = {recall_next, .of_apply = true, .of_cleanup = true},
        [DEPENDENTS_RESOLVE] = {resolve_next, .of_apply = true},
        [DEPENDENTS_REMEMBER] = {remember_next, .of_apply = true},
        [DEPENDENTS_APPLY] = {apply_next, .of_apply = true},
        [DEPENDENTS_LOOK] = {wait_next, .of_wait = true},
        [DEPENDENTS_RESTORE] = {rollback_next, .of_undo = true},
        [DEPENDENTS_PRUNE] = {prune_next, .of_apply = true, .of_cleanup = true, .of_undo = true},
        [DEPENDENTS_FORGET] = {remember_forget_next, .of_apply = true},
};

static void all_done(struct dependents *dependents)
{
        struct run *run = dependents->run;

        if (dependents->wait) {
                wait_finish(dependents);
                return;
        }
        if (dependents->failures > 0 || dependents->undo) {
                dependents_finish_failed(dependents);
                return;
        }
        if (dependents->awaited > 0) {
                wait_begin_for_kinds(dependents);
                return;
        }
        if (run->resumed && !dependents_waiting(run))
                former_drop(run, &dependents->wanted);
        if (run->action == ACTION_FINALIZE && dependents->left > 0) {
                run->answer.not_done = true;
                if (run->answer.requeue_after_usec == 0 || run->answer.requeue_after_usec > LOOK_AGAIN_USEC)
                        run->answer.requeue_after_usec = LOOK_AGAIN_USEC;
        }
        write_step_done(run);
}

static bool is_due(const struct dependents *dependents, enum dependents_phase phase)
{
        if (dependents->wait)
                return phase_table[phase].of_wait;
        if (dependents->undo)
                return phase_table[phase].of_undo;
        return dependents->cleanup ? phase_table[phase].of_cleanup : phase_table[phase].of_apply;
}

void dependents_advance(struct dependents *dependents)
{
        struct run *run = dependents->run;

        while (dependents->phase < DEPENDENTS_PHASE_COUNT) {
                int r = 0;

                if (run->cancelled) {
                        run_finish(run, RESULT_CANCELLED,
                                   "the operator stops before all children were made");
                        return;
                }
                if (is_due(dependents, dependents->phase))
                        r = phase_table[dependents->phase].next(dependents);
                if (r < 0)
                        run_finish(run, RESULT_RETRY, "its children cannot be taken care of: %s",
                                   strerror(-r));
                if (r != 0)
                        return;
                dependents->phase++;
                dependents->position = 0;
                dependents->remembered = false;
        }
        all_done(dependents);
}

static int dependents_new(struct run *run, struct dependents **ret)
{
        struct dependents *dependents = calloc(1, sizeof(*dependents));
        const struct record_watch *config = run->watch->config;
        int r = -ENOMEM;

        if (!dependents)
                return r;
        dependents->run = run;
        dependents->cleanup = run->action != ACTION_RECONCILE;
        r = dependent_owner_init(&dependents->owner, config->api_version, config->kind, run->order->uid,
                                 run->order->key);
        dependents->owner.operator_name = run->worker->config->operator_name;
        dependents->owner.id = config->id;
        if (r >= 0)
                r = remember_read(dependents);
        if (r >= 0)
                r = recall_begin(dependents);
        if (r >= 0 && !dependents->cleanup)
                r = dependent_list_from_answer(run->answer.dependents_text, &dependents->wanted);
        if (r < 0) {
                dependents_free(dependents);
                return r;
        }
        *ret = dependents;
        return 0;
}

bool dependents_are_due(struct run *run)
{
        _cleanup_free_ char *record = NULL;

        if (run->action == ACTION_RECONCILE)
                return run->answer.dependents != NULL;
        if (run->answer.not_done)
                return false;
        record = notes_find_record(run, write_current_json(run));
        return (record ? record[0] : run->order->kinds[0]) || sibling_has_left_list(run);
}

/* Another tool's set on the same object: neither may take the other's members away. */
static bool is_of_others(const struct run *run)
{
        _cleanup_free_ char *tooling = notes_find(write_current_json(run), false, TOOLING_KEY);

        return tooling && strncmp(tooling, TOOLING, strlen("reconciled/")) != 0;
}

int dependents_send(struct run *run)
{
        int r;

        if (run->action == ACTION_RECONCILE && is_of_others(run)) {
                run_finish(run, RESULT_PERMANENT,
                           "the object is the parent of another tool's ApplySet (annotation " TOOLING_KEY
                           "); its children are not touched");
                return 0;
        }
        if (!run->dependents) {
                r = dependents_new(run, &run->dependents);
        } else {
                r = remember_join(run->dependents);
        }
        if (r < 0)
                return r;
        dependents_advance(run->dependents);
        return 0;
}

void dependents_free(struct dependents *dependents)
{
        if (!dependents)
                return;
        kube_search_cancel(dependents->search);
        dependent_owner_done(&dependents->owner);
        dependent_list_done(&dependents->wanted);
        dependent_list_done(&dependents->known);
        dependent_list_done(&dependents->kept);
        dependent_list_done(&dependents->lost);
        free(dependents->next_page);
        text_done(&dependents->trouble);
        park_plan_done(&dependents->plan);
        free(dependents);
}
