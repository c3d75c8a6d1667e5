/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See patches.h. Looking kinds up, requests and failures are those of children (dependents.h).
 */
#include "worker/dependents/patched/patches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "object/confined.h"
#include "worker/confidential.h"
#include "worker/confine.h"
#include "worker/dependents/dependents.h"
#include "worker/dependents/notes.h"
#include "worker/dependents/ownership.h"
#include "worker/dependents/parked/managed-fields.h"
#include "worker/dependents/prune.h"
#include "worker/write/object.h"
#include "worker/write/patch.h"
#include "json/json.h"

#define CONFLICTS_MAX 10  /* of one object in a run: how often it is made again between a look and a write */
#define MANAGERS_MAX  100 /* of one object: each makes it larger, for everybody */

/* ---- the field manager */

#define MANAGER_MAX 128 /* bytes; the server's limit */
#define HASH_BYTES  10

/* The field manager is named by the owner's name, not its UID: an owner that was restored goes on with its
 * patches. */
static char *manager_of(const struct dependent_owner *owner, const char *operator_name)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        uint8_t sum[SHA256_SIZE];
        char digits[2 * HASH_BYTES + 1], *manager;

        text_printf(&text, "%s/%s/%s", operator_name, owner->id ? owner->id : "", owner->set);
        if (text.failed)
                return NULL;
        sha256(text.data, text.size, sum);
        for (size_t i = 0; i < HASH_BYTES; i++)
                snprintf(digits + 2 * i, 3, "%02x", sum[i]);
        return asprintf(&manager, "%.*s:%s", MANAGER_MAX - 2 * HASH_BYTES - 1, operator_name, digits) < 0
                       ? NULL
                       : manager;
}

/* Lists the field managers of the operator's former names, with commas between them. */
static int former_managers(const struct dependent_owner *owner, struct text *list)
{
        const char *names = owner->former_names;
        char name[200];

        while (bookkeeping_next_word(&names, name, sizeof(name))) {
                _cleanup_free_ char *manager = manager_of(owner, name);

                if (!manager)
                        return -ENOMEM;
                text_printf(list, "%s%s", list->size > 0 ? "," : "", manager);
        }
        return list->failed ? -ENOMEM : 0;
}

/* ---- what an answer may name */

/* Whether the configuration names the kind, in any version. */
static bool is_named(const struct run *run, const struct dependent *dependent)
{
        return confined_judge(run->watch->config, true, run->order->key, dependent->api_version,
                              dependent->kind, "") == 0;
}

static bool has_prefix(const char *key, const char *prefix)
{
        size_t size = strlen(prefix);

        return strncmp(key, prefix, size) == 0 && key[size] == '/';
}

/* Whether the key of a label or an annotation is one by which an operator knows its objects, also under its former names. */
static bool is_own_key(const struct dependent_owner *owner, struct span key)
{
        const char *names = owner->former_names;
        _cleanup_free_ char *text = NULL; /* an escape is no other key */
        char name[200];

        if (scan_string(key, &text) < 0 || has_prefix(text, owner->operator_name) ||
            has_prefix(text, "applyset.k8s.io"))
                return true;
        while (bookkeeping_next_word(&names, name, sizeof(name)))
                if (has_prefix(text, name))
                        return true;
        return false;
}

static bool has_own_key(const struct dependent_owner *owner, struct span map)
{
        struct scan_walk walk;

        SCAN_MEMBERS(walk, map)
                if (is_own_key(owner, walk.key))
                        return true;
        return walk.status < 0;
}

static bool sets_own(const struct dependents *dependents, const struct dependent *dependent)
{
        struct scan_object object;

        return scan_object(dependent->text.start, dependent->text.size, &object) < 0 ||
               has_own_key(&dependents->owner, object.labels) ||
               has_own_key(&dependents->owner, object.annotations);
}

static const char *mistake_of(struct dependents *dependents, size_t index)
{
        const struct dependent *dependent = &dependents->wanted.item[index];

        if (dependent_is_owner(dependent, &dependents->owner))
                return "is the object itself; use the answer's own key `patch`";
        if (sets_own(dependents, dependent))
                return "sets a label or an annotation that reconciled keeps for itself";
        for (size_t i = 0; i < index; i++)
                if (dependent_is_same(&dependents->wanted.item[i], dependent))
                        return "is the same object as another one of the list";
        return NULL;
}

