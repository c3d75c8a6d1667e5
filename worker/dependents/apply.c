/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/apply.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "worker/dependents/ownership.h"
#include "worker/dependents/parked/managed-fields.h"
#include "worker/dependents/parked/wait.h"
#include "worker/dependents/remember.h"
#include "worker/recording.h"
#include "worker/run/shown.h"
#include "worker/tenure.h"
#include "worker/write/leaving.h"
#include "worker/write/object.h"

#define CONFLICTS_MAX 10 /* of one child in a run, with what others write meanwhile */

/* ---- which objects they are */

/* An object that is its own dependent would be deleted as such. */
static int check_identities(struct dependents *dependents)
{
        const struct dependent_list *list = &dependents->wanted;

        for (size_t i = 0; i < list->count; i++) {
                if (ownership_is_marked(&dependents->owner, list->item[i].text))
                        return run_finish(
                                dependents->run, RESULT_PERMANENT,
                                "the handler's answer: children[%zu].metadata.annotations: %s/" MADE_NAME
                                " and %s/" ADOPTED_NAME " are set by reconciled",
                                list->item[i].index, dependents->owner.operator_name,
                                dependents->owner.operator_name);
                if (dependent_is_owner(&list->item[i], &dependents->owner))
                        return run_finish(
                                dependents->run, RESULT_PERMANENT,
                                "the handler's answer: children[%zu]: is the object itself, which cannot "
                                "be its own child",
                                list->item[i].index);
                for (size_t j = 0; j < i; j++)
                        if (dependent_is_same(&list->item[i], &list->item[j]))
                                return run_finish(
                                        dependents->run, RESULT_PERMANENT,
                                        "the handler's answer: children[%zu]: is the same object as "
                                        "children[%zu]",
                                        list->item[i].index, list->item[j].index);
        }
        return 0;
}

/* A child whose kind is not served has not failed yet: another child may define the kind. */
static int resolve_child(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r = dependents_resolve(dependents, dependent);

        return r == -ENXIO || r > 0 ? 0 : r;
}

int apply_resolve(struct dependents *dependents)
{
        int r = dependents_each(dependents, &dependents->wanted, false, resolve_child);

        if (r < 0)
                return r;
        wait_take_over(dependents); /* only now their namespaces are known */
        return check_identities(dependents);
}

/* ---- whose it is */

static const struct shown_child *find_shown(const struct dependents *dependents,
                                            const struct dependent *dependent,
                                            const struct record_watch *owned)
{
        char key[IDENTITY_KEY_MAX + 1];

        return shown_find(&dependents->run->shown, owned, dependent_key(dependent, key));
}

static void refuse_child(struct dependents *dependents, struct dependent *dependent, const char *why)
{
        dependent->foreign = true;
        dependents_fail(dependents, dependent, "is not applied", why);
}

static void refuse_foreign(struct dependents *dependents, struct dependent *dependent,
                           const struct ownership_view *view)
{
        char why[900];

        snprintf(why, sizeof(why), "%s; %s",
                 view->whose == OWNERSHIP_FORMER
                         ? "it is of a former object of this name, whose cleanup may not be over"
                         : view->holder,
                 view->whose == OWNERSHIP_FORMER
                         ? "wait for that, delete what is there, or take it over (`children.heirs: marked`)"
                 : view->claimed ? "give the child another name, or have it let go there"
                                 : "give the child another name, delete what is there, or take it over: "
                                   "{\"manifest\": {the object}, \"adopt\": true}");
        refuse_child(dependents, dependent, why);
}

/* The other watch of ours that has the dependent, if that watch still names it and selects the object as
 * well; NULL if the dependent is free. */
static const struct record_watch *find_holder(const struct dependents *dependents,
                                              const struct dependent *dependent,
                                              const struct ownership_view *view)
{
        return view->whose == OWNERSHIP_TWIN && dependent_list_has(&dependents->beside, dependent)
                       ? leaving_find(dependents->run, view->id)
                       : NULL;
}

/* An object that was made again has no list; then the mark of the former one of its name may be enough. */
static bool is_heir(const struct dependents *dependents, const struct dependent *dependent,
                    const struct ownership_view *view)
{
        const struct record_watch *config = dependents->run->watch->config;

        return view->whose == OWNERSHIP_FORMER &&
               (!dependent->is_new || (config->children_heirs && strcmp(view->id, config->id) == 0));
}

