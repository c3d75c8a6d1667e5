/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/dependents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "kube/path.h"
#include "store/reader.h"
#include "worker/confidential.h"
#include "worker/kinds.h"
#include "worker/waiting.h"
#include "worker/write/refusal.h"
#include "json/difference.h"
#include "json/json.h"

#define APPLY_PATCH  "application/apply-patch+yaml"
#define MERGE_PATCH  "application/merge-patch+json"
#define TIMEOUT_USEC (30 * USEC_PER_SEC)
#define TROUBLE_MAX  1500 /* bytes of text about failures */
#define LOOKUPS_MAX  2    /* lookups of a dependent's kind in one run */
#define UNSERVED_MAX 3    /* attempts, until a kind that is not served counts as gone */

int dependents_init(struct dependents *dependents, struct run *run)
{
        const struct record_watch *config = run->watch->config;
        int r = dependent_owner_init(&dependents->owner, config->api_version, config->kind, run->order->uid,
                                     run->order->key);

        dependents->run = run;
        dependents->owner.operator_name = run->worker->config->operator_name;
        dependents->owner.former_names = run->worker->config->former_names;
        dependents->owner.id = config->id;
        return r;
}

int dependents_may_go_on(struct dependents *dependents)
{
        struct run *run = dependents->run;

        return run->cancelled
                       ? run_finish(run, RESULT_CANCELLED, "the operator stops before all %s",
                                    dependents->manager ? "patches were written" : "children were made")
                       : 0;
}

