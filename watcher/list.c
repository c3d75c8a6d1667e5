/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LIST, page by page, each item applied as it streams in. Every LIST has a number (the mark); what a
 * complete one did not mark is gone. An incomplete one says nothing about what it did not show.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/watcher.h"

#define PAGE_TIMEOUT_USEC (60 * USEC_PER_SEC) /* a server ends other requests than watches after as long */
#define ITEM_MAX          ((size_t)16 * 1024 * 1024)

static void page_start(struct stream *stream);

static int on_item(const char *item, size_t size, void *userdata)
{
        struct stream *stream = userdata;

        return apply_object(stream, item, size, true);
}

static int on_data(struct kube_transfer *transfer _unused_, const char *bytes, size_t size, void *userdata)
{
        struct stream *stream = userdata;
        int r = scan_list_feed(stream->list, bytes, size);

        if (r >= 0)
                announce_soon(stream->watcher);
        else if (!stream->watcher->child->stopping)
                kube_error_set(&stream->stream_error, KUBE_FAILURE_PROTOCOL,
                               "the server's list cannot be read%s",
                               r == -EMSGSIZE ? ": an object is larger than 16 MiB" : "");
        return r;
}

static void list_finished(struct stream *stream, const struct scan_list_metadata *metadata)
{
        struct watcher *watcher = stream->watcher;

        watcher->count.lists++;
        stream->list_unpaged = stream->bad_line = false;
        stream->complete_mark = stream->mark;
        if (stream_set_resource_version(stream, metadata->resource_version) < 0 || apply_absent(stream) < 0)
                return;
        stream->synced = true;
        stream_succeeded(stream);
        announce_synced(watcher);
        watch_start(stream);
}

static void page_finished(struct stream *stream)
{
        struct kube_error error = KUBE_ERROR_NONE;
        struct scan_list_metadata metadata;
        int r = scan_list_finish(stream->list, &metadata);

        if (r < 0 || metadata.resource_version[0] == '\0') {
                kube_error_set(&error, KUBE_FAILURE_PROTOCOL, "the server's list ended in the middle");
                stream_failed(stream, PHASE_LIST, &error, 0);
                kube_error_done(&error);
                return;
        }
        free(stream->continue_token);
        stream->continue_token = strdup(metadata.continue_token);
        if (!stream->continue_token)
                child_fatal(stream->watcher->child, EXIT_CODE_SOFTWARE, NULL, NULL, "no memory");
        else if (stream->continue_token[0])
                page_start(stream);
        else
                list_finished(stream, &metadata);
}

static void on_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                    void *userdata)
{
        struct stream *stream = userdata;
        _cleanup_kube_error_ struct kube_error error = stream->stream_error;
        enum phase phase = stream->continue_token[0] && !stream->list_unpaged ? PHASE_CONTINUE : PHASE_LIST;

        stream->transfer = NULL;
        stream->stream_error = KUBE_ERROR_NONE;
        if (stream->watcher->child->stopping)
                return;
        if (error.failure != KUBE_FAILURE_NONE)
                stream_failed(stream, phase, &error, 0);
        else if (response->error.failure == KUBE_FAILURE_NONE)
                page_finished(stream);
        else
                stream_failed(stream, phase, &response->error, response->credential_serial);
}

static char *page_path(struct stream *stream)
{
        const struct message_config_watcher *config = stream->watcher->config;
        _cleanup_text_ struct text path = TEXT_EMPTY;
        _cleanup_free_ char *base =
                kube_path(&stream->watcher->resource, stream->namespace_name, NULL, NULL);
        char limit[24];

        if (!base)
                return NULL;
        text_append_string(&path, base);
        if (!stream->list_unpaged) {
                snprintf(limit, sizeof(limit), "%llu", (unsigned long long)config->page_limit);
                kube_path_add(&path, "limit", limit);
        }
        if (config->label_selector[0])
                kube_path_add(&path, "labelSelector", config->label_selector);
        if (config->field_selector[0])
                kube_path_add(&path, "fieldSelector", config->field_selector);
        /* A continue page carries no resourceVersion; the first asks for the newest state. */
        if (stream->continue_token[0])
                kube_path_add(&path, "continue", stream->continue_token);
        return text_take(&path);
}

static void page_start(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        _cleanup_free_ char *path = page_path(stream);
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .timeout_usec = PAGE_TIMEOUT_USEC,
                .on_data = on_data,
                .on_done = on_done,
                .userdata = stream,
        };
        int r;

        scan_list_free(stream->list);
        stream->list = NULL;
        r = path ? scan_list_new(ITEM_MAX, on_item, stream, &stream->list) : -ENOMEM;
        if (r >= 0)
                r = kube_client_start(watcher->client, &request, &stream->transfer);
        if (r < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "a LIST cannot be started: %s", strerror(-r));
}

void list_start(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        int r;

        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream->state = STREAM_LISTING;
        stream->list_incomplete = false;
        stream->mark = ++watcher->meta.mark;
        if (watcher->first_mark == 0)
                watcher->first_mark = stream->mark;
        stream->continue_token[0] = '\0';
        /* The number is on record before anything carries it: no later LIST may have the same. */
        r = meta_save(watcher, false);
        if (r < 0)
                store_failed(watcher, r);
        else
                page_start(stream);
}
