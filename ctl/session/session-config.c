/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration messages of a session's processes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "config/access.h"
#include "config/config-message.h"
#include "config/config.h"
#include "ctl/session/internal.h"
#include "ctl/session/session.h"
#include "ipc/channel.h"
#include "ipc/role.h"

/* The one object, or everything that the watch selects. */
static int watcher_config(struct session_process *process)
{
        struct session *session = process->session;
        const struct config_watch *watch = process->watch, *owner = session->options.watch;
        const char *object = session->options.object, *slash = object ? strchr(object, '/') : NULL;
        _cleanup_free_ char *selector = NULL, *place = NULL, *labels = NULL;
        _cleanup_free_ struct record_string *namespace = NULL;
        struct message_config_watcher message;
        struct record_string one;

        config_watcher_message(session->options.config, watch, watch == owner ? NULL : owner, &message);
        namespace = config_strings(watch->namespace, watch->namespace_count);
        message.namespace = namespace;
        message.own_name = ""; /* a try makes no object that stays */
        message.store_folder = process->store_folder;
        message.hash_key = session->hash_key;
        message.hash_key_size = sizeof(session->hash_key);
        if (session->options.selector && watch == owner) {
                labels = format_string("%s%s%s", watch->label_selector, watch->label_selector[0] ? "," : "",
                                       session->options.selector);
                if (!labels)
                        return -ENOMEM;
                message.label_selector = labels;
        }
        if (object && watch == owner) {
                place = slash ? strndup(object, (size_t)(slash - object)) : strdup("");
                one.value = place;
                message.namespace = &one;
                message.namespace_count = slash != NULL;
                selector = format_string("%s%smetadata.name=%s", watch->field_selector,
                                         watch->field_selector[0] ? "," : "", slash ? slash + 1 : object);
                if (!selector || !place)
                        return -ENOMEM;
                message.field_selector = selector;
        }
        return namespace ? channel_send(process->child.channel, MESSAGE_CONFIG_WATCHER, &message) : -ENOMEM;
}

/* A replay may concern any watch of the configuration. */
static const char *store_of(const struct session *session, const struct config_watch *watch)
{
        for (size_t i = PLACE_WATCHERS; i < session->process_count; i++)
                if (session->process[i].watch == watch)
                        return session->process[i].store_folder;
        return session->replay ? session->folder : NULL;
}

/* Without root, the session's handlers run as its own user. */
static int carry_watch(struct session *session, const struct config_watch *config, const char *store,
                       struct record_watch *ret)
{
        char *folder = NULL; /* of the operator; NULL: it is unknown */
        int r = config_worker_watch(session->options.config, config, store, session->access_folder, ret);

        if (r >= 0) {
                free((void *)(uintptr_t)ret->previous_folder);
                ret->previous_folder = NULL;
                r = config == session->options.watch ? session_find_previous(session, &folder) : 0;
                ret->previous_folder = folder;
        }
        if (r >= 0 && session->tty && config == session->options.watch)
                r = tty_replace_handler(session->tty, ret);
        if (r >= 0 && geteuid() == 0 && !config->handler.user && config == session->options.watch)
                fprintf(stderr,
                        "note: the handler of watch %s runs as root; to run it as the operator does: runuser -u USER -- reconciledctl ...\n",
                        config->name);
        if (r < 0 || !config->handler.user || geteuid() == 0 || geteuid() == config->handler.uid)
                return r;
        fprintf(stderr, "note: the handler of watch %s runs as you, not as the user %s\n", config->name,
                config->handler.user);
        ret->user = "";
        return 0;
}

static int worker_config(struct session_process *process)
{
        struct session *session = process->session;
        const struct config *config = session->options.config;
        struct record_watch *watch = calloc(config->watch_count, sizeof(*watch));
        struct message_config_worker message = {
                .operator_name = config->operator_name,
                .former_names = config->former_names,
                .trace_file = session->trace,
                .kept_folder = session->folder,
                .window = 1,
                .slot_file = "",
                .hash_key = session->hash_key,
                .hash_key_size = sizeof(session->hash_key),
                .replay_folder = session->replay ? session->requests : "",
                .dry_run = !session->options.apply,
                .tell_dry_run = !session->options.apply,
                .watch = watch,
                .heartbeat_usec = config->heartbeat_interval_usec,
        };
        int r = watch ? 0 : -ENOMEM;

        for (size_t i = 0; i < config->watch_count && r >= 0; i++) {
                const char *store = store_of(session, &config->watch[i]);

                r = store ? carry_watch(session, &config->watch[i], store, &watch[message.watch_count]) : 0;
                message.watch_count += store && r >= 0;
        }
        if (r >= 0)
                r = channel_send(process->child.channel, MESSAGE_CONFIG_WORKER, &message);
        for (size_t i = 0; i < message.watch_count; i++)
                config_worker_watch_done(&watch[i]);
        free(watch);
        return r;
}

/* For the one watch whose handler runs. Without root that handler runs as our user, and no other user has to
 * be let in. */
static int credential_config(struct session_process *process)
{
        const struct session *session = process->session;
        const struct session_options *options = &session->options;
        struct message_config_credential message = {
                .kubeconfig = session->kubeconfig ? session->kubeconfig : options->config->kubeconfig,
                .context = session->kubeconfig ? "" : options->config->context,
                .deadline_usec = options->watch->deadline_usec,
                .heartbeat_usec = options->config->heartbeat_interval_usec,
        };
        struct record_access *access;
        size_t count;
        int r = config_access(options->config, session->access_folder, &access, &count);

        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++)
                if (strcmp(access[i].watch, options->watch->name) == 0) {
                        access[i].separate = access[i].separate && geteuid() == 0;
                        message.access_folder = session->access_folder;
                        message.access = &access[i];
                        message.access_count = 1;
                }
        r = channel_send(process->child.channel, MESSAGE_CONFIG_CREDENTIAL, &message);
        config_access_done(access, count);
        return r;
}

int session_configure(struct session_process *process)
{
        switch (process->child.role) {
        case ROLE_CREDENTIAL:
                return credential_config(process);
        case ROLE_WATCHER:
                return watcher_config(process);
        default:
                return worker_config(process);
        }
}