int dependents_each(struct dependents *dependents, const struct dependent_list *list, bool backwards,
                    int (*one)(struct dependents *dependents, struct dependent *dependent))
{
        for (size_t i = 0; i < list->count; i++) {
                struct dependent *dependent = &list->item[backwards ? list->count - 1 - i : i];
                int r;

                do {
                        r = dependents_may_go_on(dependents);
                        if (r >= 0)
                                r = one(dependents, dependent);
                } while (r == -EAGAIN);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- failures */

void dependents_fail(struct dependents *dependents, struct dependent *dependent, const char *what,
                     const char *why)
{
        char name[600];

        dependents->failed.count++;
        if (!dependent)
                return;
        dependent->failed = true;
        if (dependents->failed.text.size < TROUBLE_MAX)
                text_printf(&dependents->failed.text, "%s%s %s: %.400s",
                            dependents->failed.text.size > 0 ? "; " : "",
                            dependent_describe(dependent, name, sizeof(name)), what, why);
}

/* If a dependent failed through its own fault, the object has failed. A missing right in a namespace
 * that a handler has named does not concern the whole watch. */
enum run_result dependents_result(const struct dependents *dependents)
{
        return dependents->failed.refused < dependents->failed.count ? RESULT_RETRY
               : dependents->failed.unauthorized                     ? RESULT_FORBIDDEN
                                                                     : RESULT_UNAVAILABLE;
}

/* If the server cannot be asked just now, the next dependent would fare no better. Deletions and looks
 * are tried kind by kind: a 5xx without Retry-After may come from the one API behind the server that serves
 * the kind. */
bool dependents_is_about_server(const struct dependents *dependents, const struct kube_error *error)
{
        bool by_kind = dependents->pruning || dependents->looking;

        return kube_error_is_passing(error) &&
               !(by_kind && error->http_status >= 500 && kube_error_wish_usec(error) == 0);
}

#define CLAIMED                                                                                             \
        "cannot be applied, because others have set fields of it (`children.force: true` takes them over)"

#define CLAIMED_BY_OTHERS "is not patched, because others have set fields of it"

bool dependents_needs_post(const struct kube_error *error)
{
        return error->http_status == 500 && error->message &&
               strstr(error->message, "resourceVersion should not be set on objects to be created");
}

bool dependents_is_claimed(const struct kube_error *error)
{
        return error->http_status == 409 && error->message &&
               strncmp(error->message, "Apply failed with ", strlen("Apply failed with ")) == 0;
}

/* A user who may write to the object may put entries into its list that we may not see. An entry that only
 * the list knows does not hold our finalizer. */
static bool leave_stranger(struct dependents *dependents, const struct dependent *dependent,
                           const struct kube_error *error)
{
        const struct message_run *order = dependents->run->order;
        char name[600];

        if (!dependent->stranger || !dependents->pruning ||
            (error->http_status != 403 && error->http_status < 500) || kube_error_wish_usec(error) > 0)
                return false;
        if (order->attempt == 1)
                log_warning(
                        "watch %s, %s: %s is left alone: only the list on the object knows its kind, and the API "
                        "server does not show it (HTTP %d); if it is a child, add its kind to the configuration",
                        order->watch, order->key, dependent_describe(dependent, name, sizeof(name)),
                        error->http_status);
        for (size_t i = 0; i < dependents->known.count; i++)
                if (dependent_is_same_kind(&dependents->known.item[i], dependent))
                        dependents->known.item[i].beyond = true;
        return true;
}

int dependents_take_refusal(struct dependents *dependents, struct dependent *dependent, const char *what,
                            const struct kube_error *error, const struct kube_response *response)
{
        enum run_result result = refusal_result(error);
        char words[CONFIDENTIAL_WORDS_MAX], advised[256];
        bool secret;

        if (leave_stranger(dependents, dependent, error))
                return 0;
        dependents->failed.refused += result != RESULT_RETRY;
        dependents->server.silent = dependents->server.silent || result == RESULT_UNAVAILABLE;
        dependents->failed.unauthorized = dependents->failed.unauthorized || error->http_status == 401;
        refusal_note(dependents->run, response);
        secret = is_confidential(dependents->run->worker, dependent->api_version, dependent->kind);
        if (dependents_is_claimed(error))
                what = dependents->manager ? CLAIMED_BY_OTHERS : CLAIMED;
        snprintf(advised, sizeof(advised), "%s%s", what, kube_error_rights_advice(error));
        dependents_fail(dependents, dependent, advised,
                        confidential_words(secret, error, words, sizeof(words)));
        if (dependents_is_about_server(dependents, error))
                return -EHOSTDOWN;
        if (error->http_status >= 500)
                dependents_leave_kind(dependents, dependent);
        return 0;
}

int dependents_take_failure(struct dependents *dependents, struct dependent *dependent, const char *what,
                            const struct kube_response *response)
{
        /* The kind may have moved, or gone, since it was looked up. */
        if (response->error.http_status == 404 && dependent->lookups < LOOKUPS_MAX) {
                kinds_forget(dependents->run->worker, dependent->api_version, dependent->kind);
                kube_resource_done(&dependent->resource);
                dependent->lookups = LOOKUPS_MAX - 1;
                return -EAGAIN;
        }
        return dependents_take_refusal(dependents, dependent, what, &response->error, response);
}

void dependents_leave_kind(struct dependents *dependents, const struct dependent *dependent)
{
        for (size_t i = 0; i < dependents->known.count && dependents->pruning; i++)
                if (dependent_is_same_kind(&dependents->known.item[i], dependent))
                        dependents->known.item[i].failed = true;
}

/* A server that restarts, or is replaced for a moment, may not serve a kind that it did serve and will
 * serve again. */
bool dependents_is_believed(const struct dependents *dependents)
{
        return dependents->undo || dependents->run->order->attempt >= UNSERVED_MAX;
}

void dependents_note_unready(struct dependents *dependents, const struct dependent *dependent,
                             const char *why)
{
        if (dependents->waiting[0] == '\0' || dependent->failed)
                snprintf(dependents->waiting, sizeof(dependents->waiting), "%s %s: %.300s", dependent->kind,
                         dependent->name, why);
}

void dependents_note_refused(struct dependents *dependents, const struct dependent *dependent,
                             const struct kube_error *error)
{
        char why[300];

        dependents->server.silent = dependents->server.silent || refusal_result(error) != RESULT_RETRY;
        snprintf(why, sizeof(why), "%.200s", error->message);
        dependents_note_unready(dependents, dependent, why);
}

const char *dependents_waiting(const struct run *run)
{
        return run->dependents && !run->dependents->undo && run->dependents->waiting[0]
                       ? run->dependents->waiting
                       : NULL;
}

/* ---- looking kinds up */

/* Our knowledge of the kind may be stale, so the kind is looked up again before the handler is blamed. 0; -ESTALE: look it
 * up; another negative: the run has ended. */
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
        return run_finish(
                dependents->run, RESULT_PERMANENT, "the handler's answer: %s[%zu].metadata.namespace: %s",
                dependents->manager ? "patches" : "children", dependent->index,
                dependent->resource.namespaced ? "is missing, and the object that owns it has none either"
                                               : "its kind belongs to no namespace");
}

/* 1: the kind is among those that we know now; else as of dependents_resolve(). */
static int look_kind_up(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        struct run *run = dependents->run;
        _cleanup_kube_finding_ struct kube_finding found = KUBE_FINDING_EMPTY;
        int r;

        dependent->lookups++;
        r = run_ask_kind(run, dependent->api_version, dependent->kind, &found);
        if (r == -ECANCELED)
                return run_cut_off(run);
        if (r < 0)
                return r;
        if (found.resource.plural) {
                r = kinds_keep(run->worker, dependent->api_version, &found.resource);
                found.resource = (struct kube_resource){0};
                return r < 0 ? run_finish(run, RESULT_RETRY, "no memory for the kinds of its children") : 1;
        }
        if (found.error.http_status == 404) {
                snprintf(dependents->no_kind, sizeof(dependents->no_kind), "%s", found.error.message);
                return -ENXIO;
        }
        if (!dependents->wait)
                return dependents_take_refusal(dependents, dependent, "cannot be looked up", &found.error,
                                               &found.response);
        refusal_note(run, &found.response);
        dependents_note_refused(dependents, dependent, &found.error);
        return -EHOSTDOWN;
}

int dependents_resolve(struct dependents *dependents, struct dependent *dependent)
{
        struct run *run = dependents->run;

        for (;;) {
                int r;

                if (dependent->resource.plural)
                        return 1;
                r = kinds_get(run->worker, dependent->api_version, dependent->kind, &dependent->resource);
                if (r >= 0 && dependent->text.start)
                        r = settle_namespace(dependents, dependent);
                if (r == -ESTALE) {
                        kinds_forget(run->worker, dependent->api_version, dependent->kind);
                        kube_resource_done(&dependent->resource);
                } else if (r != -ENOENT) {
                        return r < 0 ? r : 1;
                }
                /* A kind that was looked for in vain: before that is believed, the server is asked once more. */
                if (dependent->stranger && dependents->pruning && !dependents_is_believed(dependents) &&
                    kinds_are_absent(run->worker, dependent->api_version, dependent->kind))
                        return -ENXIO;
                r = look_kind_up(dependents, dependent);
                if (r <= 0)
                        return r;
        }
}

/* ---- requests */

static const struct {
        const char *method, *content_type, *name;
} verb_table[] = {
        [DEPENDENTS_GET] = {"GET", NULL, NULL},
        [DEPENDENTS_APPLIES] = {"PATCH", APPLY_PATCH, "an apply"},
        [DEPENDENTS_CREATES] = {"POST", "application/json", "its creation"},
        [DEPENDENTS_MERGES] = {"PATCH", MERGE_PATCH, "a patch"},
        [DEPENDENTS_DELETES] = {"DELETE", NULL, "its deletion"},
};

/* An adoption must not take fields of others by force: they could not be given back. */
static bool is_forced(const struct dependents *dependents, const struct dependent *dependent)
{
        const struct record_watch *config = dependents->run->watch->config;

        if (dependents->manager)
                return false;
        return dependents->undo || (config->children_force && !(dependent->adopting && config->rollback));
}

/* Whether the server may have carried out a request that it refused or did not answer. A write that was sent
 * twice is bound to a version: if the second one succeeds, the first one was not carried out. */
static bool is_unclear(const struct kube_response *response)
{
        switch (response->error.failure) {
        case KUBE_FAILURE_NONE:
                return false;
        case KUBE_FAILURE_CONNECT:
        case KUBE_FAILURE_TLS:
        case KUBE_FAILURE_HELD:
                return response->repeated;
        case KUBE_FAILURE_HTTP:
                return response->repeated ||
                       (response->error.http_status >= 500 && !dependents_needs_post(&response->error));
        default:
                return true;
        }
}

/* The store may show it as it was before, or still older. */
static void note_left_child(struct dependents *dependents, const struct dependent *dependent,
                            const struct record_watch *owned, const char *version)
{
        _cleanup_(store_object_done) struct store_object object = {0};

        child_versions_add(dependents->run, owned, dependent->namespace_name, version, true);
        if (dependents_in_store(dependents, dependent, owned, &object) &&
            strcmp(object.resource_version, version) != 0)
                child_versions_add(dependents->run, owned, dependent->namespace_name,
                                   object.resource_version, true);
}

void dependents_note_released(struct dependents *dependents, const struct dependent *dependent)
{
        const struct record_watch *owned = dependents_find_owned(dependents, dependent);

        if (owned && dependent->version)
                note_left_child(dependents, dependent, owned, dependent->version);
}

/* Until a write is answered, its outcome is unknown; a 5xx may come from a proxy in front of a server that did it. */
static void note_answer(struct dependents *dependents, const struct dependent *dependent,
                        enum dependents_verb verb, bool was_unknown, const struct kube_response *response)
{
        struct run *run = dependents->run;
        const struct record_watch *owned = dependents_find_owned(dependents, dependent);
        const char *before = dependent->version ? dependent->version : "";
        bool unclear = is_unclear(response);
        struct identity identity;

        if (unclear)
                dependents_tell(dependents, dependent, CHILD_UNSURE, verb_table[verb].name);
        if (!owned)
                return;
        if (response->error.failure != KUBE_FAILURE_NONE) {
                if (response->error.http_status > 0 && !unclear)
                        run->versions.unknown = was_unknown;
                return;
        }
        run->versions.unknown = was_unknown;
        if (identity_read(response->body, response->body_size, false, &identity) >= 0 &&
            strcmp(identity.resource_version, before) != 0)
                child_versions_add(run, owned, dependent->namespace_name, identity.resource_version, false);
        if (verb == DEPENDENTS_DELETES)
                note_left_child(dependents, dependent, owned, before);
}

static int ask_to_write(struct dependents *dependents, const struct dependent *dependent,
                        enum dependents_verb verb, const struct kube_request *request,
                        struct kube_answer *ret) _suspends_
{
        struct run *run = dependents->run;
        bool was_unknown = run->versions.unknown;
        int r;

        if (fiber_is_ending(run->fiber))
                return run_cut_off(run);
        run->versions.unknown = was_unknown || dependents_find_owned(dependents, dependent);
        r = run_request(run, request, ret);
        if (r >= 0)
                note_answer(dependents, dependent, verb, was_unknown, &ret->response);
        else if (r != -ESHUTDOWN)
                run->versions.unknown = was_unknown; /* it was not sent */
        return r;
}

int dependents_ask(struct dependents *dependents, const struct dependent *dependent,
                   enum dependents_verb verb, const struct text *body, struct kube_answer *ret)
{
        struct run *run = dependents->run;
        _cleanup_free_ char *base = kube_path(&dependent->resource, dependent->namespace_name,
                                              verb == DEPENDENTS_CREATES ? NULL : dependent->name, NULL);
        _cleanup_text_ struct text path = TEXT_EMPTY;
        struct kube_request request = {
                .method = verb_table[verb].method,
                .content_type = verb_table[verb].content_type,
                .body = body ? body->data : NULL,
                .body_size = body ? body->size : 0,
                .timeout_usec = TIMEOUT_USEC,
                .confidential = is_confidential(run->worker, dependent->api_version, dependent->kind),
        };

        text_append_string(&path, base);
        if (verb == DEPENDENTS_APPLIES || verb == DEPENDENTS_CREATES || verb == DEPENDENTS_MERGES)
                kube_path_add(&path, "fieldManager",
                              dependents->manager ? dependents->manager
                                                  : run->worker->config->operator_name);
        if (verb == DEPENDENTS_APPLIES)
                kube_path_add(&path, "force", is_forced(dependents, dependent) ? "true" : "false");
        if (!base || path.failed)
                return -ENOMEM;
        request.path = path.data;
        return verb == DEPENDENTS_GET ? run_request(run, &request, ret)
                                      : ask_to_write(dependents, dependent, verb, &request, ret);
}

int dependents_look(struct dependents *dependents, struct dependent *dependent, struct kube_answer *ret)
{
        int r = dependents_ask(dependents, dependent, DEPENDENTS_GET, NULL, ret);

        if (r < 0)
                return r;
        if (ret->response.error.failure == KUBE_FAILURE_NONE ||
            kube_error_is_not_found(&ret->response.error))
                return 1;
        return dependents_take_failure(dependents, dependent, "cannot be looked at", &ret->response);
}

/* ---- in the store */

const struct record_watch *dependents_find_owned(const struct dependents *dependents,
                                                 const struct dependent *dependent)
{
        const struct worker *worker = dependents->run->worker;
        const char *owner = dependents->run->watch->config->name;

        for (size_t i = 0; i < worker->watch_count; i++) {
                const struct record_watch *config = worker->watch[i].config;

                if (!config->related && strcmp(config->owner, owner) == 0 &&
                    strcmp(config->api_version, dependent->api_version) == 0 &&
                    strcmp(config->kind, dependent->kind) == 0 &&
                    dependent_may_refer(&dependents->owner, dependent))
                        return config;
        }
        return NULL;
}

int dependents_in_store(const struct dependents *dependents, const struct dependent *dependent,
                        const struct record_watch *owned, struct store_object *ret)
{
        struct worker_watch *watch = owned ? worker_watch_find(dependents->run->worker, owned->name) : NULL;
        char key[IDENTITY_KEY_MAX + 1];

        return watch && !owned->metadata_only &&
               store_read(watch->reader, 0, dependent_key(dependent, key), ret) >= 0;
}

/* ---- telling */

static const struct {
        int level;
        const char *message_id, *text;
} write_table[] = {
        [CHILD_CREATED] = {LOG_INFO, MESSAGE_ID_CHILD_CREATED, "was created"},
        [CHILD_CHANGED] = {LOG_INFO, MESSAGE_ID_CHILD_CHANGED, "was changed: "},
        [CHILD_DELETED] = {LOG_INFO, MESSAGE_ID_CHILD_DELETED, "was deleted"},
        [CHILD_ADOPTED] =
                {LOG_NOTICE, MESSAGE_ID_CHILD_ADOPTED,
                 "was adopted: the operator writes to it from now on, and releases it in the end instead of "
                 "deleting it"},
        [CHILD_RELEASED] = {LOG_NOTICE, MESSAGE_ID_CHILD_RELEASED,
                            "was released: it stays, and is no child of the operator any more"},
        [PATCHED] = {LOG_INFO, MESSAGE_ID_PATCHED, "was patched: "},
        [PATCH_RELEASED] = {LOG_INFO, MESSAGE_ID_PATCH_RELEASED, "is not patched any more: "},
        [CHILD_UNSURE] = {LOG_NOTICE, MESSAGE_ID_CHILD_UNSURE,
                          "has perhaps changed, because no clear answer came to "},
};

void dependents_tell(const struct dependents *dependents, const struct dependent *dependent,
                     enum child_write what, const char *fields)
{
        const struct message_run *order = dependents->run->order;
        char name[600], sequence[24];

        snprintf(sequence, sizeof(sequence), "%llu", (unsigned long long)order->sequence);
        dependent_describe(dependent, name, sizeof(name));
        run_note_write(dependents->run, what, name, fields);
        if (dependents->run->worker->config->dry_run)
                return;
        log_write(write_table[what].level, write_table[what].message_id,
                  LOG_FIELDS({"RECONCILED_WATCH", order->watch}, {"RECONCILED_KEY", order->key},
                             {"RECONCILED_UID", order->uid}, {"RECONCILED_OBJECT", name},
                             {"RECONCILED_RUN", sequence}),
                  "watch %s, %s: %s %s%s", order->watch, order->key, name, write_table[what].text, fields);
}

struct field_list {
        char *text;
        size_t room, size, more;
        bool of_after;
};

static void add_field(const char *path, const cJSON *before _unused_, const cJSON *after, void *userdata)
{
        struct field_list *list = userdata;
        size_t size = strlen(path);

        if (strncmp(path, "status", strlen("status")) == 0 || (list->of_after && !after))
                return; /* not ours to write */
        if (strcmp(path, "apiVersion") == 0 || strcmp(path, "kind") == 0)
                return; /* items of a LIST lack them */
        if (list->size + size + 40 > list->room) {
                list->more++;
                return;
        }
        list->size += (size_t)snprintf(list->text + list->size, list->room - list->size, "%s%s",
                                       list->size > 0 ? ", " : "", path);
}

bool dependents_name_fields(const char *before, struct span after, bool of_after, char *buffer, size_t size)
{
        _cleanup_json_ cJSON *old = json_parse_served(before, strlen(before));
        _cleanup_json_ cJSON *new = json_parse_served(after.start, after.size);
        struct field_list list = {.text = buffer, .room = size, .of_after = of_after};

        buffer[0] = '\0';
        if (old && new)
                difference_visit(old, new, add_field, &list);
        if (list.more > 0)
                snprintf(buffer + list.size, size - list.size, " and %zu more", list.more);
        return list.size > 0 || list.more > 0;
}

bool dependents_tell_changed(const struct dependents *dependents, const struct dependent *dependent,
                             enum child_write what, const struct kube_response *response)
{
        char fields[400];

        if (!dependents_name_fields(dependent->before, (struct span){response->body, response->body_size},
                                    false, fields, sizeof(fields)))
                return false;
        dependents_tell(dependents, dependent, what, fields);
        return true;
}

/* ---- the end */

void dependents_free(struct dependents *dependents)
{
        if (!dependents)
                return;
        dependent_owner_done(&dependents->owner);
        dependent_list_done(&dependents->wanted);
        dependent_list_done(&dependents->known);
        dependent_list_done(&dependents->kept);
        dependent_list_done(&dependents->beside);
        dependent_list_done(&dependents->lost);
        free(dependents->manager);
        text_done(&dependents->failed.text);
        park_plan_done(&dependents->plan);
        free(dependents);
}
