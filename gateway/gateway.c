/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor says, kept for those who ask. */
#include "gateway/gateway.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "gateway/tls.h"
#include "ipc/close-in.h"

#define DOCUMENT_MAX ((size_t)64 * 1024 * 1024)

static bool is_fresh(const struct gateway *gateway, const char **ret_reason)
{
        *ret_reason = "the supervisor has said nothing yet";
        if (gateway->told_monotonic == 0)
                return false;
        *ret_reason = "the supervisor is silent";
        return clock_monotonic_usec() - gateway->told_monotonic <= gateway->deadline_usec;
}

bool gateway_is_live(const struct gateway *gateway, const char **ret_reason)
{
        if (!is_fresh(gateway, ret_reason))
                return false;
        *ret_reason = gateway->reason;
        return gateway->live;
}

bool gateway_is_ready(const struct gateway *gateway, const char **ret_reason)
{
        return gateway_is_live(gateway, ret_reason) && gateway->ready;
}

/* It reads what strangers send: it answers them, and does nothing else. What it listens on, where that is a
 * file, is removed at the end. */
static int give_up_rest(struct gateway *gateway)
{
        _cleanup_free_ char *folder = gateway->socket_path ? strdup(gateway->socket_path) : NULL;
        const char *const path[] = {folder ? dirname(folder) : NULL, NULL};

        if (gateway->socket_path && !folder)
                return -ENOMEM;
        return close_in("the gateway", path, &(struct sandbox){.local = true});
}

static int set_up(struct gateway *gateway, const struct message_config_gateway *config)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        gateway->deadline_usec = config->deadline_usec;
        gateway->token_file = strdup(config->token_file);
        if (!gateway->token_file)
                return -ENOMEM;
        gateway->listen_fd = gateway_listen(config->listen, &gateway->socket_path, &error);
        if (gateway->listen_fd < 0) {
                int code = exit_code_for(gateway->listen_fd, EXIT_CODE_CONFIGURATION);

                if (gateway->listen_fd == -EADDRINUSE)
                        code = EXIT_CODE_SOFTWARE; /* until the other one has gone */
                return child_fatal(&gateway->child, code, NULL, NULL, "gateway.listen: %s",
                                   error_message(&error));
        }
        if (config->certificate_file[0] && tls_start(config->certificate_file, config->key_file, &error) < 0)
                return child_fatal(&gateway->child, EXIT_CODE_CONFIGURATION, NULL, NULL, "gateway.tls: %s",
                                   error_message(&error));
        r = gateway_http_start(gateway);
        if (r < 0)
                return child_fatal(&gateway->child, EXIT_CODE_SOFTWARE, NULL, NULL,
                                   "the HTTP server cannot be set up: %s", strerror(-r));
        r = give_up_rest(gateway);
        if (r < 0)
                return child_fatal(&gateway->child, EXIT_CODE_SOFTWARE, NULL, NULL,
                                   "it cannot give up its rights: %s", strerror(-r));
        return 1;
}

static int on_config(struct child *child, struct message **message)
{
        struct gateway *gateway = child->userdata;

        if ((*message)->type != MESSAGE_CONFIG_GATEWAY || gateway->daemon)
                return -EPROTO;
        return set_up(gateway, &(*message)->config_gateway);
}

static int on_metrics(struct gateway *gateway, const struct message_metrics *metrics)
{
        if (gateway->coming.size + metrics->body_size > DOCUMENT_MAX)
                return -EPROTO;
        text_append(&gateway->coming, metrics->body, metrics->body_size);
        if (!metrics->last)
                return 0;
        gateway->live = metrics->live;
        gateway->ready = metrics->ready;
        snprintf(gateway->reason, sizeof(gateway->reason), "%s", metrics->reason);
        gateway->told_monotonic = clock_monotonic_usec();
        if (!gateway->coming.failed) {
                text_done(&gateway->document);
                gateway->document = gateway->coming;
                gateway->coming = TEXT_EMPTY;
                gateway_http_renew(gateway);
        }
        text_done(&gateway->coming);
        gateway->coming = TEXT_EMPTY;
        return 0;
}

static int on_message(struct child *child, struct message **message)
{
        return (*message)->type == MESSAGE_METRICS ? on_metrics(child->userdata, &(*message)->metrics)
                                                   : -EPROTO;
}

static size_t count(struct child *child _unused_, struct record_counter *counter, size_t max)
{
        if (max < 4)
                return 0;
        tls_refresh();
        counter[0] = (struct record_counter){"log_dropped", log_dropped()};
        counter[1] = (struct record_counter){"certificate_expires", tls_expires()};
        counter[2] = (struct record_counter){"certificate_stale", tls_is_stale()};
        counter[3] = (struct record_counter){"certificate_expired", tls_is_expired()};
        return 4;
}

const struct child_operations gateway_operations = {
        .role = ROLE_GATEWAY,
        .log_role = "gateway",
        .parent_death_signal = SIGKILL,
        .on_config = on_config,
        .on_message = on_message,
        .count = count,
};

void gateway_done(struct gateway *gateway)
{
        gateway_http_stop(gateway);
        tls_stop();
        if (gateway->socket_path)
                (void)unlink(gateway->socket_path);
        free(gateway->socket_path);
        free(gateway->token_file);
        text_done(&gateway->document);
        text_done(&gateway->coming);
        child_done(&gateway->child);
}
