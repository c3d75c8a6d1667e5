/* SPDX-License-Identifier: Apache-2.0 */
/* See sibling.h. */
#include "worker/write/sibling.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "kube/path.h"
#include "object/bookkeeping.h"
#include "object/fingerprint.h"
#include "object/namespace.h"
#include "object/scan-list.h"
#include "worker/dependents/notes.h"
#include "worker/write/object.h"
#include "worker/write/refusal.h"
#include "worker/write/step.h"

#define PARTIAL_LIST "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define ITEM_MAX     ((size_t)4 * 1024 * 1024)
#define TIMEOUT_USEC (30 * USEC_PER_SEC)

static void ask_next(struct run *run);

/* ---- who they are */

static size_t group_size(const char *api_version)
{
        const char *slash = strchr(api_version, '/');

        return slash ? (size_t)(slash - api_version) : 0;
}

static bool is_sibling(const struct record_watch *a, const struct record_watch *b)
{
        size_t size = group_size(a->api_version);

        return a != b && !b->owner[0] && strcmp(a->kind, b->kind) == 0 &&
               size == group_size(b->api_version) && memcmp(a->api_version, b->api_version, size) == 0;
}

static int find_siblings(struct run *run)
{
        struct worker *worker = run->worker;

        if (run->siblings.item)
                return 0;
        run->siblings.item = calloc(worker->watch_count, sizeof(*run->siblings.item));
        run->siblings.holder = calloc(worker->watch_count, sizeof(*run->siblings.holder));
        if (!run->siblings.item || !run->siblings.holder)
                return -ENOMEM;
        for (size_t i = 0; i < worker->watch_count; i++)
                if (is_sibling(run->watch->config, worker->watch[i].config))
                        run->siblings.item[run->siblings.count++].watch = &worker->watch[i];
        return 0;
}

void sibling_forget(struct run *run)
{
        for (size_t i = 0; i < run->siblings.count; i++)
                run->siblings.item[i].state = SIBLING_UNKNOWN;
}

void sibling_done(struct run *run)
{
        free(run->siblings.item);
        free(run->siblings.holder);
        run->siblings.item = NULL;
        run->siblings.holder = NULL;
        run->siblings.count = 0;
}

static const struct sibling *by_record(const struct run *run, const char *key)
{
        for (size_t i = 0; i < run->siblings.count; i++)
                if (strcmp(run->siblings.item[i].watch->config->children_key, key) == 0)
                        return &run->siblings.item[i];
        return NULL;
}

/* ---- lists of dependents */

bool sibling_keeps(const struct run *run, const char *key)
{
        return strcmp(key, run->watch->config->children_key) != 0 && !sibling_is_left(run, key);
}

static int note_left(const char *key, const struct dependent_list *list _unused_, void *userdata)
{
        return sibling_is_left(userdata, key) ? -EEXIST : 0;
}

bool sibling_has_left_list(struct run *run)
{
        return notes_visit_records(object_json(run), note_left, run) == -EEXIST;
}

bool sibling_is_left(const struct run *run, const char *key)
{
        const struct sibling *sibling = by_record(run, key);

        return sibling && sibling->state == SIBLING_SELECTS_NOT;
}

const struct sibling *sibling_holder(const struct run *run, const char *key)
{
        const struct sibling *sibling = by_record(run, key);

        return sibling && sibling->state == SIBLING_SELECTS ? sibling : NULL;
}

/* ---- a dependent that another watch has in its list */

struct clash {
        const struct run *run;
        struct dependent_list wanted;
        struct dependent_owner owner;
        struct sibling *sibling; /* the sibling that is to be asked for */
};

static int look_for_clash(const char *key, const struct dependent_list *list, void *userdata)
{
        struct clash *clash = userdata;
        struct sibling *sibling = (struct sibling *)(uintptr_t)by_record(clash->run, key);

        if (!sibling || sibling->state != SIBLING_UNKNOWN)
                return 0;
        for (size_t i = 0; i < list->count; i++)
                for (size_t k = 0; k < clash->wanted.count; k++)
                        if (dependent_is_recorded_as(&clash->owner, &clash->wanted.item[k],
                                                     &list->item[i])) {
                                clash->sibling = sibling;
                                return 0;
                        }
        return 0;
}

/* Whether the sibling selects the object decides what its list means: dependents/clash.c. Returns 1: the
 * server must be asked whether *ret does; 0; negative: the run was ended. */
