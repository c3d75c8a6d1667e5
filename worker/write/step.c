/* SPDX-License-Identifier: Apache-2.0 */
/* See step.h. */
#include "worker/write/step.h"

#include "worker/write/object.h"
#include "worker/write/refusal.h"

void step_done(struct run *run)
{
        run->step.on_end(run, STEP_DONE);
}

void step_again(struct run *run)
{
        run->step.on_end(run, STEP_AGAIN);
}

/* A 404 may mean that the kind, or its status, has moved since discovery. */
void step_failed(struct run *run, const char *what, const struct kube_response *response)
{
        refusal_note(run, response);
        if (response->error.http_status == 404 && !run->request.rediscovered)
                object_discover(run, step_again);
        else
                refusal_finish(run, what, &response->error);
}