static int check_all(struct dependents *dependents)
{
        for (size_t i = 0; i < dependents->wanted.count; i++) {
                const char *mistake = mistake_of(dependents, i);
                char name[600];

                if (!mistake)
                        continue;
                return run_finish(
                        dependents->run, RESULT_PERMANENT, "the handler's answer: patches[%zu], %s: %s",
                        dependents->wanted.item[i].index,
                        dependent_describe(&dependents->wanted.item[i], name, sizeof(name)), mistake);
        }
        return 0;
}

/* ---- the list on the owner */

/* One whose kind is unknown at the moment stays in the list as it is. */
static bool is_patch_wanted(const struct dependents *dependents, const struct dependent *dependent)
{
        const struct dependent *wanted = dependent_list_find(&dependents->wanted, dependent);

        return wanted && wanted->resource.plural;
}

/* Writes the list of patched objects: those of the answer, and those not given up yet. 0; -EAGAIN: others have written to the
 * object, and all begins again; another negative: it cannot be sent, or the run has ended. */
static int record_patched(struct dependents *dependents) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text list = TEXT_EMPTY, body = TEXT_EMPTY;
        struct run *run = dependents->run;
        int r;

        for (size_t i = 0; i < dependents->wanted.count; i++)
                if (dependents->wanted.item[i].resource.plural)
                        dependent_record_add(&list, &dependents->wanted.item[i]);
        for (size_t i = 0; i < dependents->known.count; i++)
                if (!dependents->known.item[i].settled &&
                    !is_patch_wanted(dependents, &dependents->known.item[i]))
                        dependent_record_add(&list, &dependents->known.item[i]);
        text_json(&body,
                  "{\"metadata\":{\"uid\":?,\"resourceVersion\":?,\"annotations\":{?:", run->order->uid,
                  object_version(run), run->watch->config->patched_key);
        if (list.size > 0)
                text_json_string(&body, list.data);
        else
                text_append_string(&body, "null");
        text_append_string(&body, "}}}");
        r = list.failed || body.failed ? -ENOMEM : patch_send(run, NULL, &body, true, &answer);
        if (r < 0)
                return r;
        if (answer.response.error.failure != KUBE_FAILURE_NONE)
                return object_refused(run, "operator's list of what is patched for it", &answer.response);
        return object_take_result(run, &answer.response) < 0
                       ? run_finish(run, RESULT_RETRY,
                                    "the API server's answer to a list of patches cannot be understood")
                       : 0;
}

static int remember_patched(struct dependents *dependents) _suspends_
{
        for (size_t i = 0; i < dependents->wanted.count; i++)
                if (dependents->wanted.item[i].resource.plural &&
                    !dependent_list_has(&dependents->known, &dependents->wanted.item[i]))
                        return record_patched(dependents);
        return 0;
}

static int forget(struct dependents *dependents) _suspends_
{
        const struct run *run = dependents->run;

        for (size_t i = 0; i < dependents->known.count; i++)
                if (dependents->known.item[i].settled && run->object.json && !run_is_of_deletion(run))
                        return record_patched(dependents);
        return 0;
}

/* ---- one by one */

static bool is_written_elsewhere(const struct dependents *dependents, const struct dependent *dependent,
                                 const char *uid)
{
        FOREACH_ARRAY(other, dependents->wanted.item, dependents->wanted.count)
                if (other != dependent && other->applied && other->uid && strcmp(other->uid, uid) == 0)
                        return true;
        return false;
}

/* Whether the manager has these fields on the object with these values, and no others. */
static bool is_applied(const char *own, const struct text *body)
{
        _cleanup_json_ cJSON *a = json_parse_served(own, strlen(own)),
                             *b = json_parse_served(body->data, body->size);

        cJSON_DeleteItemFromObjectCaseSensitive(json_member(a, "metadata"), "namespace");
        cJSON_DeleteItemFromObjectCaseSensitive(json_member(b, "metadata"), "namespace");
        return a && b && json_equal(a, b);
}

/* The body that gives all fields up, in the version in which the kind is served now. */
static void write_names(const struct dependent *dependent, struct text *body)
{
        const struct kube_resource *resource = &dependent->resource;

        text_printf(body, "{\"apiVersion\":\"%s%s%s\",\"kind\":", resource->group,
                    resource->group[0] ? "/" : "", resource->version);
        text_json(body, "?,\"metadata\":{\"name\":?}}", dependent->kind, dependent->name);
}

