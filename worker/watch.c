/* SPDX-License-Identifier: Apache-2.0 */
/* See watch.h. */
#include "worker/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/reader.h"
#include "worker/run/coprocess.h"
#include "worker/run/environment.h"
#include "worker/user.h"

struct worker_watch *worker_watch_find(const struct worker *worker, const char *name)
{
        for (size_t i = 0; i < worker->watch_count; i++)
                if (strcmp(worker->watch[i].config->name, name) == 0)
                        return &worker->watch[i];
        return NULL;
}

int watches_new(struct worker *worker)
{
        worker->watch = calloc(worker->config->watch_count ? worker->config->watch_count : 1,
                               sizeof(*worker->watch));
        if (!worker->watch)
                return -ENOMEM;
        for (size_t i = 0; i < worker->config->watch_count; i++) {
                struct worker_watch *watch = &worker->watch[i];
                int r;

                watch->config = &worker->config->watch[i];
                worker->watch_count = i + 1;
                if (watch->config->handler_exec_count == 0 && !watch->config->owner[0])
                        return -EPROTO;
                r = store_reader_new(watch->config->store_folder, &watch->reader);
                if (r >= 0 && watch->config->trigger == TRIGGER_JQ)
                        r = jq_program_new(watch->config->trigger_jq, &watch->trigger_program, NULL);
                if (r >= 0 && watch->config->related_names[0])
                        r = jq_program_new(watch->config->related_names, &watch->names_program, NULL);
                if (r >= 0)
                        r = user_new(watch->config, &watch->user);
                if (r < 0)
                        return r;
        }
        return 0;
}

void watches_free(struct worker *worker)
{
        for (size_t i = 0; i < worker->watch_count; i++) {
                struct worker_watch *watch = &worker->watch[i];

                coprocess_free(watch->coprocess);
                store_free(watch->reader);
                jq_program_free(watch->trigger_program);
                jq_program_free(watch->names_program);
                kube_resource_done(&watch->resource);
                user_free(watch->user);
                environment_of_watch_free(watch);
        }
        free(worker->watch);
}