/* Whether it may be written. */
static bool may_take(struct dependents *dependents, struct dependent *dependent,
                     const struct ownership_view *view)
{
        const struct record_watch *holder = find_holder(dependents, dependent, view);
        char why[300];

        if (view->going || view->whose == OWNERSHIP_FALLEN) {
                dependents_fail(dependents, dependent, "cannot be applied",
                                "the existing object is being deleted; a new one is made when it is gone");
                return false;
        }
        if (holder) {
                snprintf(
                        why, sizeof(why),
                        "watch %s has it already, for the same object: only one of the watches of a kind may "
                        "name a child",
                        holder->name);
                refuse_child(dependents, dependent, why);
                return false;
        }
        dependent->adopted = !view->made;
        if (view->whose == OWNERSHIP_OURS || view->whose == OWNERSHIP_TWIN ||
            is_heir(dependents, dependent, view))
                return true;
        dependent->adopted = true;
        if (!view->claimed && (dependent->adopt || dependents->run->watch->config->children_adopt)) {
                dependent->adopting = true;
                return true;
        }
        refuse_foreign(dependents, dependent, view);
        return false;
}

/* Takes the dependent as the server has it. */
static int judge_found(struct dependents *dependents, struct dependent *dependent, const char *json,
                       size_t size)
{
        struct ownership_view view;
        int r = ownership_judge(&dependents->owner, dependent, json, size, &view);

        if (r < 0)
                return r;
        dependent->judged = true;
        dependent->absent = false;
        if (!may_take(dependents, dependent, &view))
                return 0;
        /* The mark of an adopted one was set by a merge patch, and that of a restored one by whoever restored it: an apply
         * of another value conflicts with those. */
        dependent->renamed = view.renamed;
        dependent->inherited = view.whose == OWNERSHIP_FORMER;
        dependent->remark = dependent->renamed || dependent->inherited ||
                            (dependent->adopted && !dependent->adopting && view.whose != OWNERSHIP_OURS);
        dependent->unreferred =
                !dependent->adopted && !view.referred && dependent_may_refer(&dependents->owner, dependent);
        free(dependent->uid);
        free(dependent->version);
        free(dependent->before);
        dependent->uid = strdup(view.uid);
        dependent->version = strdup(view.version);
        dependent->before = strndup(json, size);
        return dependent->uid && dependent->version && dependent->before ? 0 : -ENOMEM;
}

/* ---- as the handler was shown it */

static int finish_outdated(const struct dependents *dependents, const struct dependent *dependent,
                           const char *how)
{
        char name[600];

        return run_finish(dependents->run, RESULT_CONFLICT, "%s %s; " SHOWN_AGAIN,
                          dependent_describe(dependent, name, sizeof(name)), how);
}

/* Whether what was there before an apply must be known: to be able to undo it, or to show what it changes. */
static bool must_keep_former(const struct dependents *dependents)
{
        return dependents->run->watch->config->rollback ||
               recording_is_by_hand(dependents->run->worker->recording);
}

static int keep_former(struct dependents *dependents, struct dependent *dependent,
                       const struct kube_response *response)
{
        int r;

        if (!must_keep_former(dependents) || dependent->looked)
                return 0;
        dependent->looked = true;
        r = managed_fields_body(response->body, dependents->run->worker->config->operator_name,
                                &dependent->previous);
        if (r != -E2BIG)
                return r;
        dependents_fail(
                dependents, dependent, "is not applied",
                "one of its lists has more than 1,000 elements, too many to undo it later; shorten the list, or "
                "take `onFailure: rollback` away");
        return 0;
}

/* A resync, a start and a request by hand should repair what was overlooked; and after a failure no request
 * should be saved. */
static bool is_for_all(const struct run *run)
{
        switch (run->order->reason) {
        case RUN_RESYNC:
        case RUN_REQUESTED:
        case RUN_START:
                return true;
        default:
                return run->order->attempt > 1;
        }
}

/* Whether applying this body to the object in `json` would change nothing; then it is judged for readiness. */
static bool is_unchanged(struct dependents *dependents, struct dependent *dependent, const struct text *body,
                         const char *json, size_t size)
{
        struct applied_text text = applied_text_of(&dependents->owner, dependent, body);
        uint64_t state;

        if (dependent->is_new || is_for_all(dependents->run) || applied_state_of(json, size, &state) < 0 ||
            !applied_made(dependents->run->worker->applied, &text, state))
                return false;
        wait_judge(dependents, dependent, json, size);
        return true;
}

