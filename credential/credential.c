/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping the credential fresh: the files are looked at again every minute and whenever the server answered
 * 401 or its certificate is not trusted; a plugin runs again before what it brought expires (renew.c). What
 * cannot be had later is no reason to give up what worked.
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
#include "credential/handlers/account.h"
#include "credential/renew.h"
#include "ipc/close-in.h"
#include "kubeconfig/kubeconfig.h"
#include "os/syscall.h"

#define RELOAD_USEC USEC_PER_MINUTE

static int load_kubeconfig(struct credential *credential, struct kubeconfig *ret, struct error *error)
{
        const struct message_config_credential *config = &credential->config->config_credential;
        const char *context = credential->source.context ? credential->source.context : config->context;

        return kubeconfig_load(&(struct kubeconfig_options){config->kubeconfig, context}, ret, error);
}

/* ---- what it gives up */

/* Without a plugin, this process only reads files and talks to the supervisor; if handlers have access of their
 * own, it writes that into their folders, and asks the API server for tokens. A plugin is somebody else's
 * program, which may write, ask its provider and start other programs; our restrictions would bind it as well. */
static int trim_credential(struct credential *credential)
{
        const char *folder = credential->config->config_credential.access_folder;
        const char *const path[] = {folder[0] ? folder : NULL, NULL};
        bool asks = account_is_wanted(credential);
        int r;

        if (credential->source.exec.command) {
                r = sys_set_subreaper(); /* nothing that it leaves behind outlives it */
                return r >= 0 ? 0
                              : child_fatal(credential->child, EXIT_CODE_SOFTWARE,
                                            "it cannot watch over its plugin: %s", strerror(-r));
        }
        r = close_in("the credential process", path, NULL,
                     &(struct sandbox){.local = !asks, .connects = asks, .threads = asks, .code = true});
        if (r < 0)
                return child_fatal(credential->child, EXIT_CODE_SOFTWARE, "it cannot give up its rights: %s",
                                   strerror(-r));
        credential->closed_in = true;
        return 0;
}

/* ---- the files, again */

static int load_again(struct credential *credential, struct kubeconfig *ret, struct error *error)
{
        const struct kubeconfig *source = &credential->source;
        struct kubeconfig fresh;
        int r = load_kubeconfig(credential, &fresh, error);

        if (r < 0)
                return r;
        if (strcmp(fresh.server, source->server) != 0 || strcmp(fresh.context, source->context) != 0)
                r = error_set(error, -EXDEV,
                              "it now leads to %s (%s) instead of %s; restart the operator if that is meant",
                              fresh.server, fresh.identity, source->server);
        else if (fresh.exec.command && credential->closed_in)
                r = error_set(error, -EPERM,
                              "it now needs the plugin %s, which only a new start can run; restart the "
                              "operator",
                              fresh.exec.command);
        if (r < 0)
                kubeconfig_done(&fresh);
        else
                *ret = fresh;
        return r;
}

/* A process that asks learns at once that there is nothing new, once: after that it would only ask again. */
static int repeat(struct credential *credential, bool asked)
{
        if (!asked || credential->serial == 0 || credential->repeated_serial == credential->serial)
                return 0;
        credential->repeated_serial = credential->serial;
        return credential_send(credential);
}

static int take_fresh(struct credential *credential, struct kubeconfig *fresh)
{
        kubeconfig_done(&credential->source);
        credential->source = *fresh;
        log_info("the credential has changed: %s", credential->source.identity);
        if (credential->source.exec.command)
                return renew_run_anew(credential);
        renew_stop(credential);
        return credential_publish(credential);
}

int credential_reload(struct credential *credential, bool asked)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct kubeconfig fresh;
        int r = load_again(credential, &fresh, &error);

        handlers_refresh(credential);
        if (r == -EPERM && asked) /* the server does not take the old one any more */
                return child_fatal(credential->child, EXIT_CODE_SOFTWARE,
                                   "the server refuses the credential, and there is a new one: %s",
                                   error_message(&error));
        if (r < 0) {
                if (!credential->complained)
                        log_warning("the credential cannot be renewed, the old one stays in use: %s",
                                    error_message(&error));
                credential->complained = true;
                return 0;
        }
        if (credential->complained)
                log_info("the credential can be read again");
        credential->complained = false;
        if (!kubeconfig_equal(&fresh, &credential->source))
                return take_fresh(credential, &fresh);
        kubeconfig_done(&fresh);
        if (credential->source.exec.command)
                return asked ? renew_refused(credential) : 0;
        return repeat(credential, asked);
}

static int on_credential_timer(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        int r = credential_reload(userdata, false);

        if (r >= 0)
                r = sd_event_source_set_time_relative(source, RELOAD_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- begin and end */

static void on_refused(struct credential *credential)
{
        (void)credential_reload(credential, true);
}

int credential_begin(struct credential *credential)
{
        struct child *child = credential->child;
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = load_kubeconfig(credential, &credential->source, &error);

        if (r < 0)
                return child_fatal(child, exit_code_for(r, EXIT_CODE_CONFIGURATION), "%s",
                                   error_message(&error));
        if (credential->source.insecure)
                log_warning(
                        "the API server's certificate is not checked (insecure-skip-tls-verify): anyone on "
                        "the way can read the credential");
        r = trim_credential(credential);
        if (r < 0)
                return r;
        r = handlers_begin(credential, on_refused);
        if (r < 0)
                return r;
        credential->started_boottime = clock_boottime_usec();
        r = credential->source.exec.command ? renew_run(credential) : credential_publish(credential);
        if (r >= 0)
                r = sd_event_add_time_relative(child->event, &credential->timer, CLOCK_BOOTTIME, RELOAD_USEC,
                                               USEC_PER_SEC, on_credential_timer, credential);
        return r < 0 ? r : 0;
}

void credential_done(struct credential *credential)
{
        renew_stop(credential);
        handlers_done(credential);
        sd_event_source_disable_unref(credential->timer);
        kubeconfig_done(&credential->source);
        kubeconfig_done(&credential->current);
        message_free(credential->config);
        *credential = (struct credential){0};
}