struct look {
        struct ownership_view view;
        char *own;       /* what the manager has on it, as a body */
        size_t managers; /* of all */
};

static void look_done(struct look *look)
{
        free(look->own);
}

static int look(const struct dependents *dependents, struct dependent *dependent, const char *json,
                size_t size, struct look *ret)
{
        struct scan_object object;
        struct scan_walk walk;
        int r = ownership_judge(&dependents->owner, dependent, json, size, &ret->view);

        if (r >= 0)
                r = scan_object(json, size, &object);
        if (r < 0)
                return r;
        SCAN_ELEMENTS(walk, object.managed_fields)
                ret->managers++;
        if (walk.status < 0)
                return walk.status;
        free(dependent->before);
        free(dependent->uid);
        dependent->before = strndup(json, size);
        dependent->uid = strdup(ret->view.uid);
        if (!dependent->before || !dependent->uid)
                return -ENOMEM;
        r = managed_fields_body(dependent->before, dependents->manager, &ret->own);
        /* Such a list does not show the object's content, so the patch is written in any case. */
        if (r == -E2BIG)
                ret->own = strdup("");
        return r == -E2BIG && ret->own ? 0 : r;
}

/* Why it is not patched; NULL: it may be. */
static const char *objection_to(const struct look *look, bool is_twice, bool is_new)
{
        if (look->view.whose == OWNERSHIP_OURS || look->view.whose == OWNERSHIP_TWIN)
                return "it is a child of the object; set its fields in `children`";
        if (is_twice)
                return "another one of `patches` is the same object in another API group";
        if (is_new && look->managers >= MANAGERS_MAX)
                return "it has 100 field managers, and takes no more: each of them makes it larger; let fewer "
                       "objects patch it";
        return NULL;
}

/* Fields that were set under a former name of the operator become the manager's. 1: there are none; else as for
 * dependents_each(). */
static int rename_managers(struct dependents *dependents, struct dependent *dependent,
                           const struct look *look) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text former = TEXT_EMPTY, body = TEXT_EMPTY;
        int r = former_managers(&dependents->owner, &former);

        if (r < 0 || former.size == 0)
                return r < 0 ? r : 1;
        text_json(&body, "{\"metadata\":{\"uid\":?,\"resourceVersion\":?", look->view.uid,
                  look->view.version);
        r = managed_fields_rename(dependent->before, former.data, dependents->manager, false, &body);
        text_append_string(&body, "}}");
        if (r <= 0)
                return r < 0 ? r : 1;
        r = body.failed ? -ENOMEM : dependents_ask(dependents, dependent, DEPENDENTS_MERGES, &body, &answer);
        if (r < 0)
                return r;
        if ((answer.response.error.failure == KUBE_FAILURE_NONE ||
             answer.response.error.http_status == 409) &&
            ++dependent->conflicts <= CONFLICTS_MAX)
                return -EAGAIN; /* it is looked at again */
        return dependents_take_failure(dependents, dependent, "does not get the operator's new name",
                                       &answer.response);
}

static void done_with(struct dependent *dependent)
{
        dependent->applied = !dependent->failed;
        dependent->settled = true;
}

static void tell_kept(const struct dependents *dependents, const struct dependent *dependent,
                      const struct kube_error *error)
{
        const struct message_run *order = dependents->run->order;
        bool secret = is_confidential(dependents->run->worker, dependent->api_version, dependent->kind);
        char name[600], words[CONFIDENTIAL_WORDS_MAX];

        log_warning("watch %s, %s: %s keeps what was patched, because it cannot be without it: %s",
                    order->watch, order->key, dependent_describe(dependent, name, sizeof(name)),
                    confidential_words(secret, error, words, sizeof(words)));
}

static int take_patched(struct dependents *dependents, struct dependent *dependent,
                        const struct kube_response *response)
{
        const struct kube_error *error = &response->error;
        enum child_write what = dependent->text.start ? PATCHED : PATCH_RELEASED;

        if (error->failure == KUBE_FAILURE_NONE) {
                if (!dependents_tell_changed(dependents, dependent, what, response))
                        dependents_tell(dependents, dependent, what, "others have set the same");
        } else if (!dependent->text.start && error->http_status == 422) {
                tell_kept(dependents, dependent, error);
        } else if (error->other_uid && ++dependent->conflicts <= CONFLICTS_MAX) {
                return -EAGAIN; /* it is looked at again */
        } else {
                return dependents_take_failure(dependents, dependent,
                                               dependent->text.start ? "is not patched" : "is patched still",
                                               response);
        }
        done_with(dependent);
        return 0;
}

