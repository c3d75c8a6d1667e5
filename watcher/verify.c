/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Absence that proves nothing by itself (a selector, a changed scope) is put to the server: 404 or another
 * UID means deleted; an object that is there has merely left the selection. A few questions at a time; one
 * that fails is asked again, slower and slower. An object that a stream shows again meanwhile answers for
 * itself. What must never happen here: an answer that is not certain, taken for a deletion.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/watcher.h"

#define QUESTIONS_MAX         8
#define QUESTION_TIMEOUT_USEC (30 * USEC_PER_SEC)

struct question {
        struct question *next;
        struct watcher *watcher;
        struct kube_transfer *transfer;
        bool owed; /* from the ledger: the store may never have known it */
        char *key, *uid;
};

struct verification {
        struct question *waiting, *last, *asked;
        size_t asked_count;
        sd_event_source *retry_timer;
        struct trouble trouble; /* its pace alone */
        bool refusal_told;
};

enum verdict { VERDICT_UNKNOWN, VERDICT_GONE, VERDICT_EXISTS };

int verification_new(struct watcher *watcher _unused_, struct verification **ret)
{
        struct verification *verification = calloc(1, sizeof(*verification));

        if (!verification)
                return -ENOMEM;
        *ret = verification;
        return 0;
}

static void question_free(struct question *question)
{
        kube_transfer_cancel(question->transfer);
        free(question->key);
        free(question->uid);
        free(question);
}

static void questions_free(struct question *question)
{
        while (question) {
                struct question *next = question->next;

                question_free(question);
                question = next;
        }
}

void verification_free(struct verification *verification)
{
        if (!verification)
                return;
        questions_free(verification->waiting);
        questions_free(verification->asked);
        sd_event_source_disable_unref(verification->retry_timer);
        free(verification);
}

bool verification_idle(const struct watcher *watcher)
{
        return !watcher->verification->waiting && !watcher->verification->asked;
}

static void enqueue(struct verification *verification, struct question *question)
{
        question->next = NULL;
        if (verification->waiting)
                verification->last->next = question;
        else
                verification->waiting = question;
        verification->last = question;
}

int verification_add(struct watcher *watcher, const char *key, const char *uid, bool owed)
{
        struct question *question = calloc(1, sizeof(*question));

        if (question) {
                question->watcher = watcher;
                question->owed = owed;
                question->key = strdup(key);
                question->uid = strdup(uid);
        }
        if (!question || !question->key || !question->uid) {
                if (question)
                        question_free(question);
                return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, key,
                                   "no memory");
        }
        enqueue(watcher->verification, question);
        announce_soon(watcher);
        verification_continue(watcher);
        return 0;
}

static void unlink_asked(struct verification *verification, struct question *question)
{
        struct question **place = &verification->asked;

        while (*place != question)
                place = &(*place)->next;
        *place = question->next;
        verification->asked_count--;
}

/* ---- answers */

/* A 404 counts only when the server means the object: one that does not serve the resource (any more, or
 * yet) answers 404 as well, without this reason. */
static enum verdict verdict_of(const struct question *question, const struct kube_response *response)
{
        struct scan_object object;

        if (response->error.failure == KUBE_FAILURE_HTTP)
                return response->http_status == 404 && response->error.reason &&
                                       strcmp(response->error.reason, "NotFound") == 0
                               ? VERDICT_GONE
                               : VERDICT_UNKNOWN;
        if (response->error.failure != KUBE_FAILURE_NONE ||
            scan_object(response->body, response->body_size, &object) < 0 || !object.uid.start)
                return VERDICT_UNKNOWN;
        return scan_string_equals(object.uid, question->uid) ? VERDICT_EXISTS : VERDICT_GONE;
}

/* 1: still without an answer. What a stream has shown again since is selected, and what is buried is known.
 */