/* json: the present object. If an apply would change nothing, it counts as applied. */
static int note_unchanged(struct dependents *dependents, struct dependent *dependent, const char *json,
                          size_t size)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = dependent_body(&dependents->owner, dependent, &body);

        if (r >= 0)
                dependent->applied = is_unchanged(dependents, dependent, &body, json, size);
        if (dependent->applied)
                free(TAKE_PTR(dependent->before));
        return r < 0 ? r : 0;
}

/* A child that the store still has as it was shown needs no request. Returns 1 if it was judged. */
static int judge_shown(struct dependents *dependents, struct dependent *dependent,
                       const struct shown_child *shown)
{
        _cleanup_(store_object_done) struct store_object object = {0};
        int r;

        if (!dependents_in_store(dependents, dependent, shown->config, &object) ||
            strcmp(object.resource_version, shown->version) != 0 || strcmp(object.uid, shown->uid) != 0)
                return 0;
        r = judge_found(dependents, dependent, object.json, object.json_size);
        if (r >= 0 && !dependent->failed)
                r = note_unchanged(dependents, dependent, object.json, object.json_size);
        return r < 0 ? r : 1;
}

static int take_found(struct dependents *dependents, struct dependent *dependent,
                      const struct kube_response *response)
{
        const struct record_watch *owned = dependents_find_owned(dependents, dependent);
        const struct shown_child *shown = owned ? find_shown(dependents, dependent, owned) : NULL;
        int r = judge_found(dependents, dependent, response->body, response->body_size);

        if (r < 0 || dependent->failed)
                return r;
        dependent->unseen = owned && !shown && dependent->adopting;
        if (owned && !shown && !dependent->touched && !dependent->adopting)
                return finish_outdated(dependents, dependent, "is there, and the handler was not shown it");
        if (shown && !dependent->touched && !shown_is_same(shown, response->body, response->body_size))
                return finish_outdated(dependents, dependent, "has changed since the handler was shown it");
        r = keep_former(dependents, dependent, response);
        return r < 0 || dependent->failed
                       ? r
                       : note_unchanged(dependents, dependent, response->body, response->body_size);
}

static int take_absence(struct dependents *dependents, struct dependent *dependent)
{
        const struct record_watch *owned = dependents_find_owned(dependents, dependent);

        if (owned && find_shown(dependents, dependent, owned) && !dependent->touched)
                return finish_outdated(dependents, dependent, "is gone since the handler was shown it");
        dependent->judged = dependent->absent = true;
        return 0;
}

/* 1: it was judged; else as for dependents_each(). */
static int look_before_apply(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r = dependents_look(dependents, dependent, &answer);

        if (r <= 0)
                return r;
        r = answer.response.error.failure == KUBE_FAILURE_NONE
                    ? take_found(dependents, dependent, &answer.response)
                    : take_absence(dependents, dependent);
        return r < 0 ? run_finish(dependents->run, RESULT_RETRY, "one of its children cannot be read") : 1;
}

/* Likewise. */
static int find_out(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        const struct record_watch *owned = dependents_find_owned(dependents, dependent);
        const struct shown_child *shown = owned ? find_shown(dependents, dependent, owned) : NULL;
        bool is_first = dependent->conflicts == 0 && !dependent->touched;
        int r = 0;

        /* The server decides: it answers 409 if the object exists. */
        if (owned && !shown && is_first && !recording_is_by_hand(dependents->run->worker->recording)) {
                dependent->judged = dependent->absent = true;
                return 1;
        }
        if (shown && is_first && !must_keep_former(dependents))
                r = judge_shown(dependents, dependent, shown);
        return r != 0 ? r : look_before_apply(dependents, dependent);
}

/* ---- applying */

static void note_written(struct dependent *dependent, const struct kube_response *response)
{
        struct scan_object object;
        char *version = NULL;

        dependent->applied = true;
        free(TAKE_PTR(dependent->before));
        if (scan_object(response->body, response->body_size, &object) < 0)
                return;
        if (scan_string(object.resource_version, &version) < 0 || !dependent->version ||
            strcmp(dependent->version, version) != 0)
                dependent->touched = true;
        dependent->looked = dependent->looked || dependent->absent;
        free(dependent->version);
        dependent->version = version;
        (void)dependent_set_uid(dependent, object.uid);
}

