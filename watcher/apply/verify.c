/* SPDX-License-Identifier: Apache-2.0 */
/* Circle: what comes from the server, or is compared with the ledger, raises questions; their answers are applied like it. */
#include "watcher/apply/verify.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "kube/path.h"
#include "store/owner.h"
#include "store/record.h"
#include "store/writer.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/incoming.h"
#include "watcher/apply/ledger-check.h"
#include "watcher/apply/scope.h"
#include "watcher/asking.h"
#include "watcher/failures.h"
#include "watcher/store-failure.h"
#include "watcher/stream/stream-request.h"

#define QUESTIONS_MAX         8
#define QUESTION_TIMEOUT_USEC (30 * USEC_PER_SEC)

/* A question that is in flight, on a fiber of its own. */
struct question {
        struct question *next;
        struct watcher *watcher;
        struct store_question stored;
};

struct verification {
        struct question *asked;
        size_t asked_count;
        struct store_question
                after; /* the last one that was asked in this round; key NULL if there is none */
        struct store_question
                hop; /* after all questions of the namespace that had the last turn; key NULL if none had */
        bool hops;   /* the last question was asked for a turn */
        bool pauses; /* until the next attempt */
        struct failures failures; /* only its pace is used */
        bool refusal_told;
};

enum verdict { VERDICT_UNKNOWN, VERDICT_GONE, VERDICT_EXISTS };

int verification_new(struct verification **ret)
{
        struct verification *verification = calloc(1, sizeof(*verification));

        if (!verification)
                return -ENOMEM;
        *ret = verification;
        return 0;
}

static void question_free(struct question *question)
{
        store_question_done(&question->stored);
        free(question);
}
DEFINE_CLEANUP(struct question *, question_free);

void verification_free(struct verification *verification)
{
        if (!verification)
                return;
        assert(!verification->asked);
        store_question_done(&verification->after);
        store_question_done(&verification->hop);
        free(verification);
}

bool verification_idle(const struct watcher *watcher)
{
        return store_question_count(watcher->store) == 0;
}

