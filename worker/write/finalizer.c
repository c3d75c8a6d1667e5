/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See finalizer.h. A merge patch replaces the whole list of finalizers, so it carries the resourceVersion
 * that was read. Only the watch's own finalizer is put on or taken off.
 */
#include "worker/write/finalizer.h"

#include <errno.h>
#include <string.h>

#include "object/fingerprint.h"
#include "worker/dependents/notes.h"
#include "worker/write/leaving.h"
#include "worker/write/object.h"
#include "worker/write/patch.h"

#define ORPHANED_NAME "orphaned"

/* Shows the handler the object as it is now. (Where only the metadata is known, it stays as it was.) */
static int show_current(struct run *run)
{
        char *copy;

        if (fingerprint_is_partial(run->object.json, run->object.json_size))
                return 0;
        copy = strdup(run->now.json);
        if (!copy)
                return -ENOMEM;
        free(run->json);
        run->json = copy;
        return 0;
}

struct finalizers {
        struct text all; /* the new list without ours, with commas between */
        bool has_ours;
};

static void add_finalizer(struct text *all, const char *name)
{
        text_append_string(all, all->size > 0 ? "," : "");
        text_json_string(all, name);
}

/* Reads the finalizers of others, all or none: none must be lost to a shortage of memory. `all` is the
 * caller's. */
static int finalizers_read(const struct run *run, struct finalizers *ret)
{
        const char *json = object_json(run);
        struct scan_object object;
        struct scan_walk walk;
        int r = scan_object(json, strlen(json), &object);

        *ret = (struct finalizers){0};
        if (r < 0)
                return r;
        SCAN_ELEMENTS(walk, object.finalizers) {
                if (bookkeeping_has_word(run->watch->config->finalizers, walk.value)) {
                        ret->has_ours = true;
                        continue;
                }
                text_append_string(&ret->all, ret->all.size > 0 ? "," : "");
                text_append(&ret->all, walk.value.start, walk.value.size);
        }
        return walk.status < 0 ? walk.status : ret->all.failed ? -ENOMEM : 0;
}

int finalizer_is_there(struct run *run)
{
        struct finalizers finalizers;
        int r = finalizers_read(run, &finalizers);

        text_done(&finalizers.all);
        if (r >= 0)
                return finalizers.has_ours;
        return run_finish(run, RESULT_RETRY, "the object's finalizers cannot be read: %s", strerror(-r));
}

/* An object that is being deleted gets no finalizer. If an object is not selected any more, ours is taken
 * off after the handler. But a watch that does not want the finalizer any more holds no object that is being
 * deleted. */
int finalizer_is_wrong(struct run *run)
{
        int r;

        if (run->action == ACTION_UNSELECTED)
                return !run->watch->config->finalizer && object_is_deleting(run) &&
                       object_finalizer(run).ours;
        if (!run->watch->config->finalizer)
                return run->watch->config->releases && object_finalizer(run).ours;
        r = finalizer_is_there(run);
        return r < 0 ? r : !r && !object_is_deleting(run);
}

/* ---- writing */

int finalizer_must_go(struct run *run)
{
        if (leaving_waits(run))
                return 0;
        if (run->action == ACTION_UNSELECTED || run->action == ACTION_RELEASE)
                return finalizer_is_there(run);
        return run->action == ACTION_FINALIZE && run->order->action != ACTION_DELETED &&
                               !run->answer.not_done
                       ? finalizer_is_there(run)
                       : 0;
}

/* A merge patch replaces whole lists, so it is locked by the version that was read. */
static int finalizer_body(const struct run *run, bool with_ours, struct text *body)
{
        struct finalizers finalizers;
        int r = finalizers_read(run, &finalizers);

        text_json(body, "{\"metadata\":{\"uid\":?,\"resourceVersion\":?,\"finalizers\":[", run->order->uid,
                  object_version(run));
        if (with_ours)
                add_finalizer(&finalizers.all, run->watch->config->finalizer_key);
        text_append(body, finalizers.all.data, finalizers.all.size);
        text_append_string(body, "]}}");
        if (r >= 0 && (finalizers.all.failed || body->failed))
                r = -ENOMEM;
        text_done(&finalizers.all);
        return r;
}

/* Takes the answer to `what`, `name` for short. show: the handler is to see the object as it is now. */
static int take_finalizer_written(struct run *run, const char *what, const char *name, bool show,
                                  const struct kube_response *response) _suspends_
{
        if (response->error.failure != KUBE_FAILURE_NONE)
                return object_refused(run, what, response);
        if (object_take_result(run, response) < 0 || (show && show_current(run) < 0))
                return run_finish(run, RESULT_RETRY, "the API server's answer to %s cannot be understood",
                                  name);
        return 0;
}

int note_take_written(struct run *run, const char *what, const char *name,
                      const struct kube_response *response)
{
        return take_finalizer_written(run, what, name, true, response);
}

int finalizer_send(struct run *run)
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r;

        run->released = run->action == ACTION_UNSELECTED && !run->answered;
        r = finalizer_body(run, !run->answered && run->watch->config->finalizer, &body);
        if (r >= 0)
                r = patch_send(run, NULL, &body, true, &answer);
        if (r < 0)
                return r;
        /* An object that was released is finished, whatever others have changed meanwhile. */
        if (run->answered && run->action == ACTION_FINALIZE)
                run->now.foreign = false;
        if (kube_error_is_not_found(&answer.response.error) && (run->answered || run->released))
                return 0; /* the object is gone, as intended */
        return take_finalizer_written(run, "operator's finalizer", "the finalizer", !run->answered,
                                      &answer.response);
}

