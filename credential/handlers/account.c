/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of service accounts, for handlers that ask the API server themselves (TokenRequest). One is asked
 * for at the start, and the next when four fifths of its life are over; slower and slower while the server
 * refuses, but several times within the watch's deadline. What a handler has stays in use until it expires.
 */
#include "credential/handlers/account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "credential/separate.h"
#include "kubeconfig/value.h"
#include "json/json.h"

#define LIFE_SEC       3600 /* asked for; the server decides */
#define TIMEOUT_USEC   (30 * USEC_PER_SEC)
#define BODY_MAX       ((size_t)64 * 1024)
#define TRIES          4 /* within the deadline of the watch, at least */
#define RENEW_MIN_USEC USEC_PER_SEC

static int ask_token(struct access *access);

bool account_is_wanted(const struct credential *credential)
{
        const struct message_config_credential *config = &credential->config->config_credential;

        for (size_t i = 0; i < config->access_count; i++)
                if (config->access[i].account[0])
                        return true;
        return false;
}

/* ---- time */

static int on_token_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct access *access = userdata;

        access->timer = sd_event_source_disable_unref(access->timer);
        return ask_token(access);
}

static int ask_in(struct access *access, uint64_t usec)
{
        access->timer = sd_event_source_disable_unref(access->timer);
        return sd_event_add_time_relative(access->credential->child->event, &access->timer, CLOCK_BOOTTIME,
                                          usec, 1, on_token_time, access);
}

/* why: of the last attempt, or NULL. */
static int note_trouble(struct access *access, const char *why)
{
        bool expired = access->expires_boottime > 0 && !access_has_token(access);
        char *reason = format_string(
                "%s %s/%s%s%s%s",
                expired ? "the token of service account" : "cannot get a token for service account",
                access->namespace_name, access->config->account,
                expired ? " has expired and cannot be renewed" : "", why ? ": " : "", why ? why : "");

        if (!reason)
                return -ENOMEM;
        free(access->account_trouble);
        access->account_trouble = reason;
        if (access->failing_boottime == 0)
                access->failing_boottime = clock_boottime_usec();
        access_tell(access);
        return 0;
}

static int on_expired(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct access *access = userdata;
        uint64_t now = clock_boottime_usec();

        access->expiry = sd_event_source_disable_unref(access->expiry);
        /* The timer was set a moment before or after that time was noted: for all that follows, it is over. */
        if (access->expires_boottime > now)
                access->expires_boottime = now;
        return note_trouble(access, access->account_why);
}

/* ---- failures */

/* Unlike for a watch, a 404 counts as a missing right: our configuration names the account. */
static int account_exit_code(const struct kube_error *error)
{
        return error->failure == KUBE_FAILURE_HTTP && error->http_status < 500 && error->http_status != 429
                       ? EXIT_CODE_NO_PERMISSION
                       : EXIT_CODE_UNAVAILABLE;
}

static const char *advice(const struct kube_error *error)
{
        if (error->http_status == 403)
                return "; `reconciledctl rbac` prints the roles that the operator needs";
        return error->http_status == 404 ? "; is there such a service account?" : "";
}

static int token_failed(struct access *access, const struct kube_error *error)
{
        uint64_t delay = credential_backoff(++access->failures);
        uint64_t limit = access->config->deadline_usec / TRIES;
        int r;
        char *why;

        if (delay > limit)
                delay = limit;
        if (error->retry_after_sec > 0 && delay < (uint64_t)error->retry_after_sec * USEC_PER_SEC)
                delay = (uint64_t)error->retry_after_sec * USEC_PER_SEC;
        why = format_string("%s%s", error->message ? error->message : "unknown", advice(error));
        if (!why)
                return -ENOMEM;
        free(access->account_why);
        access->account_why = why;
        access->exit_code = account_exit_code(error);
        r = note_trouble(access, why);
        return r < 0 ? r : ask_in(access, delay);
}

static int fail_with(struct access *access, const char *message)
{
        _cleanup_kube_error_ struct kube_error error = KUBE_ERROR_NONE;
        int r = kube_error_set(&error, KUBE_FAILURE_PROTOCOL, "%s", message);

        return r < 0 ? r : token_failed(access, &error);
}

