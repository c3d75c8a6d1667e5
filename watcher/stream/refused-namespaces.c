/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/refused-namespaces.h"

#include "ipc/message-id.h"

void refused_namespaces_note(struct stream *stream)
{
        const char *watch = stream->watcher->config->watch;

        if (!stream->failures.refused || stream->refusal_told || stream->watcher->stream_count == 1)
                return;
        stream->refusal_told = true;
        log_write(
                LOG_ERR, MESSAGE_ID_NAMESPACE_REFUSED,
                LOG_FIELDS({"RECONCILED_WATCH", watch}, {"RECONCILED_NAMESPACE", stream->namespace_name}),
                "watch %s is refused in a namespace: %s; its objects there are kept as they were last seen, and "
                "changes of them are not seen until the right is granted; namespaces that are not refused go on",
                watch, stream->failures.last.message ? stream->failures.last.message : "unknown");
}

void refused_namespaces_over(struct stream *stream)
{
        if (!stream->refusal_told)
                return;
        stream->refusal_told = false;
        log_write(LOG_NOTICE, MESSAGE_ID_NAMESPACE_GRANTED,
                  LOG_FIELDS({"RECONCILED_WATCH", stream->watcher->config->watch},
                             {"RECONCILED_NAMESPACE", stream->namespace_name}),
                  "watch %s: namespace %s is not refused any more", stream->watcher->config->watch,
                  stream->namespace_name);
}

bool refused_namespaces_has(const struct stream *stream)
{
        return stream->refusal_told;
}