static int find_clash(struct run *run, struct sibling **ret)
{
        const struct record_watch *config = run->watch->config;
        struct clash clash = {.run = run};
        int r = dependent_owner_init(&clash.owner, config->api_version, config->kind, run->order->uid,
                                     run->order->key);

        if (r >= 0)
                r = dependent_list_from_answer(run->answer.dependents_text, &clash.wanted);
        if (r >= 0)
                r = notes_visit_records(object_json(run), look_for_clash, &clash);
        dependent_list_done(&clash.wanted);
        dependent_owner_done(&clash.owner);
        *ret = clash.sibling;
        if (r < 0)
                run_finish(run, RESULT_RETRY, "the lists of its children cannot be compared: %s",
                           strerror(-r));
        return r < 0 ? -EINVAL : clash.sibling != NULL;
}

/* ---- what must be known */

static bool has_finalizer(const struct run *run, const char *name)
{
        struct finalizer_view view = {0};
        const char *json = object_json(run);

        return finalizer_look(json, strlen(json), name, &view) >= 0 && view.ours;
}

static bool has_notes(const struct run *run)
{
        _cleanup_free_ char *record = notes_find_record(run, object_json(run));

        return record || has_finalizer(run, run->watch->config->finalizer_key);
}

static bool has_theirs_only(const struct run *run, const struct sibling *sibling)
{
        return run->watch->config->finalizer && !has_finalizer(run, run->watch->config->finalizer_key) &&
               has_finalizer(run, sibling->watch->config->finalizer_key);
}

static bool is_holder(const struct run *run, const struct sibling *sibling)
{
        return sibling->watch->config->finalizer &&
               has_finalizer(run, sibling->watch->config->finalizer_key);
}

size_t sibling_list_holders(struct run *run)
{
        size_t count = 0;

        for (size_t i = 0; i < run->siblings.count && run->order->action == ACTION_UNSELECTED; i++) {
                const struct sibling *sibling = &run->siblings.item[i];

                if (is_holder(run, sibling))
                        run->siblings.holder[count++] = (struct record_holder){
                                sibling->watch->config->name, sibling->state == SIBLING_SELECTS_NOT};
        }
        return count;
}

/* Before this watch got an id, its finalizer had the name that now belongs to the watch without an id. An
 * object that goes, or leaves the selection, gets no new finalizer: the old one holds it for us. */
static bool was_named_so(const struct run *run, const struct sibling *sibling)
{
        return !sibling->watch->config->id[0] && run->order->handed_out && has_theirs_only(run, sibling) &&
               (object_is_deleting(run) || run->action == ACTION_UNSELECTED);
}

bool sibling_has_left(const struct run *run, struct span finalizer)
{
        for (size_t i = 0; i < run->siblings.count; i++)
                if (run->siblings.item[i].state == SIBLING_SELECTS_NOT &&
                    scan_string_equals(finalizer, run->siblings.item[i].watch->config->finalizer_key) &&
                    was_named_so(run, &run->siblings.item[i]))
                        return true;
        return false;
}

/* Whether the object comes from that sibling; asked before our finalizer is put on. */
static bool comes_from(const struct run *run, const struct sibling *sibling)
{
        return !run->carrying_out && run->action != ACTION_UNSELECTED && !object_is_deleting(run) &&
               has_theirs_only(run, sibling);
}

/* There is no list under our name, but one under the sibling's. Perhaps the watch that had the object
 * before has left it, or it is ours from the time when this watch had no id. */
static bool has_their_list(const struct run *run, const struct sibling *sibling)
{
        const char *json = object_json(run);
        _cleanup_free_ char *ours = notes_find_record(run, json), *theirs = NULL;

        if (!ours)
                theirs = notes_find(json, false, sibling->watch->config->children_key);
        return theirs != NULL;
}

/* A former attempt of this run may have been cut off behind its hand-over, and the object may have left the
 * other watch since then. */
static bool may_be_left(const struct run *run, const struct sibling *sibling)
{
        return run->carrying_out && run->action == ACTION_UNSELECTED && is_holder(run, sibling);
}

/* Returns 1: the server must be asked about *ret; 0; negative: the run was ended. */
static int find_unknown(struct run *run, struct sibling **ret)
{
        bool leaves = run->carrying_out && run->action == ACTION_UNSELECTED && has_notes(run);
        bool names = run->carrying_out && run->action == ACTION_RECONCILE && run->answer.dependents;
        bool ends = run->carrying_out && run->action == ACTION_FINALIZE;

        for (size_t i = 0; i < run->siblings.count; i++) {
                *ret = &run->siblings.item[i];
                if ((*ret)->state == SIBLING_UNKNOWN &&
                    (leaves || may_be_left(run, *ret) || comes_from(run, *ret) || was_named_so(run, *ret) ||
                     ((names || ends) && has_their_list(run, *ret))))
                        return 1;
        }
        return names ? find_clash(run, ret) : 0;
}

