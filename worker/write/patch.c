/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/write/patch.h"

#include <errno.h>
#include <string.h>

#include "base/backoff.h"
#include "base/duration.h"
#include "kube/path.h"
#include "worker/waiting.h"
#include "worker/write/object.h"

#define TIMEOUT_USEC    (30 * USEC_PER_SEC)
#define MERGE_PATCH     "application/merge-patch+json"
#define TRIES_MAX       10 /* in a row, because others may write all the time */
#define PAUSE_USEC      (10 * USEC_PER_MSEC)
#define RETRY_AFTER_MAX 10 /* seconds: longer than that no worker is held */

/* ---- what was read again */

static bool is_going(const struct run *run)
{
        return scan_is_going(object_json(run), strlen(object_json(run)));
}

/* Returns -ENOENT: another object has its name. */
static int take_object(struct run *run, const struct kube_response *response)
{
        uint64_t expected = run->own.fingerprint ? run->own.fingerprint : run->fingerprint, fingerprint = 0;
        uint64_t essence = object_essence(run);
        struct scan_object object;
        char *version = NULL, *copy;
        int r = scan_object(response->body, response->body_size, &object);

        if (r >= 0 && !scan_string_equals(object.uid, run->order->uid))
                return -ENOENT;
        if (r >= 0)
                r = scan_string(object.resource_version, &version);
        copy = r >= 0 ? strndup(object.whole.start, object.whole.size) : NULL;
        if (!copy) {
                free(version);
                return r < 0 ? r : -ENOMEM;
        }
        free(run->now.json);
        free(run->now.version);
        run->now.json = copy;
        run->now.version = version;
        run->now.rebased = true;
        if (object_fingerprint(run, copy, strlen(copy), &fingerprint) < 0 || fingerprint != expected)
                run->now.foreign = true;
        run->now.foreign_essence = run->now.foreign_essence || object_essence(run) != essence;
        return 0;
}

/* Whether the run must end, because the handler has to see the object as it is now. */
static bool begins_anew(const struct run *run, bool was_going)
{
        if (!run->answered && run->now.foreign)
                return true;
        if (was_going && !is_going(run))
                return true; /* a restored database has undone the deletion: it must not be released */
        return !was_going && run->action != ACTION_FINALIZE && run->action != ACTION_RELEASE &&
               is_going(run);
}

/* Reads the object again. -EAGAIN: the patch is to be made again; 0: it cannot be read, and *ret says why; another
 * negative: the run has ended. */
static int read_again(struct run *run, struct kube_answer *ret) _suspends_
{
        bool was_going = is_going(run);
        int r;

        kube_answer_done(ret);
        r = object_get(run, ret);
        if (r < 0)
                return run_finish(run, RESULT_RETRY, "the object cannot be read again: %s", strerror(-r));
        if (ret->response.error.failure != KUBE_FAILURE_NONE)
                return 0;
        r = take_object(run, &ret->response);
        if (r == -ENOENT)
                return run_finish(run, RESULT_STALE, "the object is gone, and another one has its name");
        if (r < 0)
                return run_finish(run, RESULT_RETRY, "the API server's answer cannot be understood: %s",
                                  strerror(-r));
        if (begins_anew(run, was_going))
                return run_finish(run, RESULT_CONFLICT, "the object changed while the handler ran");
        kube_answer_done(ret);
        return -EAGAIN;
}

/* ---- after a conflict, or without an answer */

/* Where the connection broke, the server may have carried the patch out: the object that is read again shows
 * that. (After a timeout it would be waited for as long again.) */
static bool is_to_be_made_anew(struct run *run, const struct kube_error *error)
{
        bool conflicts =
                error->http_status == 409 && !error->other_uid && error->retry_after_sec <= RETRY_AFTER_MAX;

        return (conflicts || error->failure == KUBE_FAILURE_INTERRUPTED) && !run->cancelled &&
               run->now.conflicts++ < TRIES_MAX;
}

/* The pause is random, so that two writers to one object do not collide again and again; the first time
 * there is none. */
static uint64_t pause_after(const struct run *run, const struct kube_error *error)
{
        if (error->retry_after_sec > 0)
                return (uint64_t)error->retry_after_sec * USEC_PER_SEC;
        return run->now.conflicts > 1 ? random_below(PAUSE_USEC * run->now.conflicts) : 0;
}

static int make_anew(struct run *run, struct kube_answer *ret) _suspends_
{
        uint64_t pause = pause_after(run, &ret->response.error);
        int r = pause > 0 ? run_sleep(run, pause, "others to write to the object") : 0;

        if (run->cancelled)
                return run_finish(run, RESULT_CANCELLED, "the operator stops before the answer was written");
        return r < 0 ? 0 : read_again(run, ret); /* without a timer the conflict is reported as such */
}

/* ---- sending */

static char *patch_path(const struct run *run, const char *subresource)
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL, *base = NULL;
        _cleanup_text_ struct text path = TEXT_EMPTY;

        if (kube_key_split(run->order->key, &namespace_name, &name) < 0)
                return NULL;
        base = kube_path(&run->watch->resource, namespace_name, name, subresource);
        if (!base)
                return NULL;
        text_append_string(&path, base);
        kube_path_add(&path, "fieldManager", run->worker->config->operator_name);
        return text_take(&path);
}

int patch_send(struct run *run, const char *subresource, const struct text *body, bool is_made_anew,
               struct kube_answer *ret)
{
        _cleanup_free_ char *path = patch_path(run, subresource);
        struct kube_request request = {
                .method = "PATCH",
                .path = path,
                .content_type = MERGE_PATCH,
                .body = body->data,
                .body_size = body->size,
                .timeout_usec = TIMEOUT_USEC,
                .confidential = run->watch->config->confidential,
        };
        int r = path ? run_request(run, &request, ret) : -ENOMEM;

        if (r < 0 || ret->response.error.failure == KUBE_FAILURE_NONE || !is_made_anew ||
            !is_to_be_made_anew(run, &ret->response.error))
                return r;
        return make_anew(run, ret);
}
