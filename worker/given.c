/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/given.h"

#include <errno.h>
#include <string.h>

#include "ipc/log.h"
#include "ipc/message-id.h"
#include "store/previous.h"

/* Once for each time that it begins to fail. */
static void tell_not_kept(struct run *run, int error)
{
        const struct record_watch *config = run->watch->config;

        if (!run->watch->previous_fails)
                log_write(
                        LOG_WARNING, MESSAGE_ID_PREVIOUS_NOT_KEPT,
                        LOG_FIELDS({"RECONCILED_WATCH", config->name}, {"RECONCILED_KEY", run->order->key},
                                   {"RECONCILED_UID", run->order->uid}),
                        "what the handler of watch %s was given of %s is not kept: %s%s; its next request has no `previous`",
                        config->name, run->order->key,
                        error == -ENOSPC ? "it would take more than previous.total, or the disk is full"
                                         : strerror(-error),
                        error == -ENOSPC ? "" : " (in the state folder)");
        run->watch->previous_fails = true;
}

/* One that has failed is opened again for the next run. */
static int given_store(struct run *run, struct store **ret)
{
        struct worker_watch *watch = run->watch;
        int r = 0;

        if (!watch->previous)
                r = previous_open(watch->config->previous_folder, watch->config->previous_max,
                                  &watch->previous);
        *ret = watch->previous;
        return r;
}

static void given_failed(struct run *run, int error)
{
        if (error == -ENOSPC || error == -ENOENT || error >= 0)
                return;
        previous_close(run->watch->previous);
        run->watch->previous = NULL;
}

int given_write(struct run *run, struct text *out)
{
        const struct message_run *order = run->order;
        _cleanup_free_ char *json = NULL;
        struct store *store;
        int r;

        if (!run->watch->config->previous_folder[0] || !order->previous_version[0])
                return 0;
        r = given_store(run, &store);
        if (r >= 0)
                r = previous_get(store, order->key, order->uid, order->previous_version, &json);
        given_failed(run, r);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        text_append_string(out, ",\"previous\":");
        return text_append_string(out, json);
}

static int keep_given(struct run *run, bool is_parked)
{
        const struct message_run *order = run->order;
        const char *version = run->object.resource_version;
        struct store *store;
        int r = given_store(run, &store);

        if (r >= 0)
                r = previous_put(store, order->key, order->uid, version, run->json, strlen(run->json));
        /* The one before it is needed again if nobody hears of the end of this run. */
        if (r >= 0 && !is_parked)
                r = previous_drop(store, order->key, order->uid, version, order->previous_version);
        given_failed(run, r);
        return r;
}

/* Its end is told: nothing of it comes back. */
static void forget_given(struct run *run)
{
        struct store *store;
        int r = given_store(run, &store);

        if (r >= 0)
                r = previous_drop(store, run->order->key, run->order->uid, "", "");
        given_failed(run, r);
}

const char *given_keep(struct run *run, bool is_parked)
{
        int r;

        if (!run->watch->config->previous_folder[0] || run->worker->config->trace_file[0])
                return "";
        if (run->action != ACTION_RECONCILE) {
                if (!is_parked && run->handler.ran)
                        forget_given(run);
                return "";
        }
        if (!run->handler.ran)
                return run->parked.given ? run->parked.given : run->order->previous_version;
        r = keep_given(run, is_parked);
        if (r < 0)
                tell_not_kept(run, r);
        else
                run->watch->previous_fails = false;
        return r < 0 ? "" : run->object.resource_version;
}