/* Whatever is applied to an object that is being deleted goes with it. */
/* Whether the answer has the version that the write was bound to. */
static bool is_version(const struct kube_response *response, const char *version)
{
        struct scan_object object;

        return version && scan_object(response->body, response->body_size, &object) >= 0 &&
               scan_string_equals(object.resource_version, version);
}

static void tell_applied(const struct dependents *dependents, const struct dependent *dependent,
                         const struct kube_response *response)
{
        if (dependent->absent)
                dependents_tell(dependents, dependent, CHILD_CREATED, "");
        if (dependent->adopting)
                dependents_tell(dependents, dependent, CHILD_ADOPTED, "");
        if (dependent->absent || !dependent->before || is_version(response, dependent->version))
                return;
        if (!dependents_tell_changed(dependents, dependent, CHILD_CHANGED, response))
                dependents_tell(dependents, dependent, CHILD_CHANGED, "metadata.managedFields");
        else if (!dependent->adopting)
                applied_count_repair(dependents->run->worker->applied, &dependents->sent,
                                     clock_boottime_usec());
}

/* If something takes the mark off, the operator does not recognize its own child later. */
static void check_mark(struct dependents *dependents, struct dependent *dependent,
                       const struct kube_response *response)
{
        struct ownership_view view;
        char why[500];

        if (ownership_judge(&dependents->owner, dependent, response->body, response->body_size, &view) < 0 ||
            (dependent->adopted ? view.whose == OWNERSHIP_OURS : view.made))
                return;
        snprintf(
                why, sizeof(why),
                "a webhook of the API server has taken off its mark, the annotation %.128s/%s, without which it is not "
                "known as ours again; have the webhook leave that alone, and delete the child",
                dependents->owner.operator_name, dependent->adopted ? ADOPTED_NAME : MADE_NAME);
        dependents_fail(dependents, dependent, "cannot be kept", why);
}

/* Whether somebody has written to the object, or created it, since it was judged. */
static bool is_apply_overtaken(const struct dependent *dependent, const struct kube_error *error)
{
        return error->other_uid ||
               (error->http_status == 409 && (dependent->absent || !dependents_is_claimed(error)));
}

static int look_again(struct dependents *dependents, struct dependent *dependent)
{
        dependent->judged = false;
        if (++dependent->conflicts <= CONFLICTS_MAX)
                return -EAGAIN;
        dependents_fail(dependents, dependent, "cannot be applied", "others write to it all the time");
        return 0;
}

/* So that the same text is not applied again while the object is in this state. */
static void note_state(struct dependents *dependents, const struct kube_response *response)
{
        uint64_t state;

        if (applied_state_of(response->body, response->body_size, &state) >= 0)
                applied_keep(dependents->run->worker->applied, &dependents->sent, state);
}

/* What a POST has set counts as an update, from which no apply takes anything away. */
static void take_posted(struct dependents *dependents, struct dependent *dependent,
                        const struct kube_response *response)
{
        note_written(dependent, response);
        dependent->before = strndup(response->body, response->body_size);
        dependent->absent = dependent->applied = false;
        dependent->fields_left = dependent->before && dependent->version && dependent->uid;
        if (!dependent->fields_left)
                dependents_fail(dependents, dependent, "cannot be applied",
                                "no memory for what was created");
}

static int own_fields_body(const struct dependents *dependents, const struct dependent *dependent,
                           struct text *out)
{
        const char *name = dependents->owner.operator_name;
        int r;

        text_json(out, "{\"metadata\":{\"uid\":?,\"resourceVersion\":?", dependent->uid, dependent->version);
        r = managed_fields_rename(dependent->before, name, name, true, out);
        text_append_string(out, "}}");
        return r < 0 ? r : out->failed ? -ENOMEM : 0;
}

static int take_applied(struct dependents *dependents, struct dependent *dependent,
                        const struct kube_response *response)
{
        if (scan_is_going(response->body, response->body_size)) {
                dependents_fail(dependents, dependent, "cannot be applied",
                                "the existing object is being deleted; a new one is made when it is gone");
                return 0;
        }
        if (!dependent->fields_left)
                tell_applied(dependents, dependent, response);
        check_mark(dependents, dependent, response);
        if (dependent->posted && dependent->absent && !dependent->failed) {
                take_posted(dependents, dependent, response);
                return -EAGAIN;
        }
        if ((dependent->unseen || dependent->remark) && !dependent->failed) {
                if (dependents->marked++ == 0)
                        dependents->first_marked = dependent;
        }
        note_written(dependent, response);
        if (!dependent->failed && !dependent->unseen && !dependent->remark) {
                note_state(dependents, response);
                wait_judge(dependents, dependent, response->body, response->body_size);
        }
        return 0;
}

