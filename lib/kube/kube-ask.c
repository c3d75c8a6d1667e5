/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube-ask.h"

#include <assert.h>
#include <errno.h>

#include "kube/transfer.h"

struct asked {
        struct fiber *fiber;
        const struct kube_request *request;
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

static int on_data(struct kube_transfer *transfer, const char *bytes, size_t size, void *userdata)
{
        const struct kube_request *request = ((const struct asked *)userdata)->request;

        return request->on_data(transfer, bytes, size, request->userdata);
}

struct loading {
        struct kube_client *client;
        struct fiber *fiber;
        bool ended;
        int status;
};

static int on_load(sd_event_source *source _unused_, void *userdata)
{
        struct loading *loading = userdata;

        loading->status = kube_client_load(loading->client);
        loading->ended = true;
        fiber_wake(loading->fiber);
        return 0;
}

/* The first request of a client waits until the loop has libcurl. */
static int ask_for_libcurl(struct kube_client *client) _suspends_
{
        struct loading loading = {.client = client, .fiber = fiber_current()};
        sd_event_source *source = NULL;
        int r = sd_event_add_defer(client->event, &source, on_load, &loading);

        while (r >= 0 && !loading.ended)
                r = fiber_suspend("libcurl");
        sd_event_source_disable_unref(source);
        if (loading.ended)
                r = loading.status;
        return r >= 0 && fiber_is_ending(loading.fiber) ? -ECANCELED : r;
}

int kube_ask(struct kube_client *client, const struct kube_request *request, struct kube_answer *ret)
{
        struct kube_request own = *request;
        struct asked asked = {.fiber = fiber_current(), .request = request, .answer = ret};
        struct kube_transfer *transfer = NULL;
        int r = 0;

        assert(asked.fiber && !request->on_done && !request->on_accepted);
        *ret = (struct kube_answer)KUBE_ANSWER_EMPTY;
        if (fiber_is_ending(asked.fiber))
                return -ECANCELED;
        own.on_done = on_done;
        own.on_data = request->on_data ? on_data : NULL;
        own.userdata = &asked;
        own.asker = asked.fiber;
        if (!client->multi && kube_client_has_credential(client))
                r = ask_for_libcurl(client);
        if (r >= 0)
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
