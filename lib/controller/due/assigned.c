/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/due/assigned.h"

#include <string.h>

const struct queue_run *worker_run(const struct worker *worker)
{
        return worker->given_count > 0 ? &worker->given[0].run : NULL;
}

bool assignment_is_outdated(const struct controller *controller, const struct assignment *given)
{
        return given->epoch != controller->watch[given->run.watch].epoch;
}

struct assignment *assign_find(const struct watch *watch, const char *key, const char *uid)
{
        struct controller *controller = watch->controller;

        for (size_t i = 0; i < controller->worker_count; i++) {
                struct worker *worker = &controller->worker[i];

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
        for (size_t i = 0; i < controller->worker_count; i++) {
                struct worker *worker = &controller->worker[i];

                if (worker->given_count > 1 && worker->is_up)
                        controller->effects->recall(controller->userdata, worker, reason);
        }
}

void assign_cancel(const struct watch *watch, const char *key, const char *uid, const char *reason)
{
        struct controller *controller = watch->controller;

        if (!assign_is_under_way(watch, key, uid))
                return;
        for (size_t i = 0; i < controller->worker_count; i++) {
                struct worker *worker = &controller->worker[i];
                const struct queue_run *run = worker_run(worker);

                if (run && !worker->given[0].to_send && run->watch == watch_number(watch) &&
                    strcmp(run->key, key) == 0 && strcmp(run->uid, uid) == 0)
                        controller->effects->cancel(controller->userdata, worker, run->id, reason);
        }
        assign_recall(controller, reason);
}