/* ---- what an operator has noted under a name that it had before */

static const char *const note_name[] = {CHILDREN_NAME, PATCHED_NAME, FINALIZER_NAME, ORPHANED_NAME};

/* OPERATOR/ID.NAME; the last one is not of a watch. */
static void name_note(const struct run *run, const char *operator_name, size_t note, char *key, size_t size)
{
        const char *id = note == ELEMENTS(note_name) - 1 ? "" : run->watch->config->id;

        snprintf(key, size, "%s/%s%s%s", operator_name, id, id[0] ? "." : "", note_name[note]);
}

/* Appends what renames the annotations. An object that is being deleted gets no new finalizer; there the former one
 * counts as it is. Returns whether there is anything to rename. */
static bool rename_notes(const struct run *run, struct text *annotations)
{
        const char *list = run->worker->config->former_names, *json = object_json(run);
        char former[200], key[300], new_key[300];
        bool any = false;

        while (bookkeeping_next_word(&list, former, sizeof(former)))
                for (size_t i = 0; i < ELEMENTS(note_name); i++) {
                        struct finalizer_view view = {0};
                        _cleanup_free_ char *value = NULL;

                        name_note(run, former, i, key, sizeof(key));
                        name_note(run, run->worker->config->operator_name, i, new_key, sizeof(new_key));
                        if (strcmp(note_name[i], FINALIZER_NAME) == 0) {
                                any = any || (finalizer_look(json, strlen(json), key, &view) >= 0 &&
                                              view.ours && !view.deleting && run->watch->config->finalizer);
                                continue;
                        }
                        value = notes_find(json, false, key);
                        if (!value)
                                continue;
                        any = true;
                        text_append_string(annotations, annotations->size > 0 ? "," : "");
                        text_json(annotations, "?:null,?:?", key, new_key, value);
                }
        return any;
}

int notes_are_former(struct run *run)
{
        _cleanup_text_ struct text annotations = TEXT_EMPTY;

        return run->object.json && !run_is_of_deletion(run) && rename_notes(run, &annotations);
}

int notes_rename(struct run *run)
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY, annotations = TEXT_EMPTY;
        struct finalizers finalizers;
        int r = finalizers_read(run, &finalizers);

        (void)rename_notes(run, &annotations);
        text_json(&body, "{\"metadata\":{\"uid\":?,\"resourceVersion\":?", run->order->uid,
                  object_version(run));
        if (finalizers.has_ours && !object_is_deleting(run) && run->watch->config->finalizer) {
                add_finalizer(&finalizers.all, run->watch->config->finalizer_key);
                text_append_string(&body, ",\"finalizers\":[");
                text_append(&body, finalizers.all.data, finalizers.all.size);
                text_append_string(&body, "]");
        }
        text_append_string(&body, ",\"annotations\":{");
        text_append(&body, annotations.data, annotations.size);
        text_append_string(&body, "}}}");
        if (r >= 0 && (finalizers.all.failed || body.failed || annotations.failed))
                r = -ENOMEM;
        text_done(&finalizers.all);
        if (r >= 0)
                r = patch_send(run, NULL, &body, true, &answer);
        return r < 0 ? r
                     : take_finalizer_written(run, "operator's notes under its new name", "a note", true,
                                              &answer.response);
}

/* ---- the finalizer of the garbage collector, and the note that it was there */

#define ORPHAN_FINALIZER "orphan"

static bool is_orphaning(const struct run *run)
{
        struct finalizer_view view = {0};
        const char *json = object_json(run);

        return finalizer_look(json, strlen(json), ORPHAN_FINALIZER, &view) >= 0 && view.ours;
}

static bool is_noted(const struct run *run)
{
        _cleanup_free_ char *key = NULL, *value = NULL;

        if (asprintf(&key, "%s/" ORPHANED_NAME, run->worker->config->operator_name) < 0)
                return false;
        value = notes_find(object_json(run), false, key);
        return value && strcmp(value, run->order->uid) == 0; /* a copied annotation says nothing */
}

bool orphan_is_wanted(const struct run *run)
{
        return is_orphaning(run) || is_noted(run);
}

int orphan_is_unnoted(struct run *run)
{
        return run->action == ACTION_FINALIZE && !run_is_of_deletion(run) && is_orphaning(run) &&
               !is_noted(run);
}

int orphan_send(struct run *run)
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r;

        text_json(&body, "{\"metadata\":{\"uid\":?,\"resourceVersion\":?", run->order->uid,
                  object_version(run));
        text_printf(&body,
                    ",\"annotations\":{\"%s/" ORPHANED_NAME "\":", run->worker->config->operator_name);
        text_json(&body, "?}}}", run->order->uid);
        r = body.failed ? -ENOMEM : patch_send(run, NULL, &body, true, &answer);
        if (r < 0 || kube_error_is_not_found(&answer.response.error))
                return r;
        return take_finalizer_written(run, "operator's note that its children are orphaned", "a note", false,
                                      &answer.response);
}
