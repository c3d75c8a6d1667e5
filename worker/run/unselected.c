/* SPDX-License-Identifier: Apache-2.0 */
/* See unselected.h. */
#include "worker/run/unselected.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "worker/run/request.h"
#include "worker/write/object.h"
#include "worker/write/refusal.h"

static int take_unselected(struct run *run, const struct kube_response *response)
{
        struct scan_object object;
        int r = scan_object(response->body, response->body_size, &object);

        if (r < 0 || !scan_string_equals(object.uid, run->order->uid))
                return r; /* another object has this name: ours is gone */
        free(run->object.resource_version);
        run->object.resource_version = NULL;
        r = scan_string(object.resource_version, &run->object.resource_version);
        if (r >= 0 && !(run->object.json = strndup(response->body, response->body_size)))
                r = -ENOMEM;
        run->object.json_size = response->body_size;
        return r;
}

static void on_fetched(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct run *run = userdata;
        int r = 0;

        run->request.transfer = NULL;
        if (response->error.failure == KUBE_FAILURE_NONE) {
                r = take_unselected(run, response);
        } else if (!kube_error_is_not_found(&response->error)) {
                refusal_note(run, response);
                run_finish(run, refusal_result(&response->error),
                           "the object cannot be read from the API server: %s", response->error.message);
                return;
        }
        if (r >= 0)
                r = request_complete_object(run, &run->json);
        if (r < 0)
                run_finish(run, RESULT_RETRY, "the API server's answer cannot be understood: %s",
                           strerror(-r));
        else
                run_go_on(run, RUN_STAGE_PREPARE);
}

void unselected_fetch(struct run *run)
{
        int r;

        if (!run->watch->discovered) {
                object_discover(run, unselected_fetch);
                return;
        }
        r = object_get(run, on_fetched);
        if (r < 0)
                run_finish(run, refusal_result_not_started(r),
                           "the object cannot be read from the API server: %s", strerror(-r));
}
