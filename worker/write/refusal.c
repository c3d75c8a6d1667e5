/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/write/refusal.h"

#include <errno.h>

#include "base/duration.h"
#include "kube/notice.h"
#include "worker/confidential.h"

void refusal_ask_refresh(struct worker *worker, const struct kube_response *response)
{
        notice_refused_credential(worker->child, &response->error, response->credential_serial,
                                  &worker->refresh_serial);
}

const char *refusal_advice(const struct kube_error *error)
{
        if (error->http_status == 403 && kube_error_blame(error) != KUBE_BLAME_RIGHTS)
                return "; its admission is in the way, not our rights";
        switch (error->http_status) {
        case 401:
                return "; the credential is being renewed";
        case 403:
                return kube_error_rights_advice(error);
        case 404:
                return "; it does not serve this kind, or not yet";
        case 400:
        case 413:
        case 415:
        case 422:
                return "; mend what the handler answers: it does not fit the resource";
        default:
                return "";
        }
}

enum run_result refusal_result(const struct kube_error *error)
{
        switch (kube_error_blame(error)) {
        case KUBE_BLAME_SERVER:
                return RESULT_UNAVAILABLE;
        case KUBE_BLAME_RIGHTS:
                return RESULT_FORBIDDEN;
        default:
                return RESULT_RETRY;
        }
}

enum run_result refusal_result_not_started(int status)
{
        return status == -ENOKEY ? RESULT_UNAVAILABLE : RESULT_RETRY; /* there is no credential yet */
}

int refusal_finish(struct run *run, const char *what, const struct kube_error *error)
{
        char buffer[CONFIDENTIAL_WORDS_MAX];
        const char *words =
                confidential_words(run->watch->config->confidential, error, buffer, sizeof(buffer));

        if (error->other_uid)
                return run_finish(run, RESULT_STALE, "the object is gone, and another one has its name");
        if (error->http_status == 409)
                return run_finish(run, RESULT_CONFLICT, "the object changed while the handler ran");
        if (kube_error_is_not_found(error))
                return run_finish(run, RESULT_STALE, "the object is gone");
        if (error->http_status > 0)
                return run_finish(run,
                                  kube_error_blame(error) == KUBE_BLAME_REQUEST ? RESULT_UNRECOVERABLE
                                                                                : refusal_result(error),
                                  "the API server refused the %s (HTTP %d): %s%s", what, error->http_status,
                                  words, refusal_advice(error));
        return run_finish(run, refusal_result(error), "the %s could not be written: %s", what, words);
}

/* Until then another run would get the same answer, or none: a request that Retry-After holds back counts as
 * well (KUBE_FAILURE_HELD). */
static void note_held(struct run *run, const struct kube_error *error)
{
        uint64_t until;

        if (error->retry_after_sec <= 0 || kube_error_blame(error) != KUBE_BLAME_SERVER)
                return;
        until = clock_boottime_usec() + (uint64_t)error->retry_after_sec * USEC_PER_SEC;
        if (until > run->request.held_until)
                run->request.held_until = until;
}

void refusal_note(struct run *run, const struct kube_response *response)
{
        run->request.http_status = response->error.http_status;
        note_held(run, &response->error);
        refusal_ask_refresh(run->worker, response);
        (void)notice_throttle(run->worker->child, run->worker->client, &response->error);
}