static int write_patch(struct dependents *dependents, struct dependent *dependent,
                       const struct look *look) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY, names = TEXT_EMPTY, bound = TEXT_EMPTY;
        bool is_twice = is_written_elsewhere(dependents, dependent, look->view.uid);
        const struct text *wanted = dependent->text.start ? &body : &names;
        const char *objection;
        int r = dependent->text.start ? dependent_body_to_patch(dependent, &body) : 0;

        write_names(dependent, &names);
        if (r < 0 || names.failed)
                return r < 0 ? r : -ENOMEM;
        objection =
                dependent->text.start ? objection_to(look, is_twice, is_applied(look->own, &names)) : NULL;
        if (objection)
                dependents_fail(dependents, dependent, "is not patched", objection);
        if (objection || is_twice || is_applied(look->own, wanted)) {
                done_with(dependent);
                return 0;
        }
        r = dependent_body_for(wanted, look->view.uid, NULL, &bound);
        if (r >= 0)
                r = dependents_ask(dependents, dependent, DEPENDENTS_APPLIES, &bound, &answer);
        return r < 0 ? r : take_patched(dependents, dependent, &answer.response);
}

static int take_to_patch(struct dependents *dependents, struct dependent *dependent,
                         const struct kube_response *response) _suspends_
{
        _cleanup_(look_done) struct look found = {0};
        int r = look(dependents, dependent, response->body, response->body_size, &found);

        if (r >= 0)
                r = rename_managers(dependents, dependent, &found);
        if (r > 0)
                r = write_patch(dependents, dependent, &found);
        return r < 0 && r != -EAGAIN && r != -EHOSTDOWN
                       ? run_finish(dependents->run, RESULT_RETRY,
                                    "one of its patches cannot be written: %s", strerror(-r))
                       : r;
}

static int look_before_patch(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r = dependents_look(dependents, dependent, &answer);

        if (r <= 0)
                return r;
        if (answer.response.error.failure == KUBE_FAILURE_NONE)
                return take_to_patch(dependents, dependent, &answer.response);
        if (dependent->text.start)
                dependents_fail(dependents, dependent, "is not patched",
                                "it is not there, and a patch creates nothing");
        done_with(dependent);
        return 0;
}

/* ---- all of them */

/* 1: its kind is known; else as for dependents_each(). */
static int resolve(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r = dependents_resolve(dependents, dependent);

        if (r != -ENXIO)
                return r;
        if (dependents->pruning)
                return prune_search_kind(dependents, dependent);
        dependents_fail(dependents, dependent, "cannot be looked up", dependents->no_kind);
        return 0;
}

static int resolve_patch(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r = dependent->failed ? 0 : resolve(dependents, dependent);

        return r < 0 ? r : 0;
}

/* An answer without the key leaves alone what the configuration still allows. */
static bool is_left_out(const struct dependents *dependents, const struct dependent *dependent)
{
        const struct run *run = dependents->run;

        if (dependents->drop)
                return dependent->release;
        return run->action != ACTION_RECONCILE || run->answer.patches_text.start
                       ? !is_patch_wanted(dependents, dependent)
                       : !is_named(run, dependent);
}

static int write_wanted(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r;

        if (dependent->failed || dependent->settled || dependent->beyond)
                return 0;
        r = resolve(dependents, dependent);
        return r <= 0 ? r : look_before_patch(dependents, dependent);
}

static int give_patch_up(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        return dependents->failed.count == 0 && is_left_out(dependents, dependent)
                       ? write_wanted(dependents, dependent)
                       : 0;
}

static int write_all(struct dependents *dependents) _suspends_
{
        int r = dependents_each(dependents, &dependents->wanted, false, resolve_patch);

        if (r >= 0)
                r = check_all(dependents);
        if (r >= 0)
                r = remember_patched(dependents);
        if (r >= 0)
                r = dependents_each(dependents, &dependents->wanted, false, write_wanted);
        if (r >= 0 && dependents->failed.count == 0) {
                dependents->pruning = true;
                r = dependents_each(dependents, &dependents->known, true, give_patch_up);
        }
        if (r >= 0)
                r = forget(dependents);
        return r < 0 ? r : dependents_may_go_on(dependents);
}

