/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/present.h"

#include <errno.h>
#include <string.h>

#include "worker/dependents/notes.h"
#include "worker/dependents/ownership.h"
#include "worker/run/request.h"
#include "worker/run/shown.h"
#include "worker/write/object.h"

/* ---- whether there is one */

static bool owns_anything(const struct run *run)
{
        for (size_t i = 0; i < run->worker->watch_count; i++) {
                const struct record_watch *config = run->worker->watch[i].config;

                if (!config->related && strcmp(config->owner, run->watch->config->name) == 0)
                        return true;
        }
        return false;
}

bool present_is_due(const struct run *run)
{
        _cleanup_free_ char *record = NULL;

        bool has_handler = run->action != ACTION_RELEASE && run->action != ACTION_FINALIZER;

        if (!has_handler || !run->object.json || run->presented || !owns_anything(run))
                return false;
        record = notes_find_record(run, object_json(run));
        return record && record[0];
}

/* ---- looking */

static int show(struct dependents *dependents, const struct dependent *dependent,
                const struct record_watch *owned, const char *json, size_t size)
{
        struct ownership_view view;
        int r = ownership_judge(&dependents->owner, dependent, json, size, &view);

        if (r < 0)
                return r;
        /* A twin's may become ours, if that watch has let the object go. */
        return view.whose == OWNERSHIP_OURS || view.whose == OWNERSHIP_FORMER || view.whose == OWNERSHIP_TWIN
                       ? shown_add(&dependents->run->shown, owned, json, size, true)
                       : 0;
}

static int show_gone(struct dependents *dependents, const struct dependent *dependent,
                     const struct record_watch *owned)
{
        char key[IDENTITY_KEY_MAX + 1];

        return shown_add_gone(&dependents->run->shown, owned, dependent_key(dependent, key));
}

/* Whether the stores may lack what is true by now: the watch of an owned kind is broken or late, the last run does not
 * know what it has written, or it has met a conflict. Then the server is asked. */
static bool is_doubtful(const struct run *run)
{
        return run->order->owned_degraded || child_kinds_are_unknown(run->order->kinds) ||
               run->order->reason == RUN_CONFLICT || strstr(run->order->last_error, SHOWN_AGAIN);
}

/* Notes the version that the store lacks and must have before it is believed again. */
static void note_found(struct dependents *dependents, const struct dependent *dependent,
                       const struct record_watch *owned, const struct kube_response *response)
{
        struct identity identity;

        if (identity_read(response->body, response->body_size, false, &identity) >= 0)
                child_versions_add(dependents->run, owned, dependent->namespace_name,
                                   identity.resource_version, false);
}

static void note_absent(struct dependents *dependents, const struct dependent *dependent,
                        const struct record_watch *owned)
{
        _cleanup_(store_object_done) struct store_object object = {0};

        if (dependents_in_store(dependents, dependent, owned, &object))
                child_versions_add(dependents->run, owned, dependent->namespace_name,
                                   object.resource_version, true);
}

/* 1: the request shows it; 0: the store does not have it. */
static int look_for_present(struct dependents *dependents, const struct dependent *dependent,
                            const struct record_watch *owned)
{
        _cleanup_(store_object_done) struct store_object object = {0};
        int r;

        if (child_versions_are_missed(dependents->run, owned, dependent->namespace_name) ||
            !dependents_in_store(dependents, dependent, owned, &object) ||
            child_versions_deleted(dependents->run, owned, object.resource_version))
                return 0;
        if (request_shows(dependents->run, object.json, object.json_size))
                return 1;
        r = show(dependents, dependent, owned, object.json, object.json_size);
        return r < 0 ? r : 1;
}

static int present_one(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct record_watch *owned = dependents_find_owned(dependents, dependent);
        int r = !owned                         ? 1
                : is_doubtful(dependents->run) ? 0
                                               : look_for_present(dependents, dependent, owned);

        if (r < 0)
                return r;
        if (r > 0 || dependent->beyond)
                return 0;
        r = dependents_resolve(dependents, dependent);
        if (r <= 0)
                return r == -ENXIO ? 0 : r;
        r = dependents_look(dependents, dependent, &answer);
        if (r <= 0)
                return r;
        owned = dependents_find_owned(dependents, dependent);
        if (answer.response.error.failure == KUBE_FAILURE_NONE) {
                note_found(dependents, dependent, owned, &answer.response);
                r = show(dependents, dependent, owned, answer.response.body, answer.response.body_size);
        } else {
                note_absent(dependents, dependent, owned);
                r = show_gone(dependents, dependent, owned);
        }
        return r < 0 ? run_finish(dependents->run, RESULT_RETRY, "one of its children cannot be read") : 0;
}

int present_look(struct dependents *dependents)
{
        return dependents_each(dependents, &dependents->known, false, present_one);
}
