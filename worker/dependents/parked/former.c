/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/parked/former.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ipc/message-id.h"
#include "os/kept.h"
#include "worker/confidential.h"

static int keep(const struct worker *worker, struct dependent *dependent)
{
        char id[KEPT_ID_SIZE];
        int r = kept_write(worker->config->kept_folder, dependent->previous, strlen(dependent->previous),
                           id);

        dependent->kept = strdup(r >= 0 ? id : "");
        return r < 0 ? r : dependent->kept ? 0 : -ENOMEM;
}

void former_keep(struct dependents *dependents)
{
        const struct run *run = dependents->run;

        for (size_t i = 0; i < dependents->wanted.count; i++) {
                struct dependent *dependent = &dependents->wanted.item[i];
                char name[600];
                int r = 0;

                if (dependent->touched && dependent->previous && !dependent->kept &&
                    is_confidential(run->worker, dependent->api_version, dependent->kind))
                        r = keep(run->worker, dependent);
                if (r < 0)
                        log_warning("watch %s, %s: the former content of %s cannot be kept in memory: %s",
                                    run->order->watch, run->order->key,
                                    dependent_describe(dependent, name, sizeof(name)), strerror(-r));
        }
}

void former_find(struct dependents *dependents)
{
        struct dependent_list *list = &dependents->plan.undo;

        for (size_t i = 0; i < list->count; i++) {
                struct dependent *dependent = &list->item[i];

                if (dependent->kept && !dependent->previous)
                        dependent->lost = kept_read(dependents->run->worker->config->kept_folder,
                                                    dependent->kept, &dependent->previous) < 0;
        }
}

void former_drop(const struct run *run, const struct dependent_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                if (list->item[i].kept)
                        kept_drop(run->worker->config->kept_folder, list->item[i].kept);
}

void former_leave_lost(struct dependents *dependents, struct dependent *dependent)
{
        const struct message_run *order = dependents->run->order;
        char name[600], *cause;

        dependent_describe(dependent, name, sizeof(name));
        dependent->settled = true;
        log_write(LOG_WARNING, MESSAGE_ID_SECRET_LOST,
                  LOG_FIELDS({"RECONCILED_WATCH", order->watch}, {"RECONCILED_KEY", order->key},
                             {"RECONCILED_UID", order->uid}),
                  "watch %s, %s: %s is not rolled back: its former content was kept in memory only and is "
                  "lost; it stays as the failed attempt has made it",
                  order->watch, order->key, name);
        if (asprintf(&cause, "%.1200s; %s is not rolled back: what it was before is lost",
                     dependents->plan.cause, name) < 0)
                return;
        free(dependents->plan.cause);
        dependents->plan.cause = cause;
}
