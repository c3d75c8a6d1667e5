/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/due/assigned.h"

#include <assert.h>
#include <string.h>

const struct queue_run *worker_run(const struct worker *worker)
{
        for (size_t i = 0; i < worker->given_count; i++)
                if (!worker->given[i].aside)
                        return &worker->given[i].run;
        return NULL;
}

size_t worker_busy_with(const struct worker *worker)
{
        assert(worker->aside_count <= worker->given_count);
        return worker->given_count - worker->aside_count;
}

bool assignment_has_begun(const struct worker *worker, const struct assignment *given)
{
        return given->aside || &given->run == worker_run(worker);
}

struct assignment *worker_find(struct worker *worker, const char *key, const char *uid)
{
        for (size_t i = 0; i < worker->given_count; i++)
                if (strcmp(worker->given[i].run.key, key) == 0 && strcmp(worker->given[i].run.uid, uid) == 0)
                        return &worker->given[i];
        return NULL;
}

bool assignment_is_outdated(const struct controller *controller, const struct assignment *given)
{
        return given->epoch != controller->watch[given->run.watch].epoch;
}

struct assignment *assign_find(const struct watch *watch, const char *key, const char *uid)
{
        struct controller *controller = watch->controller;

        FOREACH_ARRAY(worker, controller->worker, controller->worker_count) {
                for (size_t j = 0; j < worker->given_count; j++) {
                        const struct queue_run *run = &worker->given[j].run;

                        if (run->watch == watch_number(watch) && strcmp(run->key, key) == 0 &&
                            strcmp(run->uid, uid) == 0)
                                return &worker->given[j];
                }
        }
        return NULL;
}

bool assign_is_under_way(const struct watch *watch, const char *key, const char *uid)
{
        return assign_find(watch, key, uid);
}

void assign_recall(struct controller *controller, const char *reason)
{
        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                if (worker_busy_with(worker) > 1 && worker->is_up)
                        controller->effects->recall(controller->userdata, worker, reason);
}

void assign_cancel(const struct watch *watch, const char *key, const char *uid, const char *reason)
{
        struct controller *controller = watch->controller;
        struct assignment *given = assign_find(watch, key, uid);

        if (given && given->to_send) {
                given->is_cancelled = controller->has_cancelled = true;
                return;
        }
        for (size_t i = 0; i < controller->worker_count && given; i++) {
                struct worker *worker = &controller->worker[i];

                if (given >= worker->given && given < worker->given + worker->given_count)
                        controller->effects->cancel(controller->userdata, worker, given->run.id, reason);
        }
}
