/* SPDX-License-Identifier: Apache-2.0 */
/* See confidential.h. */
#include "worker/confidential.h"

#include <errno.h>
#include <string.h>

#include "ipc/message-id.h"
#include "os/kept.h"

bool is_confidential(const struct worker *worker, const char *api_version, const char *kind)
{
        if (strcmp(kind, "Secret") == 0 && strcmp(api_version, "v1") == 0)
                return true;
        for (size_t i = 0; i < worker->watch_count; i++) {
                const struct record_watch *config = worker->watch[i].config;

                if (config->confidential && strcmp(config->kind, kind) == 0 &&
                    strcmp(config->api_version, api_version) == 0)
                        return true;
        }
        return false;
}

/* Validation and webhooks quote what they refuse. Errors about rights, and about who has set which field,
 * quote nothing. */
static bool may_quote(const struct kube_error *error)
{
        switch (error->http_status) {
        case 0:
        case 401:
        case 404:
        case 409:
        case 410:
        case 429:
        case 503:
                return false;
        case 403:
                return strstr(error->message, "denied") || strstr(error->message, "admission");
        default:
                return true;
        }
}

const char *confidential_words(bool confidential, const struct kube_error *error, char *buffer, size_t size)
{
        if (!confidential || !may_quote(error))
                return error->message;
        snprintf(buffer, size,
                 "HTTP %d %.60s (the server's words are not shown: they may quote what is confidential)",
                 error->http_status, error->reason ? error->reason : "");
        return buffer;
}

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