static int is_open(const struct question *question)
{
        struct watcher *watcher = question->watcher;
        const struct stream *stream = stream_of_key(watcher, question->key);
        struct store_object stored;
        bool same;
        int r = store_peek(watcher->store, question->key, &stored);

        if (r < 0 && r != -ENOENT)
                return store_failed(watcher, r);
        if (r >= 0) {
                same = strcmp(stored.uid, question->uid) == 0;
                r = !stream || stored.mark < stream->complete_mark;
                store_object_done(&stored);
                if (same)
                        return r;
        }
        return question->owed && !store_tombstone_exists(watcher->store, question->key, question->uid);
}

static int judge(const struct question *question, enum verdict verdict)
{
        int r = is_open(question);

        if (r <= 0)
                return r;
        return verdict == VERDICT_GONE ? apply_gone(question->watcher, question->key, question->uid)
                                       : apply_unselected(question->watcher, question->key, question->uid);
}

static int on_retry(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct watcher *watcher = userdata;

        watcher->verification->retry_timer =
                sd_event_source_disable_unref(watcher->verification->retry_timer);
        verification_continue(watcher);
        owed_finish_maybe(watcher);
        return 0;
}

static void retry_later(struct watcher *watcher)
{
        struct verification *verification = watcher->verification;

        if (!verification->retry_timer &&
            sd_event_add_time_relative(watcher->child->event, &verification->retry_timer, CLOCK_BOOTTIME,
                                       trouble_delay(watcher, &verification->trouble), 1, on_retry,
                                       watcher) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "no memory for a timer");
}

/* Once: it goes on until somebody grants it, and no deletion is known until then. */
static void tell_refusal(const struct question *question, const struct kube_response *response)
{
        struct watcher *watcher = question->watcher;

        if (response->http_status != 403 || watcher->verification->refusal_told)
                return;
        watcher->verification->refusal_told = true;
        log_error(
                "watch %s: whether %s was deleted cannot be found out, the API server refuses it (%s); its "
                "deletion waits. Grant the verb 'get' beside 'list' and 'watch'",
                watcher->config->watch, question->key, response->error.message);
}

static void on_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                    void *userdata)
{
        struct question *question = userdata;
        struct watcher *watcher = question->watcher;
        enum verdict verdict = verdict_of(question, response);

        question->transfer = NULL;
        unlink_asked(watcher->verification, question);
        if (watcher->child->stopping) {
                question_free(question);
                return;
        }
        if (verdict != VERDICT_UNKNOWN) {
                watcher->verification->trouble.delay_usec = 0;
                (void)judge(question, verdict); /* a failure has said so */
                question_free(question);
                announce_soon(watcher);
                verification_continue(watcher);
                owed_finish_maybe(watcher);
                return;
        }
        tell_refusal(question, response);
        trouble_tell(watcher, &response->error, response->credential_serial);
        enqueue(watcher->verification, question);
        retry_later(watcher);
}

/* ---- questions */

static int ask(struct watcher *watcher, struct question *question)
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL, *path = NULL;
        struct kube_request request = {
                .method = "GET",
                .timeout_usec = QUESTION_TIMEOUT_USEC,
                .on_done = on_done,
                .userdata = question,
        };
        int r = kube_key_split(question->key, &namespace_name, &name);

        if (r < 0)
                return r;
        path = kube_path(&watcher->resource, namespace_name, name, NULL);
        if (!path)
                return -ENOMEM;
        request.path = path;
        return kube_client_start(watcher->client, &request, &question->transfer);
}

/* The same object may have been asked about twice: each LIST that lacks it does. */
static struct question *next_question(struct verification *verification)
{
        while (verification->waiting) {
                struct question *question = verification->waiting;
                int r = is_open(question);

                if (r < 0)
                        return NULL;
                verification->waiting = question->next;
                if (r > 0)
                        return question;
                question_free(question);
        }
        return NULL;
}

void verification_continue(struct watcher *watcher)
{
        struct verification *verification = watcher->verification;
        struct question *question;

        if (verification->retry_timer || !watcher->discovered)
                return;
        while (verification->asked_count < QUESTIONS_MAX && (question = next_question(verification))) {
                question->next = verification->asked;
                verification->asked = question;
                verification->asked_count++;
                if (ask(watcher, question) < 0) {
                        unlink_asked(verification, question);
                        enqueue(verification, question);
                        retry_later(watcher);
                        return;
                }
        }
}
