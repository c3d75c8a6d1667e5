/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the exec plugin runs: at the start, shortly before what it has brought expires, and when the server
 * refuses it; one at a time, slower and slower while it fails, or while the server refuses what it brings.
 */
#include "credential/renew.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "credential/handlers/account.h"
#include "kubeconfig/secret.h"
#include "kubeconfig/value.h"

#define EARLY_USEC (30 * USEC_PER_SEC) /* before the expiration, or a tenth of the time that is left */

/* What was accepted for as long is refused for a new reason. */
#define ACCEPTED_USEC (3 * CREDENTIAL_BACKOFF_MAX_USEC)

static void on_plugin_done(struct plugin_credential *brought, const char *why, void *userdata);

static int on_renewal_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct credential *credential = userdata;

        credential->plugin_timer = sd_event_source_disable_unref(credential->plugin_timer);
        credential->plugin_waits = false;
        return renew_run(credential) < 0 && !credential->child->stopping ? -EIO : 0;
}

static int run_in(struct credential *credential, uint64_t usec)
{
        credential->plugin_timer = sd_event_source_disable_unref(credential->plugin_timer);
        return sd_event_add_time_relative(credential->child->event, &credential->plugin_timer,
                                          CLOCK_BOOTTIME, usec, 1, on_renewal_time, credential);
}

/* ---- failures */

static int give_up_credential(struct credential *credential, const char *why)
{
        return child_fatal(
                credential->child, EXIT_CODE_NO_PERMISSION,
                "there is no credential, and the watches' deadline is over: the plugin %s has failed %u "
                "%s: %s",
                credential->source.exec.command, credential->plugin_failures,
                counted(credential->plugin_failures, "time", "times"), why);
}

static int renewal_failed(struct credential *credential, const char *why)
{
        uint64_t waited = clock_boottime_usec() - credential->started_boottime, delay;
        char text[64];

        credential->plugin_failures++;
        if (credential->serial == 0 && waited > credential->config->config_credential.deadline_usec)
                return give_up_credential(credential, why);
        delay = credential_backoff(credential->plugin_failures);
        if (!credential->plugin_complained)
                log_error("the credential plugin %s has failed: %s; %s, next attempt in %s, then ever more "
                          "slowly",
                          credential->source.exec.command, why,
                          credential->serial > 0 ? "the old credential stays in use" : "there is none yet",
                          duration_format(delay, text, sizeof(text)));
        credential->plugin_complained = true;
        credential->plugin_waits = true;
        return run_in(credential, delay);
}

/* The first refusal in a row is answered at once; a plugin that goes on bringing what is refused would
 * otherwise ask its provider as fast as the watches come back. */
int renew_refused(struct credential *credential)
{
        uint64_t now = clock_boottime_usec(), delay;

        if (credential->plugin || credential->plugin_waits)
                return 0;
        if (now - credential->brought_boottime > ACCEPTED_USEC)
                credential->plugin_refusals = 0;
        if (credential->plugin_refusals++ == 0)
                return renew_run(credential);
        delay = credential_backoff(credential->plugin_refusals - 1);
        credential->plugin_waits = true;
        return run_in(credential, delay);
}

/* ---- success */

/* Some time before it expires; what expires at once is asked for again at the pace of failures. */
static int plan_renewal(struct credential *credential)
{
        uint64_t now = clock_realtime_usec(), left, early;

        if (credential->brought.expires_realtime == 0)
                return 0;
        left = credential->brought.expires_realtime > now ? credential->brought.expires_realtime - now : 0;
        early = left / 10 < EARLY_USEC ? left / 10 : EARLY_USEC;
        left -= early;
        credential->plugin_expired = left == 0 ? credential->plugin_expired + 1 : 0;
        if (left == 0) /* or the machine's clock is ahead */
                return run_in(credential, credential_backoff(credential->plugin_expired));
        return run_in(credential, left > CREDENTIAL_BACKOFF_MIN_USEC ? left : CREDENTIAL_BACKOFF_MIN_USEC);
}

static int renewal_succeeded(struct credential *credential, struct plugin_credential *brought)
{
        int r;

        plugin_credential_done(&credential->brought);
        credential->brought = *brought;
        *brought = (struct plugin_credential){0};
        credential->has_brought = true;
        credential->brought_boottime = clock_boottime_usec();
        if (credential->plugin_complained)
                log_info("the credential plugin %s works again", credential->source.exec.command);
        credential->plugin_complained = false;
        credential->plugin_failures = 0;
        r = credential_publish(credential);
        return r < 0 ? r : plan_renewal(credential);
}

static void on_plugin_done(struct plugin_credential *brought, const char *why, void *userdata)
{
        struct credential *credential = userdata;
        struct plugin *plugin = TAKE_PTR(credential->plugin);
        int r = brought ? renewal_succeeded(credential, brought) : renewal_failed(credential, why);

        plugin_free(plugin);
        if (r < 0 && !credential->child->stopping)
                child_fatal(credential->child, EXIT_CODE_SOFTWARE, "the credential cannot be handed out");
}

/* ---- start and end */

int renew_run(struct credential *credential)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        if (credential->plugin || credential->plugin_waits)
                return 0;
        r = plugin_start(credential->child->event, &credential->source, on_plugin_done, credential,
                         &credential->plugin, &error);
        if (r >= 0)
                return 0;
        if (credential->serial == 0 && (r == -ENOENT || r == -EACCES || r == -ENOEXEC))
                return child_fatal(credential->child, EXIT_CODE_CONFIGURATION, "%s", error_message(&error));
        return renewal_failed(credential, error_message(&error));
}

int renew_run_anew(struct credential *credential)
{
        plugin_free(TAKE_PTR(credential->plugin));
        credential->plugin_timer = sd_event_source_disable_unref(credential->plugin_timer);
        credential->plugin_failures = credential->plugin_refusals = 0;
        credential->plugin_waits = false;
        return renew_run(credential);
}

void renew_stop(struct credential *credential)
{
        plugin_free(TAKE_PTR(credential->plugin));
        credential->plugin_timer = sd_event_source_disable_unref(credential->plugin_timer);
        plugin_credential_done(&credential->brought);
        credential->has_brought = credential->plugin_waits = false;
        credential->plugin_failures = credential->plugin_refusals = 0;
}

/* What the files say, with what a plugin has brought in the places that it fills. */
int credential_send(struct credential *credential)
{
        struct message_credential message;
        int r = credential_message(&credential->current, credential->serial, &message);

        if (r >= 0)
                r = child_send(credential->child, MESSAGE_CREDENTIAL, &message);
        free((void *)(uintptr_t)message.header);
        return r;
}

static int replace_text(char **place, const char *value)
{
        char *copy = value[0] ? strdup(value) : NULL;

        if (!value[0])
                return 0;
        if (!copy)
                return -ENOMEM;
        secret_wipe(place);
        *place = copy;
        return 0;
}

int credential_publish(struct credential *credential)
{
        const struct plugin_credential *brought = &credential->brought;
        struct kubeconfig merged;
        int r = kubeconfig_copy(&credential->source, &merged);

        if (r >= 0 && credential->has_brought) {
                r = replace_text(&merged.token, brought->token);
                if (r >= 0)
                        r = replace_text(&merged.client_certificate, brought->client_certificate);
                if (r >= 0)
                        r = replace_text(&merged.client_key, brought->client_key);
        }
        if (r < 0) {
                kubeconfig_done(&merged);
                return r;
        }
        kubeconfig_done(&credential->current);
        credential->current = merged;
        credential->serial++;
        r = account_published(credential);
        return r < 0 ? r : credential_send(credential);
}
