/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/stream-request.h"

#include "base/duration.h"
#include "kube/path.h"

#define REMEMBERED_USEC    USEC_PER_HOUR /* how long a refused parameter is left out */
#define WATCH_LIST_MINOR   27            /* older servers ignore the parameter */
#define ACCEPT_OBJECT_META "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

static void add_number(struct text *path, const char *name, uint64_t number)
{
        char digits[24];

        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
        kube_path_add(path, name, digits);
}

static void ask_for_watch(const struct stream *stream, struct text *path, enum request request)
{
        const struct watcher *watcher = stream->watcher;

        kube_path_add(path, "watch", "1");
        if (!request_is_left_out(watcher, OPTIONAL_BOOKMARKS))
                kube_path_add(path, "allowWatchBookmarks", "true");
        if (request == REQUEST_INITIAL) {
                kube_path_add(path, "sendInitialEvents", "true");
                kube_path_add(path, "resourceVersionMatch", "NotOlderThan");
                kube_path_add(path, "resourceVersion", "");
        } else if (stream->resource_version[0]) {
                kube_path_add(path, "resourceVersion", stream->resource_version);
        }
        if (!request_is_left_out(watcher, OPTIONAL_TIMEOUT))
                add_number(path, "timeoutSeconds", stream->watch_timeout_sec);
}

static void add_selectors(const struct message_config_watcher *config, struct text *path)
{
        if (config->label_selector[0])
                kube_path_add(path, "labelSelector", config->label_selector);
        if (config->field_selector[0])
                kube_path_add(path, "fieldSelector", config->field_selector);
}

char *request_path(const struct stream *stream, enum request request)
{
        const struct watcher *watcher = stream->watcher;
        _cleanup_text_ struct text path = TEXT_EMPTY;
        _cleanup_free_ char *base = kube_path(&watcher->resource, stream->namespace_name, NULL, NULL);

        if (!base)
                return NULL;
        text_append_string(&path, base);
        switch (request) {
        case REQUEST_LIST:
                if (!stream->list_unpaged && !request_is_left_out(watcher, OPTIONAL_LIMIT))
                        add_number(&path, "limit", watcher->config->page_limit);
                add_selectors(watcher->config, &path);
                if (stream->continue_token[0])
                        kube_path_add(&path, "continue", stream->continue_token);
                break;
        case REQUEST_INITIAL:
        case REQUEST_WATCH:
                ask_for_watch(stream, &path, request);
                add_selectors(watcher->config, &path);
                break;
        case REQUEST_PROBE: /* the version of the list is wanted, not its items */
                kube_path_add(&path, "limit", "1");
                break;
        }
        return text_take(&path);
}

const char *request_accept(const struct watcher *watcher, enum request request)
{
        if (!watcher->config->metadata_only)
                return NULL;
        return request == REQUEST_LIST || request == REQUEST_PROBE ? REQUEST_ACCEPT_LIST_METADATA
                                                                   : ACCEPT_OBJECT_META;
}

/* ---- what a server does not understand */

bool request_is_left_out(const struct watcher *watcher, enum optional optional)
{
        return (watcher->left_out & optional) && clock_boottime_usec() < watcher->left_out_until;
}

static bool leave_out_parameter(struct watcher *watcher, enum optional optional, const char *name)
{
        uint64_t now = clock_boottime_usec();

        if (request_is_left_out(watcher, optional))
                return false;
        if (now >= watcher->left_out_until)
                watcher->left_out = 0;
        watcher->left_out |= optional;
        watcher->left_out_until = now + REMEMBERED_USEC;
        log_warning(
                "watch %s: the API server refuses the request; the parameter %s is left out for an hour%s",
                watcher->config->watch, name,
                watcher->config->label_selector[0] || watcher->config->field_selector[0]
                        ? ", though its labelSelector or fieldSelector may be the cause"
                        : "");
        return true;
}

bool request_reduce(struct watcher *watcher, enum phase phase)
{
        if (phase == PHASE_LIST)
                return leave_out_parameter(watcher, OPTIONAL_LIMIT, "limit");
        return leave_out_parameter(watcher, OPTIONAL_BOOKMARKS, "allowWatchBookmarks") ||
               leave_out_parameter(watcher, OPTIONAL_TIMEOUT, "timeoutSeconds");
}

bool request_may_stream_list(const struct stream *stream)
{
        const struct watcher *watcher = stream->watcher;

        return watcher->server_minor >= WATCH_LIST_MINOR && !stream->list_unpaged &&
               !stream->list_replaces && !request_is_left_out(watcher, OPTIONAL_BOOKMARKS) &&
               clock_boottime_usec() >= watcher->no_watch_list_until;
}
