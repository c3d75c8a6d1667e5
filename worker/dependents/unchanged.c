/* SPDX-License-Identifier: Apache-2.0 */
/* See unchanged.h. */
#include "worker/dependents/unchanged.h"

#include <string.h>

#include "store/record.h"
#include "worker/dependents/parked/wait.h"

/* A resync, a start and a request by hand are meant to repair what was overlooked; and after a failure
 * nothing is to be saved. */
static bool is_for_all(const struct run *run)
{
        switch (run->order->reason) {
        case RUN_RESYNC:
        case RUN_REQUESTED:
        case RUN_START:
                return true;
        default:
                return run->order->attempt > 1;
        }
}

bool unchanged_is_applied(struct dependents *dependents, struct dependent *dependent,
                          const struct text *body)
{
        _cleanup_(store_object_done) struct store_object object = {0};
        uint64_t state;

        dependents->sent = applied_text_of(&dependents->owner, dependent, body);
        if (dependent->is_new || is_for_all(dependents->run) ||
            !dependents_in_store(dependents, dependent, &object) ||
            applied_state_of(object.json, object.json_size, &state) < 0 ||
            !applied_made(dependents->run->worker->applied, &dependents->sent, state))
                return false;
        wait_judge(dependents, dependent, object.json, object.json_size);
        return true;
}

void unchanged_note_applied(struct dependents *dependents, const struct kube_response *response)
{
        uint64_t state;

        if (applied_state_of(response->body, response->body_size, &state) >= 0)
                applied_keep(dependents->run->worker->applied, &dependents->sent, state);
}
