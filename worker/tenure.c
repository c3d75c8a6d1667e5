/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/tenure.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "worker/dependents/notes.h"
#include "worker/write/finalizer.h"
#include "worker/write/object.h"
#include "worker/write/patch.h"

bool tenure_child_is_unmarked(const struct run *run, const char *json)
{
        const struct message_lead *lead = &run->worker->lead;
        _cleanup_free_ char *key = NULL, *value = NULL, *epoch = NULL;

        if (lead->epoch == 0 || lead->clean)
                return false;
        key = format_string("%s/" EPOCH_NAME, run->worker->config->operator_name);
        epoch = format_string("%" PRIu64, lead->epoch);
        value = key ? notes_find(json, false, key) : NULL;
        return !value || !epoch || strcmp(value, epoch) != 0;
}

int tenure_child_body(const struct run *run, const char *uid, const char *version, struct text *out)
{
        _cleanup_free_ char *key = format_string("%s/" EPOCH_NAME, run->worker->config->operator_name);
        _cleanup_free_ char *epoch = format_string("%" PRIu64, run->worker->lead.epoch);

        if (!key || !epoch)
                return -ENOMEM;
        return text_json(out, "{\"metadata\":{\"uid\":?,\"resourceVersion\":?,\"annotations\":{?:?}}}", uid,
                         version, key, epoch);
}

int tenure_is_unmarked(struct run *run)
{
        return run->object.json && !run_is_of_deletion(run) &&
               tenure_child_is_unmarked(run, object_json(run));
}

int tenure_mark(struct run *run)
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_text_ struct text body = TEXT_EMPTY;
        int r = tenure_child_body(run, run->order->uid, object_version(run), &body);

        if (r >= 0)
                r = patch_send(run, NULL, &body, true, &answer);
        if (r < 0 || kube_error_is_not_found(&answer.response.error))
                return r;
        return note_take_written(run, "operator's epoch", "a note", &answer.response);
}
