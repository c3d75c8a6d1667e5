/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Absence that proves nothing by itself (a selector, a changed scope) is put to the server: 404 or another
 * UID means deleted; an object that is there has merely left the selection. A few questions at a time; one
 * that fails is asked again. An object that the store shows again meanwhile answers for itself.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/watcher.h"

#define QUESTIONS_MAX         8
#define QUESTION_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define RETRY_USEC            USEC_PER_SEC

struct question {
        struct question *next;
        struct watcher *watcher;
        struct kube_transfer *transfer;
        uint64_t sequence;
        bool owed; /* from the ledger: the store may never have known it */
        char *key, *uid;
};

struct verification {
        struct question *waiting, *last, *asked;
        size_t asked_count;
        sd_event_source *retry_timer;
};

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

static bool has_uid(const char *body, size_t size, const char *uid)
{
        struct scan_object object;

        return scan_object(body, size, &object) >= 0 && scan_string_equals(object.uid, uid);
}

/* Seen again by a stream since the question was asked: it is selected, and needs no verdict. */
static bool seen_again(struct watcher *watcher, const struct question *question)
{
        struct store_object stored;
        bool again;

        if (store_peek(watcher->store, question->key, &stored) < 0)
                return false;
        again = strcmp(stored.uid, question->uid) == 0;
        for (size_t i = 0; i < watcher->stream_count && again; i++)
                if (watcher->stream[i].synced && stored.mark < watcher->stream[i].mark)
                        again = false;
        store_object_done(&stored);
        return again;
}

static void judge(struct question *question, const struct kube_response *response)
{
        struct watcher *watcher = question->watcher;
        bool exists =
                response->http_status == 200 && has_uid(response->body, response->body_size, question->uid);

        if (!exists)
                (void)apply_gone(watcher, question->key, question->uid);
        else if (question->owed || !seen_again(watcher, question))
                (void)apply_unselected(watcher, question->key, question->uid);
}

static int on_retry(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct watcher *watcher = userdata;

        watcher->verification->retry_timer =
                sd_event_source_disable_unref(watcher->verification->retry_timer);
        verification_continue(watcher);
        return 0;
}

static void retry_later(struct watcher *watcher)
{
        struct verification *verification = watcher->verification;

        if (!verification->retry_timer &&
            sd_event_add_time_relative(watcher->child->event, &verification->retry_timer, CLOCK_BOOTTIME,
                                       RETRY_USEC, 0, on_retry, watcher) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "no memory for a timer");
}

static void on_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                    void *userdata)
{
        struct question *question = userdata;
        struct watcher *watcher = question->watcher;

        question->transfer = NULL;
        unlink_asked(watcher->verification, question);
        if (watcher->child->stopping) {
                question_free(question);
                return;
        }
        if (response->http_status == 200 || response->http_status == 404) {
                judge(question, response);
                question_free(question);
                announce_soon(watcher);
                verification_continue(watcher);
                owed_finish_maybe(watcher);
                return;
        }
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

void verification_continue(struct watcher *watcher)
{
        struct verification *verification = watcher->verification;

        if (verification->retry_timer || !watcher->discovered)
                return;
        while (verification->waiting && verification->asked_count < QUESTIONS_MAX) {
                struct question *question = verification->waiting;

                verification->waiting = question->next;
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
