/* SPDX-License-Identifier: Apache-2.0 */
/* See unselected.h. */
#include "worker/run/unselected.h"

#include <errno.h>
#include <string.h>

#include "worker/run/request.h"
#include "worker/write/object.h"

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

int unselected_fetch(struct run *run)
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r = object_fetch(run, &answer);

        if (r < 0)
                return r;
        if (answer.response.error.failure == KUBE_FAILURE_NONE)
                r = take_unselected(run, &answer.response);
        if (r >= 0)
                r = request_complete_object(run, &run->json);
        return r < 0 ? run_finish(run, RESULT_RETRY, "the API server's answer cannot be understood: %s",
                                  strerror(-r))
                     : RUN_PREPARES;
}