int sibling_is_due(struct run *run)
{
        struct sibling *unused;
        int r;

        if (!run->watch->config->shared[0])
                return 0;
        r = find_siblings(run);
        if (r < 0) {
                run_finish(run, RESULT_RETRY, "no memory for the other watches of its kind");
                return r;
        }
        return find_unknown(run, &unused);
}

/* ---- asking */

static bool filter_holds(const struct run *run, const char *filter)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *program = NULL;
        const char *json = object_json(run);
        bool holds = true; /* if the filter cannot be run, nothing is taken off */

        if (filter[0] && jq_program_new(filter, &program, NULL) >= 0)
                (void)jq_program_test(program, json, strlen(json), run->watch->config->metadata_only, &holds,
                                      NULL);
        return holds;
}

/* Judges without a request; UNKNOWN: that is not possible. */
static enum sibling_state judge_here(const struct run *run, const struct record_watch *config)
{
        const char *key = run->order->key, *slash = strchr(key, '/');

        if (!namespace_match(config->namespace, config->namespace_count, key,
                             slash ? (size_t)(slash - key) : 0) ||
            !filter_holds(run, config->filter))
                return SIBLING_SELECTS_NOT;
        return config->label_selector[0] || config->field_selector[0] ? SIBLING_UNKNOWN : SIBLING_SELECTS;
}

static int count_item(const char *item, size_t size _unused_, void *userdata)
{
        *(bool *)userdata = item != NULL;
        return 0;
}

static int take_list(const struct kube_response *response, bool *ret)
{
        _cleanup_(scan_list_free_pointer) struct scan_list *list = NULL;
        struct scan_list_metadata metadata;
        int r = scan_list_new(ITEM_MAX, count_item, ret, &list);

        *ret = false;
        if (r >= 0)
                r = scan_list_feed(list, response->body, response->body_size);
        return r < 0 ? r : scan_list_finish(list, &metadata);
}

static void on_asked(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                     void *userdata)
{
        struct run *run = userdata;
        struct sibling *sibling = run->siblings.asked;
        bool found;

        run->request.transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE) {
                refusal_note(run, response);
                run_finish(run, refusal_result(&response->error),
                           "cannot ask whether watch %s selects the object as well: %s",
                           sibling->watch->config->name, response->error.message);
                return;
        }
        if (take_list(response, &found) < 0) {
                run_finish(run, RESULT_RETRY, "the API server's answer to a list cannot be understood");
                return;
        }
        sibling->state = found ? SIBLING_SELECTS : SIBLING_SELECTS_NOT;
        ask_next(run);
}

static int ask(struct run *run, struct sibling *sibling)
{
        const struct record_watch *config = sibling->watch->config;
        _cleanup_free_ char *base = NULL, *place = NULL, *name = NULL;
        _cleanup_text_ struct text path = TEXT_EMPTY, fields = TEXT_EMPTY;
        struct kube_request request = {
                .method = "GET",
                .accept = PARTIAL_LIST,
                .timeout_usec = TIMEOUT_USEC,
                .on_done = on_asked,
                .userdata = run,
        };
        int r = kube_key_split(run->order->key, &place, &name);

        if (r < 0)
                return r;
        base = kube_path(&run->watch->resource, place, NULL, NULL);
        text_append_string(&path, base);
        text_printf(&fields, "metadata.name=%s%s%s", name, config->field_selector[0] ? "," : "",
                    config->field_selector);
        kube_path_add(&path, "fieldSelector", fields.data);
        if (config->label_selector[0])
                kube_path_add(&path, "labelSelector", config->label_selector);
        kube_path_add(&path, "limit", "1");
        if (!base || path.failed || fields.failed)
                return -ENOMEM;
        run->siblings.asked = sibling;
        request.path = path.data;
        return kube_client_start(run->worker->client, &request, &run->request.transfer);
}

static void ask_next(struct run *run)
{
        struct sibling *sibling;
        int r;

        while ((r = find_unknown(run, &sibling)) > 0) {
                sibling->state = judge_here(run, sibling->watch->config);
                if (sibling->state != SIBLING_UNKNOWN)
                        continue;
                r = ask(run, sibling);
                if (r < 0)
                        run_finish(run, refusal_result_not_started(r),
                                   "cannot ask which other watches of its kind select the object: %s",
                                   strerror(-r));
                return;
        }
        if (r == 0)
                step_done(run);
}

int sibling_send(struct run *run)
{
        ask_next(run);
        return 0;
}
