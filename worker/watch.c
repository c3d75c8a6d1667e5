/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/watch.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "store/previous.h"
#include "store/reader.h"
#include "worker/run/coprocess.h"
#include "worker/run/environment.h"

struct worker_watch *worker_watch_find(const struct worker *worker, const char *name)
{
        for (size_t i = 0; i < worker->watch_count; i++)
                if (strcmp(worker->watch[i].config->name, name) == 0)
                        return &worker->watch[i];
        return NULL;
}

#define GROUPS_FIRST 32

/* A user without a name, or without an entry, has no other group. */
static int find_groups(const struct record_watch *config, struct process_user *user)
{
        int count = GROUPS_FIRST, room;

        do {
                gid_t *grown = reallocarray(user->group, (size_t)count, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                user->group = grown;
                room = count;
        } while (getgrouplist(config->user, user->gid, user->group, &count) < 0 && count > room);
        user->group_count = (size_t)(count < room ? count : room);
        return 0;
}

/* *ret is unchanged if the handler runs as the worker's own user. */
static int user_new(const struct record_watch *config, struct process_user **ret)
{
        if (!config->user[0] || config->uid == geteuid())
                return 0;
        *ret = calloc(1, sizeof(**ret));
        if (!*ret)
                return -ENOMEM;
        (*ret)->uid = (uid_t)config->uid;
        (*ret)->gid = (gid_t)config->gid;
        return find_groups(config, *ret);
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

static void user_free(struct process_user *user)
{
        if (!user)
                return;
        free(user->group);
        free(user);
}

void watches_free(struct worker *worker)
{
        FOREACH_ARRAY(watch, worker->watch, worker->watch_count) {
                coprocess_free(watch->coprocess);
                store_free(watch->reader);
                previous_close(watch->previous);
                jq_program_free(watch->trigger_program);
                jq_program_free(watch->names_program);
                kube_resource_done(&watch->resource);
                user_free(watch->user);
                environment_of_watch_free(watch);
        }
        free(worker->watch);
}