/* ---- the step */

static char *find_record(const struct run *run)
{
        return notes_find_own(run, object_json(run), run->watch->config->patched_key);
}

/* A list without namespaces where the handler gave none: such an entry counts for each. */
static bool may_name(const struct dependent_list *list, const struct dependent *dependent)
{
        for (size_t i = 0; i < list->count; i++) {
                struct dependent item = list->item[i];

                if (!item.namespace_name[0])
                        item.namespace_name = dependent->namespace_name;
                if (dependent_is_same(&item, dependent))
                        return true;
        }
        return false;
}

/* Marks those that the answer names as children, and as patches no more: the children's apply would be in conflict with what
 * was patched, so that is given up first. Returns how many there are, or a negative errno. */
static int mark_children(const struct run *run, struct dependent_list *known)
{
        _cleanup_(dependent_list_done) struct dependent_list children = {0}, patches = {0};
        int r = 0, count = 0;

        if (run->action != ACTION_RECONCILE || !run->answer.patches_text.start ||
            !run->answer.dependents_text.start)
                return 0;
        r = dependent_list_from_answer(run->answer.dependents_text, &children);
        if (r >= 0)
                r = dependent_list_from_answer(run->answer.patches_text, &patches);
        for (size_t i = 0; i < known->count && r >= 0; i++) {
                struct dependent *dependent = &known->item[i];

                dependent->release = may_name(&children, dependent) && !may_name(&patches, dependent);
                count += dependent->release;
        }
        return r < 0 ? r : count;
}

/* Whether there are some of a kind that the configuration does not name any more. */
static int has_unnamed(const struct run *run)
{
        _cleanup_(dependent_list_done) struct dependent_list list = {0};
        _cleanup_free_ char *record = find_record(run);

        /* Without memory they count as due, and the step reports it. */
        if (record && dependent_list_from_record(record, &list) < 0)
                return 1;
        for (size_t i = 0; i < list.count; i++)
                if (!is_named(run, &list.item[i]))
                        return 1;
        return 0;
}

int patches_are_due(struct run *run)
{
        if (run->action != ACTION_RECONCILE || !run->object.json)
                return 0;
        return run->answer.patches_text.start || has_unnamed(run);
}

int patches_are_due_first(struct run *run)
{
        _cleanup_(dependent_list_done) struct dependent_list list = {0};
        _cleanup_free_ char *record = NULL;

        if (run->action == ACTION_RELEASE || run->answer.not_done ||
            ((run->action == ACTION_UNSELECTED || run->action == ACTION_RECONCILE) && !run->object.json))
                return 0;
        record = find_record(run);
        if (!record || run->action != ACTION_RECONCILE)
                return record != NULL;
        /* Without memory they are due, and the step says so. */
        return dependent_list_from_record(record, &list) < 0 || mark_children(run, &list) != 0;
}

static int begin_patches(struct run *run, struct dependents *patches)
{
        _cleanup_free_ char *record = find_record(run);
        int r = dependents_init(patches, run);

        if (r >= 0)
                patches->manager = manager_of(&patches->owner, patches->owner.operator_name);
        if (r >= 0 && record)
                r = dependent_list_from_record(record, &patches->known);
        if (r >= 0)
                confine_list_and_tell(run, "patches", &patches->known);
        if (r >= 0)
                r = mark_children(run, &patches->known);
        patches->drop = r > 0;
        if (r == 0 && run->action == ACTION_RECONCILE && run->answer.patches_text.start)
                r = dependent_list_from_answer(run->answer.patches_text, &patches->wanted);
        return r < 0 ? r : patches->manager ? 0 : -ENOMEM;
}

int patches_send(struct run *run)
{
        _cleanup_(dependents_free_pointer) struct dependents *patches = calloc(1, sizeof(*patches));
        const struct text *reason;
        int r = patches ? begin_patches(run, patches) : -ENOMEM;

        if (r < 0)
                return r;
        r = write_all(patches);
        reason = &patches->failed.text;
        if (r == -EHOSTDOWN || (r >= 0 && patches->failed.count > 0))
                return run_finish(run, dependents_result(patches), "%u of its patches: %s",
                                  patches->failed.count,
                                  reason->data ? reason->data : "no memory for the reason");
        return r < 0 && r != -EAGAIN
                       ? run_finish(run, RESULT_RETRY, "its patches cannot be written: %s", strerror(-r))
                       : r;
}
