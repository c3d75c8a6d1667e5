/* SPDX-License-Identifier: Apache-2.0 */
/* See apply.h. */
#include "worker/dependents/apply.h"

#include <errno.h>
#include <string.h>

#include "worker/dependents/notes.h"
#include "worker/dependents/parked/managed-fields.h"
#include "worker/dependents/parked/wait.h"
#include "worker/dependents/remember.h"
#include "worker/dependents/unchanged.h"
#include "worker/recording.h"
#include "worker/write/leaving.h"

/* ---- which objects they are */

/* An object that is its own dependent would be deleted as such. */
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

int apply_resolve_next(struct dependents *dependents)
{
        struct dependent *dependent;

        while ((dependent = dependents_current(dependents))) {
                int r = dependents_resolve(dependents, dependent);

                if (r != 0)
                        return r;
                dependents->position++;
        }
        wait_take_over(dependents); /* only now their namespaces are known */
        return check_identities(dependents);
}

/* ---- what was there before */

/* Owned by the caller; NULL: it cannot be read. */
static char *version_of(const struct kube_response *response)
{
        struct scan_object object;
        char *version = NULL;

        if (scan_object(response->body, response->body_size, &object) >= 0)
                (void)scan_string(object.resource_version, &version);
        return version;
}

static bool is_anothers(const struct dependents *dependents, const struct kube_response *response)
{
        _cleanup_free_ char *set = notes_find(response->body, true, NOTES_PART_OF);

        return !dependents->run->watch->config->children_force && set &&
               strcmp(set, dependents->owner.set) != 0;
}

/* The watch of ours whose dependent it is, if that watch selects the object as well; else it is free. */
static const struct record_watch *find_holder(const struct dependents *dependents,
                                              const struct kube_response *response)
{
        const struct run *run = dependents->run;
        _cleanup_free_ char *set = notes_find(response->body, true, NOTES_PART_OF);
        _cleanup_free_ char *id = notes_find_id(run, response->body);

        if (!set || !id || strcmp(set, dependents->owner.set) != 0 ||
            strcmp(id, run->watch->config->id) == 0)
                return NULL;
        return leaving_find(run, id);
}

/* Whatever is applied to an object that is being deleted goes with it. */
static bool is_going(const struct kube_response *response)
{
        struct scan_object object;

        return scan_object(response->body, response->body_size, &object) >= 0 &&
               object.deletion_timestamp.start;
}

static void note_touched(struct dependent *dependent, const struct kube_response *response)
{
        _cleanup_free_ char *version = version_of(response);
        struct scan_object object;

        if (!dependent->looked || scan_object(response->body, response->body_size, &object) < 0)
                return;
        dependent->touched = !dependent->version || !version || strcmp(dependent->version, version) != 0;
        (void)dependent_set_uid(dependent, object.uid);
}

/* Keeps the former state, in case it has to be restored. */
static void on_looked(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct dependents *dependents = userdata;
        struct run *run = dependents->run;
        struct dependent *dependent = dependents_current(dependents);
        const struct record_watch *holder = NULL;
        struct scan_object object;
        char why[300];

        run->request.transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(&response->error)) {
                if (dependents_take_failure(dependents, "cannot be looked at", response))
                        dependents_advance(dependents);
                return;
        }
        dependent->looked = true;
        if (response->error.failure == KUBE_FAILURE_NONE &&
            dependent_list_has(&dependents->beside, dependent))
                holder = find_holder(dependents, response);
        if (response->error.failure == KUBE_FAILURE_NONE && is_anothers(dependents, response)) {
                dependents_fail(dependents, dependent, "is not applied",
                                "its label " NOTES_PART_OF
                                " says that it is another object's child; give it another "
                                "name, or let that one go without it first (or see children.force)");
                dependents->position++;
        } else if (holder) {
                snprintf(
                        why, sizeof(why),
                        "watch %s has it already, for the same object: only one of the watches of a kind may "
                        "name a child",
                        holder->name);
                dependents_fail(dependents, dependent, "is not applied", why);
                dependents->position++;
        } else if (response->error.failure == KUBE_FAILURE_NONE) {
                dependent->previous =
                        managed_fields_body(response->body, run->worker->config->operator_name);
                dependent->version = version_of(response);
                if (!dependent->previous || !dependent->version ||
                    scan_object(response->body, response->body_size, &object) < 0 ||
                    dependent_set_uid(dependent, object.uid) < 0) {
                        run_finish(run, RESULT_RETRY, "one of its children cannot be read");
                        return;
                }
        }
        dependents_advance(dependents);
}

static int look(struct dependents *dependents, const struct dependent *dependent)
{
        return dependents_request(dependents, dependent, "GET", NULL, on_looked);
}

/* ---- applying */

static void on_applied(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct dependents *dependents = userdata;
        struct run *run = dependents->run;
        struct dependent *dependent = dependents_current(dependents);

        run->request.transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE && is_going(response)) {
                dependents_fail(dependents, dependent, "cannot be applied",
                                "the existing object is being deleted; a new one is made when it is gone");
                dependents->position++;
        } else if (response->error.failure == KUBE_FAILURE_NONE) {
                dependent->applied = true;
                note_touched(dependent, response);
                unchanged_note_applied(dependents, response);
                wait_judge(dependents, dependent, response->body, response->body_size);
                dependents->position++;
        } else {
                dependent->touched = dependent->looked && (response->error.http_status == 0 ||
                                                           /* the apply may have arrived */
                                                           response->error.http_status >= 500);
                if (!dependents_take_failure(dependents, "cannot be applied", response))
                        return;
        }
        dependents_advance(dependents);
}

/* Whether to look at the object before it is applied: to be able to undo the apply, to show what it
 * changes, or because it may be another object's dependent, or another watch's. The API server sees one field
 * manager, and would silently let it change hands. */
static bool must_look(const struct dependents *dependents, const struct dependent *dependent)
{
        const struct run *run = dependents->run;

        return run->watch->config->rollback || recording_is_by_hand(run->worker->recording) ||
               dependent_list_has(&dependents->beside, dependent) ||
               (!run->watch->config->children_force && (dependent->is_new || run->order->attempt > 1));
}

/* Returns 0 where an apply would change nothing. */
static int apply_one(struct dependents *dependents, struct dependent *dependent)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = dependent_body(&dependents->owner, dependent, &body);

        if (r < 0)
                return r;
        dependent->applied = unchanged_is_applied(dependents, dependent, &body);
        if (dependent->applied)
                return 0;
        return must_look(dependents, dependent) && !dependent->looked
                       ? look(dependents, dependent)
                       : dependents_send_body(dependents, dependent, &body, on_applied);
}

int apply_next(struct dependents *dependents)
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
                        /* The kind was defined by another dependent of this answer. */
                        r = dependent->recorded ? -EBADMSG : check_identities(dependents);
                        return r != 0 ? r : remember_send(dependents);
                }
                r = apply_one(dependents, dependent);
                if (r != 0)
                        return r;
        }
        return 0;
}