/* ---- success */

static int plan_access(struct access *access, uint64_t life_usec)
{
        uint64_t renew = life_usec / 5 * 4;
        int r;

        access->expiry = sd_event_source_disable_unref(access->expiry);
        r = sd_event_add_time_relative(access->credential->child->event, &access->expiry, CLOCK_BOOTTIME,
                                       life_usec, 1, on_expired, access);
        return r < 0 ? r : ask_in(access, renew > RENEW_MIN_USEC ? renew : RENEW_MIN_USEC);
}

static int take_new_token(struct access *access, const char *token, uint64_t life_sec)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        const uint64_t life_usec = life_sec * USEC_PER_SEC;
        int r = handler_files_write_kubeconfig(access, &access->credential->current, token, &error);

        if (r < 0)
                return fail_with(access, error_message(&error));
        access->expires_boottime = clock_boottime_usec() + life_usec;
        access->expires_realtime = clock_realtime_usec() + life_usec;
        access->failures = 0;
        access->failing_boottime = 0;
        access->exit_code = EXIT_CODE_OK;
        free(access->account_trouble);
        free(access->account_why);
        access->account_trouble = access->account_why = NULL;
        access_tell(access);
        return plan_access(access, life_usec);
}

/* By the life that was granted: the server's clock may be another one than ours. */
static int read_answer(struct access *access, const struct kube_response *response)
{
        _cleanup_json_ cJSON *answer = json_parse(response->body, response->body_size);
        cJSON *token = json_member(json_member(answer, "status"), "token");
        const cJSON *life = json_member(json_member(answer, "spec"), "expirationSeconds");
        double seconds = json_number(life, LIFE_SEC);
        const char *text = cJSON_GetStringValue(token);
        int r = text && text[0] && seconds >= 1 && seconds < 1e9
                        ? take_new_token(access, text, (uint64_t)seconds)
                        : fail_with(access, "the API server's answer has no token");

        if (text)
                explicit_bzero(token->valuestring, strlen(text));
        return r;
}

static void on_token_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                          void *userdata)
{
        struct access *access = userdata;
        int r;

        access->transfer = NULL;
        if (response->http_status == 401 && response->credential_serial == access->credential->serial)
                access->credential->on_refused(access->credential);
        r = response->error.failure == KUBE_FAILURE_NONE ? read_answer(access, response)
                                                         : token_failed(access, &response->error);
        if (r < 0 && !access->credential->child->stopping)
                child_fatal(access->credential->child, EXIT_CODE_SOFTWARE,
                            "tokens for handlers cannot be asked for: %s", strerror(-r));
}

/* ---- asking */

static int ask_token(struct access *access)
{
        static const char body[] = "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\","
                                   "\"spec\":{\"audiences\":[],\"expirationSeconds\":3600}}";
        _cleanup_free_ char *path = NULL;
        struct kube_request request = {
                .method = "POST",
                .body = body,
                .body_size = sizeof(body) - 1,
                .timeout_usec = TIMEOUT_USEC,
                .body_max = BODY_MAX,
                .on_done = on_token_done,
                .userdata = access,
        };

        if (access->transfer || !kube_client_has_credential(access->credential->client))
                return 0;
        path = format_string("/api/v1/namespaces/%s/serviceaccounts/%s/token", access->namespace_name,
                             access->config->account);
        if (!path)
                return -ENOMEM;
        request.path = path;
        return kube_client_start(access->credential->client, &request, &access->transfer);
}

/* A refused request is repeated at once, but only once. An account that has a token needs a new file only if
 * the server's certificate has been replaced. */
static int account_go_on(struct access *access)
{
        const struct kubeconfig *current = &access->credential->current;
        const char *own = access->config->account_namespace;
        _cleanup_error_ struct error error = ERROR_NONE;

        if (!access->config->account[0])
                return 0;
        free(access->namespace_name);
        access->namespace_name = strdup(own[0]                          ? own
                                        : current->default_namespace[0] ? current->default_namespace
                                                                        : "default");
        if (!access->namespace_name)
                return -ENOMEM;
        if (separate_check_account(current, own, access->config->account, &error) < 0)
                return child_fatal(access->credential->child, EXIT_CODE_CONFIGURATION, "%s: %s",
                                   access->config->key, error_message(&error));
        if (access->expires_boottime > 0 && access->failures == 0) {
                handler_files_rewrite(access);
                return 0;
        }
        return access->failures <= 1 ? ask_in(access, 0) : 0;
}

