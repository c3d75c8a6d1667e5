/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/own-object.h"

#include <errno.h>

#include "base/duration.h"
#include "base/text.h"
#include "object/bookkeeping.h"
#include "watcher/asking.h"
#include "watcher/failures.h"

#define HTTP_CONFLICT         409
#define QUESTION_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define LOOK_USEC                                                                                           \
        USEC_PER_HOUR /* the end of its object wakes it (watcher.c); this is for what nobody has seen */

#define AGAIN_USEC                                                                                          \
        (5 * USEC_PER_SEC) /* an object that is deleted again and again is made again no more often */

static int own_write(const struct watcher *watcher, struct text *out)
{
        const struct message_config_watcher *config = watcher->config;

        return text_json(
                out,
                "{\"apiVersion\":?,\"kind\":?,\"metadata\":{\"name\":?,\"namespace\":?,\"labels\":"
                "{\"app.kubernetes.io/managed-by\":\"reconciled\",\"app.kubernetes.io/component\":?},\"annotations\":"
                "{\"" INSTANCE_KEY "\":?}}}",
                config->api_version, config->kind, config->own_name, config->namespace[0].value,
                config->own_action, config->operator_name);
}

static int own_ask(struct watcher *watcher, const char *method, const char *path, const struct text *body,
                   struct kube_answer *ret) _suspends_
{
        const struct kube_request request = {
                .method = method,
                .path = path,
                .body = body ? body->data : NULL,
                .body_size = body ? body->size : 0,
                .timeout_usec = QUESTION_TIMEOUT_USEC,
        };

        return asking_ask(watcher, &request, ret);
}

/* Another one of us may have been quicker. */
static bool own_exists(const struct kube_error *error)
{
        return error->failure == KUBE_FAILURE_NONE ||
               (error->failure == KUBE_FAILURE_HTTP && error->http_status == HTTP_CONFLICT);
}

static int own_create(struct watcher *watcher, struct kube_answer *ret) _suspends_
{
        const char *namespace = watcher->config->namespace[0].value;
        _cleanup_free_ char *plain = kube_path(&watcher->resource, namespace, NULL, NULL);
        _cleanup_text_ struct text path = TEXT_EMPTY, body = TEXT_EMPTY;

        text_append_string(&path, plain);
        kube_path_add(&path, "fieldManager", watcher->config->operator_name);
        own_write(watcher, &body);
        return !plain || path.failed || body.failed ? -ENOMEM
                                                    : own_ask(watcher, "POST", path.data, &body, ret);
}

/* Adds what was asked for, which people would have to look for. */
static int explain_refusal(const struct watcher *watcher, struct kube_error *error)
{
        const struct message_config_watcher *config = watcher->config;
        char *text = format_string("%s %s/%s, which the operator keeps for its %s, cannot be made: %s",
                                   config->kind, config->namespace[0].value, config->own_name,
                                   config->own_action, error->message);

        if (!text)
                return -ENOMEM;
        free(error->message);
        error->message = text;
        return 0;
}

/* 1 if the object is there; 0 if not yet, and the reason was reported; -ECANCELED. */
static int see_to_it(struct watcher *watcher) _suspends_
{
        const char *namespace = watcher->config->namespace[0].value;
        _cleanup_free_ char *path =
                kube_path(&watcher->resource, namespace, watcher->config->own_name, NULL);
        _cleanup_kube_answer_ struct kube_answer found = KUBE_ANSWER_EMPTY, made = KUBE_ANSWER_EMPTY;
        struct kube_response *response = &found.response;
        int64_t delay;
        int r = path ? own_ask(watcher, "GET", path, NULL, &found) : -ENOMEM;

        if (r >= 0 && kube_error_is_not_found(&response->error)) {
                r = own_create(watcher, &made);
                response = &made.response;
        }
        if (r >= 0 && own_exists(&response->error)) {
                failures_clear(watcher, &watcher->failures);
                return 1;
        }
        if (r >= 0)
                r = explain_refusal(watcher, &response->error);
        if (r < 0)
                return asking_failed(watcher, r);
        delay = failures_note(watcher, &watcher->failures, &response->error, response->credential_serial);
        return delay < 0 ? -ECANCELED : asking_pause(watcher, (uint64_t)delay, NULL);
}

static void own_keep(void *userdata) _suspends_
{
        struct watcher *watcher = userdata;
        int r = 0;

        while (r >= 0) {
                watcher->own_gone = false;
                r = see_to_it(watcher);
                if (r <= 0)
                        continue;
                r = asking_pause(watcher, AGAIN_USEC, NULL);
                if (r >= 0 && !watcher->own_gone)
                        r = asking_pause(watcher, LOOK_USEC, &watcher->own_asleep);
        }
        watcher->own = NULL;
}

void own_object_keep(struct watcher *watcher)
{
        if (watcher->config->own_name[0] && !watcher->own)
                asking_start(watcher, "own object", own_keep, watcher, &watcher->own);
}
