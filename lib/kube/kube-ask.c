/* SPDX-License-Identifier: Apache-2.0 */
/* See kube-ask.h. */
#include "kube/kube-ask.h"

#include <assert.h>
#include <errno.h>

#include "kube/transfer.h"

struct asked {
        struct fiber *fiber;
        struct kube_answer *answer;
        bool ended;
        int error; /* no memory to keep the answer */
};

static void on_done(struct kube_transfer *transfer, const struct kube_response *response, void *userdata)
{
        struct asked *asked = userdata;
        struct kube_answer *answer = asked->answer;

        answer->response = *response;
        answer->response.error = KUBE_ERROR_NONE;
        asked->error = kube_error_copy(&response->error, &answer->response.error);
        answer->body = transfer->body;
        transfer->body = TEXT_EMPTY;
        answer->response.body = answer->body.data ? answer->body.data : "";
        asked->ended = true;
        fiber_wake(asked->fiber);
}

int kube_ask(struct kube_client *client, const struct kube_request *request, struct kube_answer *ret)
{
        struct kube_request own = *request;
        struct asked asked = {.fiber = fiber_current(), .answer = ret};
        struct kube_transfer *transfer;
        int r;

        assert(asked.fiber && !request->on_done && !request->on_data && !request->on_accepted);
        *ret = (struct kube_answer)KUBE_ANSWER_EMPTY;
        if (fiber_is_ending(asked.fiber))
                return -ECANCELED;
        own.on_done = on_done;
        own.userdata = &asked;
        own.asker = asked.fiber;
        r = kube_client_start(client, &own, &transfer);
        while (r >= 0 && !asked.ended)
                r = fiber_suspend(own.path);
        if (asked.ended) /* also where it was cancelled in the same turn */
                r = asked.error;
        else if (r == -ECANCELED)
                kube_transfer_cancel(transfer);
        if (r < 0)
                kube_answer_done(ret);
        return r;
}

void kube_answer_done(struct kube_answer *answer)
{
        kube_error_done(&answer->response.error);
        text_done(&answer->body);
        *answer = (struct kube_answer)KUBE_ANSWER_EMPTY;
}

/* ---- a kind */

struct sought {
        struct fiber *fiber;
        struct kube_finding *finding;
        bool ended;
        int error; /* no memory to keep what was found */
};

static void on_found(struct kube_resource *resource, const struct kube_error *error,
                     const struct kube_response *response, void *userdata)
{
        struct sought *sought = userdata;
        struct kube_finding *finding = sought->finding;

        if (resource)
                finding->resource = *resource;
        finding->response = *response;
        finding->response.error = KUBE_ERROR_NONE;
        finding->response.body = "";
        finding->response.body_size = 0;
        sought->error = kube_error_copy(error, &finding->error);
        if (sought->error >= 0)
                sought->error = kube_error_copy(&response->error, &finding->response.error);
        sought->ended = true;
        fiber_wake(sought->fiber);
}

static int seek_begin(struct sought *sought, struct kube_finding *ret)
{
        assert(fiber_current());
        *sought = (struct sought){.fiber = fiber_current(), .finding = ret};
        *ret = (struct kube_finding)KUBE_FINDING_EMPTY;
        return fiber_is_ending(sought->fiber) ? -ECANCELED : 0;
}

static int seek_wait(const struct sought *sought, int r, const char *why) _suspends_
{
        while (r >= 0 && !sought->ended)
                r = fiber_suspend(why);
        return r;
}

static int seek_end(struct sought *sought, int r)
{
        if (sought->ended)
                r = sought->error;
        if (r < 0)
                kube_finding_done(sought->finding);
        return r;
}

int kube_ask_kind(struct kube_client *client, const char *api_version, const char *kind,
                  struct kube_finding *ret)
{
        struct kube_discovery *discovery = NULL;
        struct sought sought;
        int r = seek_begin(&sought, ret);

        if (r >= 0)
                r = kube_discovery_start(client, api_version, kind, on_found, &sought, &discovery);
        r = seek_wait(&sought, r, "the resources of a group");
        if (!sought.ended)
                kube_discovery_cancel(discovery);
        return seek_end(&sought, r);
}

int kube_ask_all_versions(struct kube_client *client, const char *api_version, const char *kind,
                          struct kube_finding *ret)
{
        struct kube_search *search = NULL;
        struct sought sought;
        int r = seek_begin(&sought, ret);

        if (r >= 0)
                r = kube_search_start(client, api_version, kind, on_found, &sought, &search);
        r = seek_wait(&sought, r, "all versions of a group");
        if (!sought.ended)
                kube_search_cancel(search);
        return seek_end(&sought, r);
}

void kube_finding_done(struct kube_finding *finding)
{
        kube_resource_done(&finding->resource);
        kube_error_done(&finding->error);
        kube_error_done(&finding->response.error);
        *finding = (struct kube_finding)KUBE_FINDING_EMPTY;
}