int account_published(struct credential *credential)
{
        struct message_credential message;
        int r;

        if (!credential->client)
                return 0;
        r = credential_message(&credential->current, credential->serial, &message);
        if (r >= 0)
                r = kube_client_set_credential(credential->client, &message);
        free((void *)(uintptr_t)message.header);
        for (size_t i = 0; i < credential->access_count && r >= 0; i++)
                r = account_go_on(&credential->access[i]);
        return r;
}

static void on_access_unusable(const char *reason, void *userdata)
{
        const struct credential *credential = userdata;

        child_fatal(credential->child, EXIT_CODE_SOFTWARE, "no request can be sent to the API server: %s",
                    reason);
}

/* Makes the client that asks for tokens, if one is wanted. 0 or a negative errno. */
static int account_begin(struct credential *credential, void (*on_refused)(struct credential *credential))
{
        int r;

        credential->on_refused = on_refused;
        if (!account_is_wanted(credential))
                return 0;
        r = kube_client_new(credential->child->event, "reconciled/" RECONCILED_VERSION " (credential)",
                            &credential->client);
        if (r >= 0)
                kube_client_on_unusable(credential->client, on_access_unusable, credential);
        return r;
}

static void account_done(struct access *access)
{
        if (access->transfer)
                kube_transfer_cancel(access->transfer);
        access->timer = sd_event_source_disable_unref(access->timer);
        access->expiry = sd_event_source_disable_unref(access->expiry);
        free(access->namespace_name);
        free(access->account_trouble);
        free(access->account_why);
}

/*
 * What handlers are given for themselves: copies of files (handler.credentials), and access to the API
 * server (handler.kubernetes). Files are looked at when the operator's own are: every minute, and when the
 * operator is asked to reload.
 */
static void note_files(struct access *access, int r, const struct error *error)
{
        bool was_well = !access->files_trouble;

        access->files_there = access->files_there || r >= 0;
        if (r >= 0 && was_well)
                return;
        free(access->files_trouble);
        access->files_trouble = r < 0 ? strdup(error_message(error)) : NULL;
        if ((r < 0) == was_well)
                access_tell(access);
}

static void refresh(struct access *access)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        bool passing;
        int r = handler_files_copy(access, &passing, &error);

        note_files(access, r, &error);
}

/* A source that others can spoil is no reason to end: they would decide whether the operator starts. The runs of
 * this watch wait, and the file is looked for again. */
static int begin_files(struct access *access)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        bool passing;
        int r = handler_files_copy(access, &passing, &error);

        if (r < 0 && !passing)
                return child_fatal(access->credential->child, exit_code_for(r, EXIT_CODE_CONFIGURATION),
                                   "%s: %s", access->config->key, error_message(&error));
        note_files(access, r, &error);
        return 0;
}

void handlers_refresh(struct credential *credential)
{
        for (size_t i = 0; i < credential->access_count; i++)
                refresh(&credential->access[i]);
}

int handlers_begin(struct credential *credential, void (*on_refused)(struct credential *credential))
{
        const struct message_config_credential *config = &credential->config->config_credential;

        if (config->access_count == 0)
                return 0;
        credential->access = calloc(config->access_count, sizeof(*credential->access));
        if (!credential->access)
                return -ENOMEM;
        for (size_t i = 0; i < config->access_count; i++) {
                struct access *access = &credential->access[credential->access_count++];
                int r;

                access->credential = credential;
                access->config = &config->access[i];
                r = begin_files(access);
                if (r < 0)
                        return r;
        }
        return account_begin(credential, on_refused);
}

void handlers_done(struct credential *credential)
{
        for (size_t i = 0; i < credential->access_count; i++) {
                account_done(&credential->access[i]);
                free(credential->access[i].files_trouble);
        }
        free(credential->access);
        credential->access = NULL;
        credential->access_count = 0;
        kube_client_free(TAKE_PTR(credential->client));
}