int verification_add(struct watcher *watcher, const char *key, const char *uid, bool owed)
{
        int r = store_question_add(watcher->store, key, uid, owed);

        if (r < 0)
                return store_failed(watcher, r);
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

static enum verdict verdict_of(const struct question *question, const struct kube_response *response)
{
        struct scan_object object;

        if (response->error.failure == KUBE_FAILURE_HTTP)
                return kube_error_is_not_found(&response->error) ? VERDICT_GONE : VERDICT_UNKNOWN;
        if (response->error.failure != KUBE_FAILURE_NONE ||
            scan_object(response->body, response->body_size, &object) < 0 || !object.uid.start)
                return VERDICT_UNKNOWN;
        return scan_string_equals(object.uid, question->stored.uid) ? VERDICT_EXISTS : VERDICT_GONE;
}

/* Returns 1: the question still needs an answer. An object that a stream has shown again since is
 * selected, and one with a tombstone is known to be deleted. */
static int is_open(struct watcher *watcher, const struct store_question *question)
{
        const struct stream *stream = stream_of_key(watcher, question->key);
        struct store_object stored;
        bool same;
        int r = store_peek(watcher->store, question->key, &stored);

        if (r < 0 && r != -ENOENT)
                return r;
        if (r >= 0) {
                same = strcmp(stored.uid, question->uid) == 0;
                r = !stream || stored.mark < stream->complete_mark;
                store_object_done(&stored);
                if (same)
                        return r;
        }
        return question->owed && !store_tombstone_exists(watcher->store, question->key, question->uid);
}

/* If the watch selects everything, an object that exists has not left the selection: it could not be read, or
 * the list was stale. */
static bool may_be_unselected(const struct watcher *watcher, const struct store_question *question,
                              const struct stream *stream)
{
        return !(stream && absence_is_deletion(watcher) && !watcher->filter_program) &&
               doubt_of(watcher, question->key, question->uid) != DOUBT_UNREAD;
}

static int judge_absence(struct watcher *watcher, const struct store_question *question,
                         enum verdict verdict)
{
        const struct stream *stream = stream_of_key(watcher, question->key);
        int r = is_open(watcher, question);

        if (r > 0 && verdict == VERDICT_GONE)
                r = apply_gone(watcher, question->key, question->uid);
        else if (r > 0 && may_be_unselected(watcher, question, stream))
                r = apply_unselected(watcher, question->key, question->uid, false);
        else if (r < 0)
                r = store_failed(watcher, r);
        if (r < 0)
                return r;
        r = store_question_remove(watcher->store, question->key, question->uid);
        return r < 0 ? store_failed(watcher, r) : 0;
}

/* Logged once: the refusal lasts until somebody grants the right, and until then the deletion stays
 * unknown. */
static void tell_refusal(const struct question *question, const struct kube_response *response)
{
        struct watcher *watcher = question->watcher;

        if (response->http_status != 403 || watcher->verification->refusal_told)
                return;
        watcher->verification->refusal_told = true;
        log_error(
                "watch %s: cannot tell whether %s was deleted: the API server refuses the request (%s); its "
                "deletion waits. Grant the verb 'get' in addition to 'list' and 'watch'",
                watcher->config->watch, question->stored.key, response->error.message);
}

/* ---- questions */

static int put_question(const struct question *question, struct kube_answer *ret) _suspends_
{
        struct watcher *watcher = question->watcher;
        _cleanup_free_ char *namespace_name = NULL, *name = NULL, *path = NULL;
        struct kube_request request = {
                .method = "GET",
                .accept = request_accept(watcher, REQUEST_WATCH),
                .timeout_usec = QUESTION_TIMEOUT_USEC,
        };
        int r = kube_key_split(question->stored.key, &namespace_name, &name);

        if (r < 0)
                return r;
        request.path = path = kube_path(&watcher->resource, namespace_name, name, NULL);
        return path ? asking_ask(watcher, &request, ret) : -ENOMEM;
}

/* Returns 0: it is answered; -EAGAIN: it is still open; -ECANCELED. */
static int answer_question(const struct question *question) _suspends_
{
        struct watcher *watcher = question->watcher;
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct kube_response *response = &answer.response;
        enum verdict verdict;
        int r = put_question(question, &answer);

        if (r < 0)
                return r == -ECANCELED ? r : -EAGAIN;
        verdict = verdict_of(question, response);
        if (verdict == VERDICT_UNKNOWN) {
                tell_refusal(question, response);
                failures_tell(watcher, &response->error, response->credential_serial);
                return -EAGAIN;
        }
        watcher->verification->failures.delay_usec = 0;
        (void)judge_absence(watcher, &question->stored, verdict); /* a failure was reported */
        announce_soon(watcher);
        return 0;
}

/* Waits until the next attempt. -EBUSY: another fiber waits for it already. */
static int pause_questions(struct watcher *watcher) _suspends_
{
        struct verification *verification = watcher->verification;
        int r;

        if (verification->pauses)
                return -EBUSY;
        verification->pauses = true;
        r = asking_pause(watcher, failures_delay(watcher, &verification->failures), NULL);
        verification->pauses = false;
        return r;
}

/* The fiber of one question. Its end makes room for the next ones; after a failure, not before the pause. */
static void ask_question(void *userdata) _suspends_
{
        _cleanup_(question_free_pointer) struct question *question = userdata;
        struct watcher *watcher = question->watcher;
        int r = answer_question(question);

        unlink_asked(watcher->verification, question);
        if (r == -EAGAIN)
                r = pause_questions(watcher);
        if (r < 0)
                return;
        verification_continue(watcher);
        ledger_check_finish_maybe(watcher);
}

static bool is_asked(const struct verification *verification, const struct store_question *stored)
{
        for (const struct question *question = verification->asked; question; question = question->next)
                if (strcmp(question->stored.key, stored->key) == 0 &&
                    strcmp(question->stored.uid, stored->uid) == 0)
                        return true;
        return false;
}

/* While its namespace is refused, so is the question; the others do not wait for it. */
static bool would_be_refused(struct watcher *watcher, const struct store_question *stored)
{
        const struct stream *stream = stream_of_key(watcher, stored->key);

        return stream && stream_is_refused(stream);
}

/* Finds the next question after *place that needs an answer; removes those that need none any more.
 * in_one: in the namespace of the first one that is found. -ENOENT: there is none. */
static int find_open(struct watcher *watcher, struct store_question *place, bool in_one)
{
        struct store_question found;
        size_t namespace_size = 0;
        int r;

        while ((r = store_question_next(watcher->store, place->key ? place : NULL, &found)) >= 0) {
                if (in_one && namespace_size > 0 && strncmp(found.key, place->key, namespace_size) != 0) {
                        store_question_done(&found);
                        return -ENOENT;
                }
                store_question_done(place);
                *place = found;
                namespace_size = strcspn(found.key, "/") + 1;
                r = is_open(watcher, &found);
                if (r == 0)
                        r = store_question_remove(watcher->store, found.key, found.uid);
                else if (r > 0 && would_be_refused(watcher, &found))
                        r = in_one ? -ENOENT : 0; /* so are all of its namespace */
                else if (r > 0 && !is_asked(watcher->verification, &found))
                        return 0;
                if (r < 0)
                        return r;
        }
        return r;
}

static int copy_question(const struct store_question *question, struct store_question *ret)
{
        *ret = (struct store_question){strdup(question->key), strdup(question->uid), question->owed};
        if (ret->key && ret->uid)
                return 0;
        store_question_done(ret);
        return -ENOMEM;
}

/* The turn of the next namespace. -ENOENT: it has nothing to ask, or all of them had their turns. */
static int next_of_turn(struct watcher *watcher, struct store_question *ret)
{
        struct store_question *hop = &watcher->verification->hop;
        int r = find_open(watcher, hop, true);
        char *slash = hop->key ? strchr(hop->key, '/') : NULL;

        if (r >= 0)
                r = copy_question(hop, ret);
        if (r == -ENOENT && !slash)
                store_question_done(hop);
        if (slash) {
                slash[0] = '/' + 1;
                slash[1] = '\0';
                hop->uid[0] = '\0';
        }
        return r;
}

/* Takes the next question in the order of keys, and each second one by turns of the namespaces: a namespace
 * with many questions does not hold up the others. -ENOENT: the round is over. */
static int next_question(struct watcher *watcher, struct store_question *ret)
{
        struct verification *verification = watcher->verification;
        int r;

        verification->hops = !verification->hops;
        r = verification->hops ? next_of_turn(watcher, ret) : -ENOENT;
        if (r != -ENOENT)
                return r;
        r = find_open(watcher, &verification->after, false);
        return r < 0 ? r : copy_question(&verification->after, ret);
}

/* Returns 1: asked; 0: the round is over; negative: the watcher ends. */
static int ask_next(struct watcher *watcher)
{
        struct verification *verification = watcher->verification;
        struct question *question = calloc(1, sizeof(*question));
        struct fiber *fiber;
        int r = question ? next_question(watcher, &question->stored) : -ENOMEM;

        if (r < 0) {
                free(question);
                store_question_done(&verification->after);
                return r == -ENOENT ? 0 : store_failed(watcher, r);
        }
        question->watcher = watcher;
        asking_start(watcher, "a question", ask_question, question, &fiber);
        if (!fiber) {
                question_free(question);
                return -ECANCELED;
        }
        question->next = verification->asked;
        verification->asked = question;
        verification->asked_count++;
        return 1;
}

void verification_continue(struct watcher *watcher)
{
        struct verification *verification = watcher->verification;
        bool begun = !verification->after.key;

        if (verification->pauses || !watcher->discovered || !watcher->identified || !watcher->first_synced ||
            watcher_is_over(watcher))
                return;
        while (verification->asked_count < QUESTIONS_MAX) {
                int r = ask_next(watcher);

                if (r < 0)
                        return;
                if (r == 0 && begun)
                        return;
                begun = begun || r == 0; /* one round is enough */
        }
}
