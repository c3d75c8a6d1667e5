/* SPDX-License-Identifier: Apache-2.0 */
/* See clash.h. */
#include "worker/dependents/clash.h"

#include <string.h>

#include "worker/dependents/notes.h"
#include "worker/write/sibling.h"

static const struct dependent *find_held(const struct dependents *dependents, const struct dependent *wanted)
{
        for (size_t i = 0; i < dependents->kept.count; i++)
                if (dependents->kept.item[i].holder &&
                    dependent_is_recorded_as(&dependents->owner, wanted, &dependents->kept.item[i]))
                        return &dependents->kept.item[i];
        return NULL;
}

static void finish_clash(struct dependents *dependents, const struct dependent *held)
{
        char name[600];

        run_finish(dependents->run, RESULT_RETRY,
                   "the handler's answer: children: watch %s has %s already, for the same object: only "
                   "one of the watches of a kind may name a child",
                   held->holder->watch->config->name, dependent_describe(held, name, sizeof(name)));
}

/* Whether the watch whose list has the dependent is the one that has applied it last. */
static bool is_named(const struct dependents *dependents, const struct dependent *held, const char *json)
{
        _cleanup_free_ char *set = notes_find(json, true, NOTES_PART_OF), *id = NULL;
        char key[300];

        if (!set || strcmp(set, dependents->owner.set) != 0)
                return false; /* it is another object's, or nobody's */
        snprintf(key, sizeof(key), "%s/" ID_NAME, dependents->owner.operator_name);
        id = notes_find(json, false, key);
        return strcmp(id ? id : "", held->holder->watch->config->id) == 0;
}

static void on_looked(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct dependents *dependents = userdata;
        struct dependent *dependent = dependents_current(dependents);
        const struct dependent *held = find_held(dependents, dependent);
        bool is_there = response->error.failure == KUBE_FAILURE_NONE;

        dependents->run->request.transfer = NULL;
        if (!is_there && !kube_error_is_not_found(&response->error)) {
                if (!dependents_take_failure(dependents, "cannot be looked at", response))
                        return;
                if (dependents->failed.count > 0) {
                        dependents_finish_failed(dependents);
                        return;
                }
        } else if (is_there && is_named(dependents, held, response->body)) {
                finish_clash(dependents, held);
                return;
        } else {
                dependent->reclaimed = true;
                dependents->position++;
        }
        dependents_advance(dependents);
}

int clash_next(struct dependents *dependents)
{
        struct dependent *dependent;

        for (; (dependent = dependents_current(dependents)); dependents->position++) {
                const struct dependent *held = find_held(dependents, dependent);
                int r;

                if (!held)
                        continue;
                r = dependents_resolve(dependents, dependent);
                if (r != 0)
                        return r;
                return dependents_request(dependents, dependent, "GET", NULL, on_looked);
        }
        return 0;
}
