/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping the credential fresh: the files are looked at again every minute and whenever the server answered
 * 401. What cannot be read later is no reason to give up what worked.
 *
 * Never here: following the kubeconfig to another cluster. `kubectl config use-context` in the file that an
 * operator runs with must not make it write somewhere else, and its memory of objects belongs to one
 * cluster.
 */
#include "credential/credential.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"

#define RELOAD_USEC USEC_PER_MINUTE

static int load(struct credential *credential, struct kubeconfig *ret, struct error *error)
{
        const struct message_config_credential *config = &credential->config->config_credential;
        const char *context = credential->serial > 0 ? credential->current.context : config->context;

        return kubeconfig_load(&(struct kubeconfig_options){config->kubeconfig, context}, ret, error);
}

static int send_credential(struct credential *credential)
{
        const struct kubeconfig *current = &credential->current;

        return child_send(credential->child, MESSAGE_CREDENTIAL,
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

static int load_again(struct credential *credential, struct kubeconfig *ret, struct error *error)
{
        const struct kubeconfig *current = &credential->current;
        struct kubeconfig fresh;
        int r = load(credential, &fresh, error);

        if (r < 0)
                return r;
        if (strcmp(fresh.server, current->server) == 0 && strcmp(fresh.context, current->context) == 0) {
                *ret = fresh;
                return 0;
        }
        error_set(error, -EXDEV,
                  "it now leads to %s (%s) instead of %s; restart the operator if that is meant",
                  fresh.server, fresh.identity, current->server);
        kubeconfig_done(&fresh);
        return -EXDEV;
}

int credential_reload(struct credential *credential, bool asked)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct kubeconfig fresh;

        if (load_again(credential, &fresh, &error) < 0) {
                if (!credential->complained)
                        log_warning("the credential cannot be renewed, the old one stays in use: %s",
                                    error_message(&error));
                credential->complained = true;
                return 0;
        }
        if (credential->complained)
                log_info("the credential can be read again");
        credential->complained = false;
        if (kubeconfig_equal(&fresh, &credential->current)) {
                kubeconfig_done(&fresh);
                return asked ? send_credential(credential) : 0;
        }
        kubeconfig_done(&credential->current);
        credential->current = fresh;
        credential->serial++;
        log_info("the credential has changed: %s", credential->current.identity);
        return send_credential(credential);
}

static int on_timer(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        int r = credential_reload(userdata, false);

        if (r >= 0)
                r = sd_event_source_set_time_relative(source, RELOAD_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int credential_begin(struct credential *credential)
{
        struct child *child = credential->child;
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = load(credential, &credential->current, &error);

        if (r < 0)
                return child_fatal(child, EXIT_CODE_CONFIGURATION, NULL, NULL, "%s", error_message(&error));
        if (credential->current.insecure)
                log_warning(
                        "the API server's certificate is not checked (insecure-skip-tls-verify): anyone on "
                        "the way can read the credential");
        credential->serial = 1;
        r = send_credential(credential);
        if (r >= 0)
                r = sd_event_add_time_relative(child->event, &credential->timer, CLOCK_BOOTTIME, RELOAD_USEC,
                                               USEC_PER_SEC, on_timer, credential);
        return r < 0 ? r : 0;
}

void credential_done(struct credential *credential)
{
        sd_event_source_disable_unref(credential->timer);
        kubeconfig_done(&credential->current);
        message_free(credential->config);
        *credential = (struct credential){0};
}
