/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconciled-credential: the only process that reads kubeconfig, certificates and tokens, and hands them to
 * the others as messages. Files are looked at again every minute and whenever the server answered 401; what
 * cannot be read later is no reason to give up what worked.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "credential/kubeconfig.h"
#include "ipc/child.h"
#include "ipc/message-id.h"

#define RELOAD_USEC USEC_PER_MINUTE

struct credential {
        struct message *config;
        struct kubeconfig current;
        uint64_t serial;
        sd_event_source *timer;
        bool complained;
};

static int load(struct credential *credential, struct kubeconfig *ret, struct error *error)
{
        const struct message_config_credential *config = &credential->config->config_credential;

        return kubeconfig_load(&(struct kubeconfig_options){config->kubeconfig, config->context}, ret,
                               error);
}

static int send_credential(struct child *child)
{
        const struct credential *credential = child->userdata;
        const struct kubeconfig *current = &credential->current;

        return child_send(child, MESSAGE_CREDENTIAL,
                          &(struct message_credential){
                                  .serial = credential->serial,
                                  .server = current->server,
                                  .tls_server_name = current->tls_server_name,
                                  .insecure = current->insecure,
                                  .certificate_authority = current->certificate_authority,
                                  .client_certificate = current->client_certificate,
                                  .client_key = current->client_key,
                                  .token = current->token,
                                  .username = current->username,
                                  .password = current->password,
                                  .proxy_url = current->proxy_url,
                                  .default_namespace = current->default_namespace,
                                  .identity = current->identity,
                          });
}

/* Tells the others when something changed, or when somebody asked. */
static int reload(struct child *child, bool asked)
{
        struct credential *credential = child->userdata;
        _cleanup_error_ struct error error = ERROR_NONE;
        struct kubeconfig fresh;

        if (load(credential, &fresh, &error) < 0) {
                if (!credential->complained)
                        log_warning("the credential cannot be read again, the old one stays in use: %s",
                                    error_message(&error));
                credential->complained = true;
                return 0;
        }
        credential->complained = false;
        if (kubeconfig_equal(&fresh, &credential->current)) {
                kubeconfig_done(&fresh);
                return asked ? send_credential(child) : 0;
        }
        kubeconfig_done(&credential->current);
        credential->current = fresh;
        credential->serial++;
        log_info("the credential has changed: %s", credential->current.identity);
        return send_credential(child);
}

static int on_timer(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        int r = reload(userdata, false);

        if (r >= 0)
                r = sd_event_source_set_time_relative(source, RELOAD_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_config(struct child *child, struct message **config)
{
        struct credential *credential = child->userdata;
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        if ((*config)->type != MESSAGE_CONFIG_CREDENTIAL || credential->config)
                return -EPROTO;
        credential->config = TAKE_PTR(*config);
        r = load(credential, &credential->current, &error);
        if (r < 0)
                return child_fatal(child, EXIT_CODE_CONFIGURATION, NULL, NULL, "%s", error_message(&error));
        if (credential->current.insecure)
                log_warning("the API server's certificate is not checked (insecure-skip-tls-verify): anyone "
                            "on the way "
                            "can read the credential");
        credential->serial = 1;
        r = send_credential(child);
        if (r >= 0)
                r = sd_event_add_time_relative(child->event, &credential->timer, CLOCK_BOOTTIME, RELOAD_USEC,
                                               USEC_PER_SEC, on_timer, child);
        return r < 0 ? r : 1;
}

static int on_message(struct child *child, struct message **message)
{
        const struct credential *credential = child->userdata;

        if ((*message)->type != MESSAGE_REFRESH)
                return -EPROTO;
        /* An older serial: whoever asked has not yet got the newer one that is on its way. */
        return (*message)->refresh.serial < credential->serial ? 0 : reload(child, true);
}

static const struct child_operations operations = {
        .role = ROLE_CREDENTIAL,
        .log_role = "credential",
        .parent_death_signal = SIGKILL,
        .on_config = on_config,
        .on_message = on_message,
};

int main(int argc, char **argv)
{
        struct credential credential = {0};
        struct child child;
        int r = child_init(&child, &operations, argc, argv);

        if (r < 0) {
                child_done(&child);
                return r == -ECANCELED ? EXIT_CODE_OK : EXIT_CODE_USAGE;
        }
        child.userdata = &credential;
        r = child_run(&child);
        sd_event_source_disable_unref(credential.timer);
        kubeconfig_done(&credential.current);
        message_free(credential.config);
        child_done(&child);
        return r;
}