static int take_refused(struct dependents *dependents, struct dependent *dependent,
                        const struct kube_response *response)
{
        if (dependent->absent && !dependent->posted && dependents_needs_post(&response->error)) {
                dependent->posted = true;
                return -EAGAIN;
        }
        if (is_apply_overtaken(dependent, &response->error) &&
            !(dependent->absent && dependent->conflicts > 0))
                return look_again(dependents, dependent);
        /* The apply may have arrived. */
        dependent->touched =
                dependent->touched || response->error.http_status == 0 || response->error.http_status >= 500;
        return dependents_take_failure(dependents, dependent, "cannot be applied", response);
}

/* Perhaps the object is being deleted with --cascade=orphan, and the garbage collector has taken the reference off. 1: it is
 * there, and is not going; else as for dependents_each(). */
static int look_at_owner(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct kube_error *error = &answer.response.error;
        struct run *run = dependents->run;
        struct scan_object object = {0};
        int r = object_get(run, &answer);

        if (r < 0)
                return r;
        if (error->failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(error))
                return dependents_take_refusal(dependents, dependent, "cannot get its owner reference back",
                                               error, &answer.response);
        if (error->failure != KUBE_FAILURE_NONE ||
            scan_object(answer.response.body, answer.response.body_size, &object) < 0 ||
            object.deletion_timestamp.start || !scan_string_equals(object.uid, dependents->owner.uid))
                return run_finish(run, RESULT_CONFLICT, "the object is being deleted, or gone");
        dependents->owner_seen = true;
        return 1;
}

static void tell_unreferred(const struct dependents *dependents, const struct dependent *dependent)
{
        const struct message_run *order = dependents->run->order;
        char name[600];

        log_info("watch %s, %s: the owner reference of %s was taken off and is put back", order->watch,
                 order->key, dependent_describe(dependent, name, sizeof(name)));
}

#define SET_BACK "is set back by others each time"

/* Others set it back each time: both would go on forever, as fast as they can. */
static bool is_apply_held(struct dependents *dependents, struct dependent *dependent,
                          const struct text *body)
{
        struct applied *applied = dependents->run->worker->applied;
        uint64_t now = clock_boottime_usec(), until, state;
        unsigned repairs = applied_repairs(applied, &dependents->sent, now, &until);
        const struct message_run *order = dependents->run->order;
        char fields[300], managers[200], why[700], wait[64], name[600];

        if (until == 0 || !dependent->before || dependents->undo ||
            applied_state_of(dependent->before, strlen(dependent->before), &state) < 0 ||
            applied_made(applied, &dependents->sent, state))
                return false;
        dependents_name_fields(dependent->before, (struct span){body->data, body->size}, true, fields,
                               sizeof(fields));
        ownership_last_writer(&dependents->owner, dependent->before, managers, sizeof(managers));
        snprintf(why, sizeof(why), "%s (%s, %u times in a row); it is applied again in %s at the earliest",
                 fields, managers, repairs,
                 duration_format((until - now) / USEC_PER_MSEC * USEC_PER_MSEC, wait, sizeof(wait)));
        dependent_describe(dependent, name, sizeof(name));
        log_write(LOG_WARNING, MESSAGE_ID_SET_BACK,
                  LOG_FIELDS({"RECONCILED_WATCH", order->watch}, {"RECONCILED_KEY", order->key},
                             {"RECONCILED_UID", order->uid}, {"RECONCILED_OBJECT", name}),
                  "watch %s, %s: %s " SET_BACK ": %s", order->watch, order->key, name, why);
        dependents_fail(dependents, dependent, SET_BACK, why);
        return true;
}

/* 1: *ret is the answer; 0: nothing is to be sent. */
static int send_apply(struct dependents *dependents, struct dependent *dependent,
                      struct kube_answer *ret) _suspends_
{
        _cleanup_text_ struct text body = TEXT_EMPTY, bound = TEXT_EMPTY;
        bool posts = dependent->posted && dependent->absent;
        int r = dependent_body(&dependents->owner, dependent, &body);

