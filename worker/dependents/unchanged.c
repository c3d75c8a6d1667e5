/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would change nothing is not sent: a child of a kind that the watch `owns` is not applied again while
 * the store shows the very version that our last apply of the same text made or found. Who changes it
 * meanwhile is seen there sooner or later, and that is a reason to run. Other kinds nobody watches, so they
 * are applied each time.
 */
#include <string.h>

#include "worker/dependents/internal.h"

/* A resync and a wish by hand are there for what nobody has seen; and an attempt that follows a failure is
 * no place to save something. */
static bool is_for_all(const struct run *run)
{
        static const char *const reason[] = {"resync", "requested", "start"};

        for (size_t i = 0; i < ELEMENTS(reason); i++)
                if (strcmp(run->order->reason, reason[i]) == 0)
                        return true;
        return run->order->attempt > 1;
}

/* Changes of it reach its owner by the owner reference, and all of it is stored. */
static bool is_watched(const struct children *children, const struct child_object *child,
                       const struct worker_watch *watch)
{
        const struct record_watch *config = watch->config;

        return !config->related && !config->metadata_only &&
               strcmp(config->owner, children->run->watch->config->name) == 0 &&
               strcmp(config->api_version, child->api_version) == 0 &&
               strcmp(config->kind, child->kind) == 0 && child_may_refer(&children->owner, child);
}

int children_in_store(const struct children *children, const struct child_object *child,
                      struct store_object *ret)
{
        const struct worker *worker = children->run->worker;
        _cleanup_text_ struct text key = TEXT_EMPTY;

        text_printf(&key, "%s%s%s", child->namespace_name, child->namespace_name[0] ? "/" : "", child->name);
        for (size_t i = 0; i < worker->watch_count && !key.failed; i++)
                if (is_watched(children, child, &worker->watch[i]) &&
                    store_read(worker->watch[i].reader, 0, key.data, ret) >= 0)
                        return 1;
        return 0;
}

bool children_is_applied(struct children *children, struct child_object *child, const struct text *body)
{
        _cleanup_(store_object_done) struct store_object object = {0};
        uint64_t state;

        children->sent = applied_text_of(&children->owner, child, body);
        if (child->is_new || is_for_all(children->run) || !children_in_store(children, child, &object) ||
            applied_state_of(object.json, object.json_size, &state) < 0 ||
            !applied_made(children->run->worker->applied, &children->sent, state))
                return false;
        children_judge(children, child, object.json, object.json_size);
        return true;
}

void children_note_applied(struct children *children, const struct kube_response *response)
{
        uint64_t state;

        if (applied_state_of(response->body, response->body_size, &state) >= 0)
                applied_keep(children->run->worker->applied, &children->sent, state);
}
