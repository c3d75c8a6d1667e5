/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconciled-gateway: HTTP for those who watch over the operator. It knows nothing but what the supervisor tells it
 * with each heartbeat (METRICS), holds no credential, opens no connection and starts no program. Or, for who
 * checks a configuration: whether a certificate and a key can be used.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit-code.h"
#include "gateway/http-server.h"
#include "gateway/tls.h"
#include "ipc/child.h"
#include "ipc/close-in.h"
#include "os/listen.h"

struct gateway {
        struct child child;
        char *token_file;
        struct report report;
        struct gateway_server server;
        char *socket_path; /* to be removed at the end; NULL for TCP */
};

/* Its folder, where `resolved` that of the file that a link leads to. NULL if there is none. */
static char *folder_of(const char *path, bool resolved)
{
        char *whole = !path || !path[0] ? NULL : resolved ? realpath(path, NULL) : strdup(path);
        char *slash = whole ? strrchr(whole, '/') : NULL;

        if (slash)
                *slash = '\0';
        return whole;
}

/* It reads what strangers send, answers, and does nothing else. A socket file that it listens on is removed at
 * the end. Token and certificate are read again, and replaced as a whole: by a rename, or by another link. */
static int trim_gateway(struct gateway *gateway, const struct message_config_gateway *config)
{
        const char *const file[] = {config->token_file, config->certificate_file, config->key_file};
        char *folder[2 * ELEMENTS(file) + 1] = {0};
        const char *reads[ELEMENTS(folder)] = {0};
        _cleanup_free_ char *socket = folder_of(gateway->socket_path, false);
        const char *const writes[] = {socket, NULL};
        size_t count = 0;
        int r;

        for (size_t i = 0; i < 2 * ELEMENTS(file); i++) {
                folder[i] = folder_of(file[i / 2], i % 2);
                if (folder[i] && folder[i][0])
                        reads[count++] = folder[i];
        }
        r = gateway->socket_path && !socket
                    ? -ENOMEM
                    : close_in("the gateway", writes, reads, &(struct sandbox){.local = true});
        for (size_t i = 0; i < ELEMENTS(folder); i++)
                free(folder[i]);
        return r;
}

static int gateway_set_up(struct gateway *gateway, const struct message_config_gateway *config)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        gateway->report.deadline_usec = config->deadline_usec;
        gateway->token_file = strdup(config->token_file);
        if (!gateway->token_file)
                return -ENOMEM;
        gateway->server.listen_fd = listen_open(config->listen, config->kept, &gateway->socket_path, &error);
        if (gateway->server.listen_fd < 0) {
                int code = exit_code_for(gateway->server.listen_fd, EXIT_CODE_CONFIGURATION);

                if (gateway->server.listen_fd == -EADDRINUSE)
                        code = EXIT_CODE_SOFTWARE; /* until the other one has gone */
                return child_fatal(&gateway->child, code, "gateway.listen: %s", error_message(&error));
        }
        if (config->certificate_file[0] && tls_start(config->certificate_file, config->key_file, &error) < 0)
                return child_fatal(&gateway->child, EXIT_CODE_CONFIGURATION, "gateway.tls: %s",
                                   error_message(&error));
        r = gateway_server_start(&gateway->server, gateway->child.event, &gateway->report,
                                 gateway->token_file);
        if (r < 0)
                return child_fatal(&gateway->child, EXIT_CODE_SOFTWARE,
                                   "the HTTP server cannot be set up: %s", strerror(-r));
        r = trim_gateway(gateway, config);
        if (r < 0)
                return child_fatal(&gateway->child, EXIT_CODE_SOFTWARE, "it cannot give up its rights: %s",
                                   strerror(-r));
        return 1;
}

static int on_gateway_config(struct child *child, struct message **message)
{
        struct gateway *gateway = child->userdata;

        if ((*message)->type != MESSAGE_CONFIG_GATEWAY || gateway->server.loop.daemon)
                return -EPROTO;
        return gateway_set_up(gateway, &(*message)->config_gateway);
}

static int on_metrics(struct gateway *gateway, const struct message_metrics *metrics)
{
        int r = report_take(&gateway->report, metrics);

        if (r > 0)
                gateway_server_renew(&gateway->server);
        return r < 0 ? r : 0;
}

static int on_gateway_message(struct child *child, struct message **message)
{
        return (*message)->type == MESSAGE_METRICS ? on_metrics(child->userdata, &(*message)->metrics)
                                                   : -EPROTO;
}

static size_t count_gateway(struct child *child _unused_, struct record_counter *counter, size_t max)
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

static const struct child_operations gateway_operations = {
        .role = ROLE_GATEWAY,
        .log_role = "gateway",
        .parent_death_signal = SIGKILL,
        .on_config = on_gateway_config,
        .on_message = on_gateway_message,
        .count = count_gateway,
};

static void gateway_done(struct gateway *gateway)
{
        gateway_server_stop(&gateway->server);
        tls_stop();
        if (gateway->socket_path)
                (void)unlink(gateway->socket_path);
        free(gateway->socket_path);
        free(gateway->token_file);
        report_done(&gateway->report);
        child_done(&gateway->child);
}

static int try_certificate(const char *certificate_file, const char *key_file)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = tls_start(certificate_file, key_file, &error);

        if (r < 0)
                fprintf(stderr, "%s\n", error_message(&error));
        tls_stop();
        return r < 0 ? EXIT_CODE_CONFIGURATION : EXIT_CODE_OK;
}

int main(int argc, char **argv)
{
        struct gateway gateway = {.server.listen_fd = -1};
        int r;

        if (argc == 4 && strcmp(argv[1], "--check-certificate") == 0)
                return try_certificate(argv[2], argv[3]);
        r = child_init(&gateway.child, &gateway_operations, argc, argv);
        if (r < 0) {
                child_done(&gateway.child);
                return child_init_exit_code(r);
        }
        gateway.child.userdata = &gateway;
        r = child_run(&gateway.child);
        gateway_done(&gateway);
        return r;
}