        if (r >= 0)
                r = posts ? text_append(&bound, body.data, body.size)
                    : dependent->absent
                            ? dependent_body_to_create(&body, &bound)
                            : dependent_body_for(&body, dependent->uid, dependent->version, &bound);
        if (r < 0)
                return r;
        dependents->sent = applied_text_of(&dependents->owner, dependent, &body);
        if (is_apply_held(dependents, dependent, &body))
                return 0;
        r = dependents_ask(dependents, dependent, posts ? DEPENDENTS_CREATES : DEPENDENTS_APPLIES, &bound,
                           ret);
        return r < 0 ? r : 1;
}

/* What the leader before us has sent may arrive yet: then the child has another version. -EAGAIN: it has one now, and the child is
 * looked at again in that. */
static int mark_tenure(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = tenure_child_body(dependents->run, dependent->uid, dependent->version, &body);

        if (r >= 0)
                r = dependents_ask(dependents, dependent, DEPENDENTS_MERGES, &body, &answer);
        if (r < 0)
                return r;
        if (answer.response.error.failure != KUBE_FAILURE_NONE)
                return take_refused(dependents, dependent, &answer.response);
        dependent->touched = true;
        return judge_found(dependents, dependent, answer.response.body, answer.response.body_size);
}

/* Sends only the dependent's mark, or what it has of our managed fields. 1: *ret is the answer. */
static int send_marks(struct dependents *dependents, struct dependent *dependent,
                      struct kube_answer *ret) _suspends_
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = dependent->unseen || dependent->remark
                        ? dependent_body_to_mark(&dependents->owner, dependent, &body)
                        : own_fields_body(dependents, dependent, &body);

        if (r >= 0)
                r = dependents_ask(dependents, dependent, DEPENDENTS_MERGES, &body, ret);
        return r < 0 ? r : 1;
}

static int apply_child(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r;

        if (dependent->unreferred && !dependents->owner_seen) {
                r = look_at_owner(dependents, dependent);
                if (r <= 0)
                        return r;
        }
        if (dependent->unreferred)
                tell_unreferred(dependents, dependent);
        if (!dependent->absent && dependent->before && !dependent->adopting &&
            tenure_child_is_unmarked(dependents->run, dependent->before)) {
                r = mark_tenure(dependents, dependent);
                return r < 0 || dependent->failed || !dependent->judged ? r : -EAGAIN;
        }
        r = dependent->unseen || dependent->remark || dependent->fields_left
                    ? send_marks(dependents, dependent, &answer)
                    : send_apply(dependents, dependent, &answer);
        if (r <= 0)
                return r;
        return answer.response.error.failure == KUBE_FAILURE_NONE
                       ? take_applied(dependents, dependent, &answer.response)
                       : take_refused(dependents, dependent, &answer.response);
}

/* Only their marks were written: the handler must see these children before it can want to change them. */
static int finish_marked(const struct dependents *dependents)
{
        const struct dependent *first = dependents->first_marked;
        char how[200], more[40] = "";

        if (dependents->marked > 1)
                snprintf(more, sizeof(more), "and %zu more ", dependents->marked - 1);
        snprintf(how, sizeof(how), "%s%s", more,
                 first->renamed     ? "carried a former name of the operator, and has the new one"
                 : first->inherited ? "was marked for a former object of this name, and is for this one now"
                                    : "was adopted, and the handler has not seen it");
        return finish_outdated(dependents, first, how);
}

static int apply_one(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r;

        if (dependent->applied || dependent->failed || dependent->release)
                return 0;
        r = dependents_resolve(dependents, dependent);
        if (r == -ENXIO && !wait_for_kind(dependents, dependent))
                dependents_fail(dependents, dependent, "cannot be applied", dependents->no_kind);
        if (r <= 0)
                return r == -ENXIO ? 0 : r;
        if (!dependent_list_has(&dependents->known, dependent)) {
                /* The kind was defined by another dependent of this answer. */
                r = dependent->recorded ? -EBADMSG : check_identities(dependents);
                if (r >= 0)
                        r = remember_send(dependents);
                return r < 0 ? r : -EAGAIN;
        }
        r = dependent->judged ? 1 : find_out(dependents, dependent);
        return r <= 0 || dependent->failed || dependent->applied ? (r < 0 ? r : 0)
                                                                 : apply_child(dependents, dependent);
}

int apply_wanted(struct dependents *dependents)
{
        int r = dependents_each(dependents, &dependents->wanted, false, apply_one);

        return r < 0 || dependents->marked == 0 || dependents->failed.count > 0 ? r
                                                                                : finish_marked(dependents);
}
